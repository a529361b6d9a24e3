//! `cargo xtask cluster`: a control plane for hand use.

use std::{
    io::{BufRead, BufReader},
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

use anyhow::{Context, Result};
use controlplane::{ControlPlane, Options};

/// What `cargo xtask cluster` takes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// With controllers, scheduler and a fake node, so that Jobs complete and Deployments become ready
    #[arg(long)]
    full: bool,
    /// Runs this command with KUBECONFIG set, and ends with it
    #[arg(last = true)]
    command: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let begin = Instant::now();
    let plane = ControlPlane::start(&Options {
        full: arguments.full,
        ..Options::default()
    })?;
    let kubeconfig = plane.kubeconfig();
    if let Some((program, rest)) = arguments.command.split_first() {
        let mut command = Command::new(program);
        command.args(rest).env("KUBECONFIG", &kubeconfig);
        let status = command
            .status()
            .with_context(|| format!("run \"{program}\""))?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        return Ok(code.map_or(ExitCode::FAILURE, ExitCode::from));
    }
    eprintln!(
        "ready after {:.1} s; Ctrl-C ends it and leaves nothing",
        begin.elapsed().as_secs_f64()
    );
    println!("export KUBECONFIG={}", kubeconfig.display());
    eprintln!(
        "an atc beside it: KUBE={} SVC_NAMESPACE=default WEBHOOK_URL=https://localhost:3000 LOG_FORMAT=text target/debug/atc",
        plane.atc_kubeconfig().display()
    );
    if let Ok(kubectl) = plane.programs().path("kubectl") {
        eprintln!("kubectl of the same version: {}", kubectl.display());
    }
    forever(&plane)
}

/// Keeps a control plane until Ctrl-C ends this process, which ends the control plane; or until it breaks.
pub(crate) fn forever(plane: &ControlPlane) -> Result<ExitCode> {
    loop {
        std::thread::sleep(std::time::Duration::from_secs(1));
        plane.check()?;
    }
}

/// The lines of a program's output as they come.
pub(crate) fn lines(
    command: &mut Command,
) -> Result<(std::process::Child, impl Iterator<Item = String> + use<>)> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let pipe = child.stdout.take().context("no standard output")?;
    Ok((child, BufReader::new(pipe).lines().map_while(Result::ok)))
}
