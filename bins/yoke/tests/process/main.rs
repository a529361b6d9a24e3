//! The program as a process, without any cluster: streams, exit codes, signals, files.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "tests; their helpers are not seen as such"
)]

mod flights;
mod interrupt;
mod modules;
mod out;
mod proxies;
mod streams;
mod usage;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A home folder of its own, and nothing else of this machine.
pub(crate) struct Home(TempDir);

impl Home {
    /// With a kubeconfig whose server never answers.
    pub(crate) fn new() -> Self {
        let home = Self::bare();
        let config = "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u, \
                      namespace: from-context}}], clusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}], users: \
                      [{name: u, user: {token: t}}]}";
        home.put(".kube/config", config);
        home
    }

    /// Without a kubeconfig.
    pub(crate) fn bare() -> Self {
        Self(tempfile::tempdir().expect("folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file below it.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().expect("below")).expect("folder");
        std::fs::write(&path, content).expect("file");
        path
    }

    /// The program, run here.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("yoke"));
        command
            .args(args)
            .env_clear()
            .env("HOME", self.path())
            .current_dir(self.path());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub(crate) fn yoke(&self, args: &[&str]) -> Ran {
        Ran(self.command(args).output().expect("ran"))
    }

    /// Runs it with this on stdin.
    pub(crate) fn yoke_with(&self, args: &[&str], stdin: impl AsRef<[u8]>) -> Ran {
        let file = self.put(".stdin", stdin);
        let file = std::fs::File::open(file).expect("file");
        Ran(self.command(args).stdin(file).output().expect("ran"))
    }
}

/// How a run ended.
pub(crate) struct Ran(Output);

impl Ran {
    pub(crate) fn stdout(&self) -> &[u8] {
        &self.0.stdout
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    /// It ended well; gives stdout as text.
    pub(crate) fn ok(&self) -> String {
        assert_eq!(self.0.status.code(), Some(0), "{}", self.stderr());
        String::from_utf8_lossy(self.stdout()).into_owned()
    }

    /// It ended with this code, nothing on stdout, no crash, and these words in its message.
    pub(crate) fn failed(&self, code: i32, words: &[&str]) -> String {
        let stderr = self.stderr();
        assert_eq!(self.0.status.code(), Some(code), "{stderr}");
        assert!(
            self.stdout().is_empty(),
            "{:?}",
            String::from_utf8_lossy(self.stdout())
        );
        assert!(!stderr.contains("panicked"), "{stderr}");
        for word in words {
            assert!(stderr.contains(word), "no '{word}' in: {stderr}");
        }
        stderr
    }
}

/// A module that prints to stdout and stderr, does `end`, and exits with a code.
pub(crate) fn printer(stdout: &[u8], stderr: &[u8], end: &str, code: u32) -> Vec<u8> {
    let escaped = |bytes: &[u8]| {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
        hex.concat()
    };
    let number = |number: usize| escaped(&u32::try_from(number).expect("small").to_le_bytes());
    let (out, err) = (stdout.len(), stderr.len());
    let text = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (memory (export "memory") {pages})
            (data (i32.const 0) "{at}{out}{after}{err}")
            (data (i32.const 64) "{text}")
            (func (export "_start")
              (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 32)))
              (drop (call $write (i32.const 2) (i32.const 8) (i32.const 1) (i32.const 32)))
              {end}
              (call $exit (i32.const {code}))))"#,
        pages = (64 + out + err) / 65536 + 1,
        at = number(64),
        out = number(out),
        after = number(64 + out),
        err = number(err),
        text = escaped(&[stdout, stderr].concat()),
    );
    wat::parse_str(text).expect("module")
}

/// A ConfigMap as YAML.
pub(crate) fn configmap(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  k: v\n")
}
