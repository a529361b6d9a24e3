//! The binaries under test, as cargo built them beside the test itself.

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
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    if let Some(path) = std::env::var_os(name.to_uppercase()).filter(|v| !v.is_empty()) {
        return Ok(path.into());
    }
    let folder = folder()?;
    if !is_ready() {
        let built = BUILT.get_or_init(|| build(&folder).map_err(|error| format!("{error:#}")));
        built.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
    }
    let path = folder.join(name);
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

/// Builds both with the command that `cargo xtask test` uses, so that features, and with them the dependencies' builds,
/// are the same.
fn build(folder: &Path) -> Result<()> {
    let root = workspace();
    let mut newest = SystemTime::UNIX_EPOCH;
    for part in ["crates", "bins"] {
        newest = newest.max(newest_source(&root.join(part))?);
    }
    let fresh = |name| {
        folder
            .join(name)
            .metadata()
            .and_then(|m| m.modified())
            .is_ok_and(|time| time > newest)
    };
    if fresh("atc") && fresh("yoke") {
        return Ok(());
    }
    let target = folder.parent().context("no target folder")?;
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(&root)
        .args([
            "build",
            "--quiet",
            "--workspace",
            "--bins",
            "--tests",
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
