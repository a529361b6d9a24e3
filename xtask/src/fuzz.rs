//! `cargo xtask fuzz`: makes inputs up for the targets of `tests/fuzz`, one after the other, with cargo-fuzz.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, bail};

use crate::Workspace;
use crate::steps::Steps;
use crate::workspace::{output, run};

/// Which targets, and for how long.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How long each target runs, in seconds
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Targets; all without any
    targets: Vec<String>,
}

/// Runs the targets. What is found lies in `tests/fuzz/runner/artifacts`, and belongs into `tests/fuzz/corpus`.
pub(crate) fn fuzz(workspace: &Workspace, arguments: &Arguments) -> Result<std::process::ExitCode> {
    if output(workspace.cargo().args(["fuzz", "--version"])).is_err() {
        bail!("cargo-fuzz is missing: `cargo install cargo-fuzz --locked` installs it");
    }
    let folder = workspace.root().join("tests/fuzz");
    let all = targets(&folder.join("corpus"))?;
    let chosen = if arguments.targets.is_empty() {
        &all
    } else {
        &arguments.targets
    };
    if let Some(unknown) = chosen.iter().find(|target| !all.contains(target)) {
        bail!(
            "there is no target \"{unknown}\"; there are: {}",
            all.join(", ")
        );
    }
    let target = workspace.target().join("fuzz");
    fs::create_dir_all(&target).with_context(|| format!("create \"{}\"", target.display()))?;
    let path_match = path_match(&folder, &target)?;
    let mut steps = Steps::new();
    for name in chosen {
        let found = target.join("corpus").join(name);
        fs::create_dir_all(&found).with_context(|| format!("create \"{}\"", found.display()))?;
        let mut command = workspace.cargo();
        command
            // The compiler's counters are for nightly; this lets a stable one have them. Nothing of ours is unsafe, so the
            // sanitizer, which finds faults of memory, is left out: without it ten times as many inputs are tried.
            .env("RUSTC_BOOTSTRAP", "1")
            .env("PATH_MATCH", &path_match)
            .args(["fuzz", "run", "--sanitizer", "none", "--fuzz-dir"])
            .arg(folder.join("runner"))
            .arg("--target-dir")
            .arg(&target)
            .arg(name)
            .arg(&found)
            .arg(folder.join("corpus").join(name))
            .arg("--")
            .arg(format!("-max_total_time={}", arguments.seconds))
            .args(["-max_len=8192", "-timeout=10", "-print_final_stats=1"]);
        steps.step(name, || run(&mut command));
    }
    Ok(steps.finish())
}

/// The names of all targets: each has a folder of inputs.
fn targets(corpora: &Path) -> Result<Vec<String>> {
    let entries =
        fs::read_dir(corpora).with_context(|| format!("read \"{}\"", corpora.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Builds the program that asks Go what it says of globs.
fn path_match(folder: &Path, target: &Path) -> Result<PathBuf> {
    let program = target.join(format!("pathmatch{}", env::consts::EXE_SUFFIX));
    let mut command = Command::new("go");
    command
        .current_dir(folder.join("pathmatch"))
        .args(["build", "-o"])
        .arg(&program)
        .arg(".");
    run(&mut command)?;
    Ok(program)
}
