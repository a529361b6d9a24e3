//! Runs the command line as a person would.

use std::{
    ffi::{OsStr, OsString},
    io::Write,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Result};
use controlplane::ControlPlane;
use tempfile::TempDir;

use crate::binary;

/// The `yoke` binary with a kubeconfig and a home folder of its own.
#[derive(Debug)]
pub struct Yoke {
    binary: PathBuf,
    kubeconfig: PathBuf,
    home: TempDir,
    environment: Vec<(OsString, OsString)>,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct YokeOutput {
    /// Exit code, or -1 when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Yoke {
    /// As administrator of the control plane.
    pub fn new(plane: &ControlPlane) -> Result<Self> {
        let home = tempfile::tempdir().context("a home folder")?;
        Ok(Self {
            binary: binary("yoke")?,
            kubeconfig: plane.kubeconfig(),
            home,
            environment: Vec::new(),
        })
    }

    /// With another kubeconfig.
    #[must_use]
    pub fn kubeconfig(mut self, path: PathBuf) -> Self {
        self.kubeconfig = path;
        self
    }

    /// With one more environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Runs it without standard input.
    pub async fn run(&self, arguments: &[impl AsRef<OsStr> + Sync]) -> Result<YokeOutput> {
        self.with_input(arguments, "").await
    }

    /// Runs it with this standard input.
    pub async fn with_input(
        &self,
        arguments: &[impl AsRef<OsStr> + Sync],
        input: &str,
    ) -> Result<YokeOutput> {
        let mut command = self.command(arguments);
        let input = input.to_owned();
        let run = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn().context("run \"yoke\"")?;
            if let Some(mut pipe) = child.stdin.take() {
                // It may end without having read.
                _ = pipe.write_all(input.as_bytes());
            }
            child.wait_with_output().context("wait for \"yoke\"")
        });
        Ok(YokeOutput::of(&run.await??))
    }

    /// Runs it with an stdout that nobody reads. What it would print is longer than a pipe holds, or the pipe is closed
    /// before it prints.
    pub async fn unread(&self, arguments: &[impl AsRef<OsStr> + Sync]) -> Result<YokeOutput> {
        let mut command = self.command(arguments);
        command.stdin(Stdio::null());
        let run = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn().context("run \"yoke\"")?;
            drop(child.stdout.take());
            child.wait_with_output().context("wait for \"yoke\"")
        });
        Ok(YokeOutput::of(&run.await??))
    }

    fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.home.path());
        for name in [
            "NAMESPACE",
            "XDG_CACHE_HOME",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "http_proxy",
            "https_proxy",
        ] {
            command.env_remove(name);
        }
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        command
            .current_dir(self.home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

impl YokeOutput {
    fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}
