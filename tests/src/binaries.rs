//! The binaries under test and the example programs, as cargo built them beside the test itself.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::SystemTime,
};

use anyhow::{Context, Result, bail};

/// Set by `cargo xtask test`, which has built everything before: nothing is looked for or built here.
const READY: &str = "ATC_TESTS_BUILT";

/// Path of `atc` or `yoke`: what the variable `ATC` or `YOKE` names, else the one in the target folder of this test,
/// built first when it is missing or older than the sources.
pub fn binary(name: &str) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(name.to_uppercase()).filter(|v| !v.is_empty()) {
        return Ok(path.into());
    }
    built(name)
}

/// Path of an example program of `docs/examples`, built first as [`binary`] does.
pub fn example(name: &str) -> Result<PathBuf> {
    built(&format!("examples/{name}"))
}

/// What the target folder has, as new as the sources.
fn built(name: &str) -> Result<PathBuf> {
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    let folder = folder()?;
    let path = folder.join(name);
    if !is_ready() && !is_fresh(&path)? {
        let built = BUILT.get_or_init(|| build(&folder).map_err(|error| format!("{error:#}")));
        built.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
    }
    if !path.is_file() {
        bail!("no \"{}\": run `cargo xtask test`", path.display());
    }
    Ok(path)
}

/// Whether `cargo xtask test` has built all that tests run.
pub(crate) fn is_ready() -> bool {
    std::env::var_os(READY).is_some()
}

/// `<target>/<profile>`, from `<target>/<profile>/deps/<test>`.
pub(crate) fn folder() -> Result<PathBuf> {
    let test = std::env::current_exe().context("where this test is")?;
    let folder = test
        .parent()
        .and_then(Path::parent)
        .context("this test is in no target folder")?;
    Ok(folder.to_owned())
}

/// The workspace's root.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(PathBuf::new, Path::to_owned)
}

/// Whether it is there and newer than the sources.
fn is_fresh(program: &Path) -> Result<bool> {
    let root = workspace();
    let mut newest = SystemTime::UNIX_EPOCH;
    for part in [
        "crates",
        "bins",
        "docs/examples/operator",
        "docs/examples/operator-flight",
    ] {
        newest = newest.max(newest_source(&root.join(part))?);
    }
    let made = program.metadata().and_then(|made| made.modified());
    Ok(made.is_ok_and(|made| made > newest))
}

/// Builds all with the command that `cargo xtask test` uses, so that features, and with them the dependencies' builds, are
/// the same.
fn build(folder: &Path) -> Result<()> {
    let target = folder.parent().context("no target folder")?;
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(workspace())
        .args([
            "build",
            "--quiet",
            "--workspace",
            "--bins",
            "--tests",
            "--examples",
            "--target-dir",
        ])
        .arg(target);
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    let answer = cargo.output().context("run \"cargo\"")?;
    if !answer.status.success() {
        bail!(
            "building the binaries failed:\n{}",
            String::from_utf8_lossy(&answer.stderr)
        );
    }
    Ok(())
}

/// When the newest Rust source or manifest under a folder was changed.
fn newest_source(folder: &Path) -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for entry in fs::read_dir(folder).with_context(|| format!("read \"{}\"", folder.display()))? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            newest = newest.max(newest_source(&path)?);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "toml") {
            newest = newest.max(entry.metadata()?.modified()?);
        }
    }
    Ok(newest)
}
