//! Debian's `docker-registry`, the reference implementation of the distribution API, as a process.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};
use controlplane::{ControlPlane, Process};

use crate::eventually;

/// The program, of the package of that name.
const PROGRAM: &str = "docker-registry";
/// How long it may take to listen.
const START: Duration = Duration::from_secs(30);
/// `joe:pw` as `htpasswd -B` writes it; the registry takes no other form. The cost is the lowest there is.
const HTPASSWD: &str = "joe:$2b$04$rI1.drCzkXdyYYZ0IgScyu0pvt03JMlYkUuHNJPWCEmDX9HwgqrhK\n";

/// A running registry, ended when it is dropped. Its only user, where it asks for one, is `joe` with the password `pw`.
#[derive(Debug)]
pub struct DockerRegistry {
    host: String,
    ca: Option<PathBuf>,
    client: PathBuf,
    _process: Process,
}

/// What it asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct RegistryOptions {
    /// Whether it speaks TLS, with a certificate of the control plane's making.
    pub tls: bool,
    /// Whether it asks for user and password.
    pub password: bool,
    /// Whether it listens only to who shows a certificate of [`DockerRegistry::client`]; with TLS alone.
    pub client_certificate: bool,
}

impl DockerRegistry {
    /// Starts one in the folder of a control plane; `None`, with a word on stderr, where the program is not installed.
    pub async fn start(plane: &ControlPlane, options: RegistryOptions) -> Result<Option<Self>> {
        let there = Command::new(PROGRAM)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if there.is_err() {
            eprintln!("left out: {PROGRAM} is not installed (apt-get install docker-registry)");
            return Ok(None);
        }
        let port = TcpListener::bind(("127.0.0.1", 0))
            .and_then(|listener| listener.local_addr())
            .context("no free port")?
            .port();
        let name = format!("registry-{port}");
        let folder = plane.certificate(&name, &["localhost", "127.0.0.1"])?;
        let client = plane.certificate(&format!("{name}-client"), &["client"])?;
        let config = folder.join("config.json");
        std::fs::write(folder.join("htpasswd"), HTPASSWD)?;
        std::fs::write(&config, configuration(&folder, &client, port, options))?;

        let mut command = Command::new(PROGRAM);
        command.arg("serve").arg(&config);
        let process = plane.keep(&name, command)?;
        eventually(START, "the registry listens", || async {
            let connected = tokio::net::TcpStream::connect(("127.0.0.1", port)).await;
            Ok(connected.ok().map(drop))
        })
        .await;
        Ok(Some(Self {
            host: format!("127.0.0.1:{port}"),
            ca: options.tls.then(|| folder.join("ca.crt")),
            client,
            _process: process,
        }))
    }

    /// `127.0.0.1` and the port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The URL of a repository and a tag in it.
    pub fn oci(&self, name: &str) -> String {
        format!("oci://{}/{name}", self.host)
    }

    /// The folder with `server.crt` and `server.key`: what a client shows that it listens to.
    pub fn client(&self) -> &Path {
        &self.client
    }

    /// The certificate of the CA that its own is by, where it speaks TLS.
    pub fn ca(&self) -> Option<&Path> {
        self.ca.as_deref()
    }
}

/// JSON is YAML, too.
fn configuration(folder: &Path, client: &Path, port: u16, options: RegistryOptions) -> String {
    let mut config = serde_json::json!({
        "version": "0.1",
        "log": { "level": "warn" },
        "storage": { "filesystem": { "rootdirectory": folder.join("data") } },
        "http": { "addr": format!("127.0.0.1:{port}") },
    });
    if options.tls {
        config["http"]["tls"] = serde_json::json!({
            "certificate": folder.join("server.crt"),
            "key": folder.join("server.key"),
        });
    }
    if options.client_certificate {
        config["http"]["tls"]["clientcas"] = serde_json::json!([client.join("ca.crt")]);
    }
    if options.password {
        config["auth"] = serde_json::json!({
            "htpasswd": { "realm": "test", "path": folder.join("htpasswd") },
        });
    }
    config.to_string()
}
