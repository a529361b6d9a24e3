//! Where the workspace is, and how its commands are run.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The workspace that this program belongs to.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
    target: PathBuf,
    metadata: Value,
}

impl Workspace {
    /// Asks cargo about the workspace.
    ///
    /// # Errors
    ///
    /// When cargo cannot say.
    pub fn find() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("xtask is in no workspace")?
            .to_owned();
        let metadata = cargo_metadata(&root)?;
        let target = metadata["target_directory"]
            .as_str()
            .context("cargo metadata names no target folder")?
            .into();
        Ok(Self {
            root,
            target,
            metadata,
        })
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its target folder.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Its packages, as `cargo metadata --no-deps` describes them.
    pub fn packages(&self) -> &[Value] {
        self.metadata["packages"]
            .as_array()
            .map_or(&[], Vec::as_slice)
    }

    /// `cargo`, the one that runs this program, in the workspace's folder.
    pub fn cargo(&self) -> Command {
        let mut command = Command::new(cargo());
        command.current_dir(&self.root);
        command
    }

    /// Builds the binaries with the features that the tests have too, so that nothing is built twice.
    ///
    /// # Errors
    ///
    /// When they do not compile.
    pub fn build_all(&self) -> Result<()> {
        let mut command = self.cargo();
        run(command.args(["build", "--workspace", "--bins", "--tests", "--examples"]))
    }
}

/// What cargo says about the packages of a folder.
pub(crate) fn cargo_metadata(folder: &Path) -> Result<Value> {
    let mut command = Command::new(cargo());
    command
        .current_dir(folder)
        .args(["metadata", "--format-version=1", "--no-deps"]);
    serde_json::from_str(&output(&mut command)?).context("cargo metadata: no JSON")
}

/// cargo sets `CARGO` for what it runs. A toolchain override of rustup stays in force through it.
fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Runs a command whose words go to the terminal.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = words(command);
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("run `{name}`"))?;
    if !status.success() {
        bail!("`{name}` failed ({status})");
    }
    Ok(())
}

/// Runs a command and returns its standard output; its words are in the error when it fails.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = words(command);
    let answer = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("run `{name}`"))?;
    if !answer.status.success() {
        bail!(
            "`{name}` failed ({}):\n{}",
            answer.status,
            String::from_utf8_lossy(&answer.stderr).trim()
        );
    }
    String::from_utf8(answer.stdout).with_context(|| format!("`{name}` printed no text"))
}

fn words(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let mut words = vec![program.to_string_lossy()];
    words.extend(command.get_args().map(|a| a.to_string_lossy()));
    words.join(" ")
}
