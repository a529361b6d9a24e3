//! Runs the command line as a person would.

use std::{
    ffi::{OsStr, OsString},
    io::Write,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use anyhow::{Context, Result};
use controlplane::ControlPlane;
use serde_json::Value;
use tempfile::TempDir;

use crate::{Proxy, binary};

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

    /// As administrator, through a proxy.
    pub fn through(plane: &ControlPlane, proxy: &Proxy) -> Result<Self> {
        let yoke = Self::new(plane)?;
        let file = std::fs::read_to_string(plane.kubeconfig()).context("the kubeconfig")?;
        let mut config: Value = serde_json::from_str(&file).context("the kubeconfig")?;
        config["clusters"][0]["cluster"]["server"] = proxy.server().into();
        let path = yoke.home.path().join("through");
        std::fs::write(&path, config.to_string()).context("a kubeconfig")?;
        Ok(yoke.kubeconfig(path))
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
        self.start(arguments, input)?.end().await
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

    /// Begins to run it with this standard input.
    pub fn start(&self, arguments: &[impl AsRef<OsStr>], input: &str) -> Result<YokeRun> {
        let mut child = self.command(arguments).spawn().context("run \"yoke\"")?;
        if let Some(mut pipe) = child.stdin.take() {
            let input = input.to_owned();
            // On a thread: a pipe holds less than some inputs. It may end without having read.
            std::thread::spawn(move || pipe.write_all(input.as_bytes()));
        }
        Ok(YokeRun { child })
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

/// A run under way. It goes on if this is dropped.
#[derive(Debug)]
pub struct YokeRun {
    child: Child,
}

impl YokeRun {
    /// What sends it a signal by its name (`KILL`, `INT`, `TERM`), also while [`end`](Self::end) waits for it.
    pub fn signals(&self) -> impl Fn(&str) + use<> {
        let id = self.child.id().to_string();
        move |name| {
            // An error means that it has ended.
            _ = Command::new("kill")
                .args(["-s", name, &id])
                .stderr(Stdio::null())
                .status();
        }
    }

    /// Waits until it has ended.
    pub async fn end(self) -> Result<YokeOutput> {
        let wait = move || self.child.wait_with_output().context("wait for \"yoke\"");
        let output = tokio::task::spawn_blocking(wait).await??;
        Ok(YokeOutput::of(&output))
    }
}
