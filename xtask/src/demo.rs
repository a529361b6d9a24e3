//! `cargo xtask demo`: the project at work, from nothing to two custom resources that are done.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::mpsc::{Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use controlplane::{AtcService, ControlPlane, FileServer, Options, Process, Programs};

use crate::{
    Workspace, cluster, guests,
    steps::clock,
    workspace::{output, run as run_command},
};

mod scene;
mod timeline;

use scene::{Event, Scene};
use timeline::Timeline;

/// What `cargo xtask demo` takes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Leaves everything running at the end, with a KUBECONFIG to play with, until Ctrl-C
    #[arg(long)]
    keep: bool,
    /// Builds the atc with optimisations, which takes longer
    #[arg(long)]
    release: bool,
}

/// The longest from the start of the control plane to the end of both examples. On a quiet machine it takes 15 s.
const LIMIT: Duration = Duration::from_mins(4);
/// How long the stand-in for a provider of databases takes.
const PROVIDER: Duration = Duration::from_secs(1);
/// How long is looked whether the atc calls the apiserver although nothing happens.
const QUIET: Duration = Duration::from_secs(3);
/// Lines of the atc's log that are shown when something went wrong.
const TAIL: usize = 40;

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<ExitCode> {
    let begin = Instant::now();
    let say = |text: &str| eprintln!("[{:>8}] {text}", clock(begin.elapsed()));
    let (binary, modules) = thread::scope(|scope| {
        // Go's and Rust's builds leave each other room: both have stretches in which one core is enough.
        let programs = scope.spawn(|| Programs::find(true));
        let binary = binary(workspace, arguments, &say)?;
        say("building the flights of the examples");
        let modules = guests::build(workspace)?;
        programs
            .join()
            .map_err(|_| anyhow!("building the control plane broke down"))??;
        anyhow::Ok((binary, modules))
    })?;
    say("starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok");
    let started = Instant::now();
    let plane = ControlPlane::start(&Options {
        full: true,
        ..Options::default()
    })?;
    let demo = Demo {
        workspace,
        plane,
        files: FileServer::start()?,
        started,
    };
    for module in &modules {
        let name = module
            .file_name()
            .context("a module without a name")?
            .to_string_lossy()
            .into_owned();
        demo.files.put(
            &name,
            fs::read(module).with_context(|| format!("read \"{}\"", module.display()))?,
        );
    }
    say("starting the atc");
    let service = demo.plane.atc_service("atc")?;
    let mut command = Command::new(binary);
    command.envs(service.environment());
    let mut atc = demo.plane.keep("atc", command)?;
    let result = demo.play(&service, &mut atc, &say);
    if let Err(error) = result {
        eprintln!(
            "\nthe last lines of the atc's log:\n{}\n",
            atc.log_tail(TAIL)
        );
        return Err(error);
    }
    say("done");
    if !arguments.keep {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "\nEverything goes on running until Ctrl-C. The log of the atc: {}\n",
        atc.log().display()
    );
    println!("export KUBECONFIG={}", demo.plane.kubeconfig().display());
    println!(
        "{} get airways,pipelines,apps,jobs,deployments",
        demo.plane.programs().path("kubectl")?.display()
    );
    cluster::forever(&demo.plane)
}

/// The atc: the binary that the variable `ATC` names, else the one that is built here.
fn binary(workspace: &Workspace, arguments: &Arguments, say: &dyn Fn(&str)) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("ATC").filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    say("building the atc");
    let mut build = workspace.cargo();
    build.args(["build", "--package", "atc-bin"]);
    if arguments.release {
        build.arg("--release");
    }
    run_command(&mut build)?;
    let profile = if arguments.release {
        "release"
    } else {
        "debug"
    };
    Ok(workspace.target().join(profile).join("atc"))
}

struct Demo<'a> {
    workspace: &'a Workspace,
    plane: ControlPlane,
    files: FileServer,
    started: Instant,
}

