//! Modules of flights for tests.

use std::{path::PathBuf, process::Command, sync::OnceLock};

use anyhow::{Context, Result, bail};

use crate::binaries::{folder, is_ready, workspace};

/// Path of the module of a flight in `docs/examples` or `tests/guests`, by its name: `<target>/guests/<name>.wasm`.
/// They are built by `cargo xtask guests`, which is run here once unless `cargo xtask test` has done so.
pub fn guest(name: &str) -> Result<PathBuf> {
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    let target = folder()?.parent().context("no target folder")?.to_owned();
    if !is_ready() {
        let build = || {
            let mut cargo = Command::new("cargo");
            cargo
                .current_dir(workspace())
                .args(["run", "--quiet", "--package", "xtask"]);
            cargo
                .arg("--target-dir")
                .arg(&target)
                .args(["--", "guests"])
                .env("CARGO_TARGET_DIR", &target);
            let answer = cargo.output().context("run \"cargo\"")?;
            if !answer.status.success() {
                bail!(
                    "building the flights failed:\n{}",
                    String::from_utf8_lossy(&answer.stderr)
                );
            }
            Ok(())
        };
        let answer = BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}")));
        answer
            .as_ref()
            .map_err(|error| anyhow::anyhow!("{error}"))?;
    }
    let path = target.join("guests").join(format!("{name}.wasm"));
    if !path.is_file() {
        bail!("no flight \"{name}\": \"{}\" is not there", path.display());
    }
    Ok(path)
}