impl Demo<'_> {
    /// Airways, instances, and what comes of them, until both are done.
    fn play(&self, service: &AtcService, atc: &mut Process, say: &dyn Fn(&str)) -> Result<()> {
        self.wait_for_atc(service, atc)?;
        say(
            "installing the examples: Airways Pipeline and App, and a stand-in for a provider of databases",
        );
        let examples = self.workspace.root().join("docs/examples");
        self.apply(&examples.join("app/provider-crd.yaml"))?;
        for example in ["pipeline", "app"] {
            self.apply_airway(&examples.join(example).join("airway.yaml"), example)?;
        }
        self.kubectl(&[
            "wait",
            "--for=condition=Ready",
            "--timeout=60s",
            "airways",
            "--all",
        ])?;

        let (scene, events) = Scene::open(&self.plane, atc.log())?;
        eprintln!("\nWhat happens from here on, and why:\n");
        thread::scope(|scope| {
            // What a person does takes its time; what comes of it is shown meanwhile.
            let create = |what: &'static str, file: &'static str| {
                scene.say(what);
                let (scene, this, file) = (&scene, &*self, examples.join(file));
                scope.spawn(move || {
                    if let Err(error) = this.apply(&file) {
                        scene.say(&format!("that failed: {error:#}"));
                    }
                });
            };
            create(
                "create Pipeline nightly: three Jobs, one after another",
                "pipeline/instance.yaml",
            );
            create(
                "create App shop: needs a database that somebody else provides",
                "app/instance.yaml",
            );
            self.watch(atc, &events, &create)
        })?;
        drop(scene);
        eprintln!();
        println!(
            "{}",
            self.kubectl(&["get", "pipelines,apps,jobs,deployments"])?
                .trim_end()
        );
        println!("\n{}", self.calls()?);
        Ok(())
    }

    /// Shows what happens until both are done.
    fn watch(
        &self,
        atc: &mut Process,
        events: &Receiver<(Instant, Event)>,
        create: &dyn Fn(&'static str, &'static str),
    ) -> Result<()> {
        let mut timeline = Timeline::new();
        let (mut waits_since, mut provided) = (None, false);
        while !timeline.is_done() {
            atc.check()?;
            self.plane.check()?;
            if self.started.elapsed() > LIMIT {
                bail!("not done within {}: {}", clock(LIMIT), timeline.state());
            }
            match events.recv_timeout(Duration::from_millis(100)) {
                Ok((when, event)) => timeline.show(when, &event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("the watches have ended"),
            }
            if timeline.app_waits()
                && !provided
                && waits_since.get_or_insert_with(Instant::now).elapsed() > PROVIDER
            {
                create(
                    "create Secret shop-db, as the provider of the database would",
                    "app/secret.yaml",
                );
                provided = true;
            }
        }
        // What is still on its way belongs to the picture.
        while let Ok((when, event)) = events.recv_timeout(Duration::from_millis(500)) {
            timeline.show(when, &event);
        }
        Ok(())
    }

    /// How often the atc called the apiserver until now, and during a while in which nothing happens.
    fn calls(&self) -> Result<String> {
        let count = || -> Result<usize> {
            let log = fs::read_to_string(self.plane.audit_log()).context("read the audit log")?;
            Ok(log
                .lines()
                .filter(|line| !line.contains("\"verb\":\"watch\"") && !line.contains("/leases"))
                .count())
        };
        let before = count()?;
        thread::sleep(QUIET);
        let after = count()?;
        let quiet = clock(QUIET);
        Ok(format!(
            "calls of the atc to the apiserver: {before} in all; {} in {quiet} at rest",
            after - before
        ))
    }

    fn wait_for_atc(&self, service: &AtcService, atc: &mut Process) -> Result<()> {
        let url = format!("https://localhost:{}/ready", service.port);
        while !self.plane.probe(&service.certificates.join("ca.crt"), &url) {
            atc.check()?;
            if self.started.elapsed() > LIMIT {
                bail!("the atc is not ready within {}", clock(LIMIT));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Applies an Airway with the address of its module here.
    fn apply_airway(&self, manifest: &Path, example: &str) -> Result<()> {
        let text = fs::read_to_string(manifest)
            .with_context(|| format!("read \"{}\"", manifest.display()))?;
        let text = with_flight(&text, &self.files.url(&format!("{example}.wasm")));
        let file = self.plane.folder().join(format!("{example}-airway.yaml"));
        fs::write(&file, text).with_context(|| format!("write \"{}\"", file.display()))?;
        self.apply(&file)
    }

    fn apply(&self, manifest: &Path) -> Result<()> {
        self.kubectl(&["apply", "--filename", &manifest.to_string_lossy()])
            .map(|_| ())
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(self.plane.programs().path("kubectl")?);
        command
            .args(arguments)
            .env("KUBECONFIG", self.plane.kubeconfig())
            .env("HOME", self.plane.folder());
        for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            command.env_remove(name);
        }
        output(&mut command)
    }
}

/// The manifest with another address behind `flight:`.
fn with_flight(manifest: &str, url: &str) -> String {
    let lines = manifest
        .lines()
        .map(|line| match line.trim_start().strip_prefix("flight:") {
            Some(_) => format!(
                "{}flight: {url}",
                &line[..line.len() - line.trim_start().len()]
            ),
            None => line.to_owned(),
        });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::with_flight;

    #[test]
    fn the_flight_is_replaced() {
        let text = "spec:\n  wasmUrls:\n    flight: https://x/y.wasm\n  mode: dynamic\n";
        let expect = "spec:\n  wasmUrls:\n    flight: http://z\n  mode: dynamic\n";
        assert_eq!(with_flight(text, "http://z"), expect);
    }
}
