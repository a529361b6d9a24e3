//! How an atc that runs as a process is reached by the apiserver as if it ran in the cluster.

use std::{ffi::OsString, fs, net::TcpListener, path::PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use crate::ControlPlane;

/// The namespace that the atc belongs to.
const NAMESPACE: &str = "atc";

/// A Service of type ExternalName that leads to a port of this machine, and the certificate for it.
///
/// The apiserver calls the webhooks of a Service of that type at its `externalName`, which is `localhost` here.
#[derive(Debug, Clone)]
pub struct AtcService {
    /// Name of the Service in the namespace `atc`.
    pub name: String,
    /// Port of this machine that the atc has to listen on.
    pub port: u16,
    /// Folder with `ca.crt`, `server.crt` and `server.key`.
    pub certificates: PathBuf,
    /// Folder for the atc's caches, empty at first.
    pub cache: PathBuf,
    kubeconfig: PathBuf,
}

impl ControlPlane {
    /// Creates the namespace `atc` and in it the Service `name`, with a free port and new certificates. An existing
    /// Service of that name is replaced.
    ///
    /// # Errors
    ///
    /// When the apiserver refuses one of them.
    pub fn atc_service(&self, name: &str) -> Result<AtcService> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port")?;
        let port = listener.local_addr()?.port();
        drop(listener);
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
        let query = "fieldManager=controlplane&force=true";
        self.request(
            "PATCH",
            &format!("/api/v1/namespaces/{NAMESPACE}?{query}"),
            &namespace.to_string(),
        )?;
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "name": name },
            "spec": { "type": "ExternalName", "externalName": "localhost", "ports": [{ "port": port }] },
        });
        let path = format!("/api/v1/namespaces/{NAMESPACE}/services/{name}?{query}");
        self.request("PATCH", &path, &service.to_string())?;
        let dns = format!("{name}.{NAMESPACE}.svc");
        let certificates = self.certificate(
            &format!("service-{name}"),
            &[&dns, "localhost", "127.0.0.1"],
        )?;
        let cache = self.folder().join(format!("service-{name}-cache"));
        fs::create_dir_all(&cache).with_context(|| format!("create \"{}\"", cache.display()))?;
        Ok(AtcService {
            name: name.to_owned(),
            port,
            certificates,
            cache,
            kubeconfig: self.atc_kubeconfig(),
        })
    }
}

impl AtcService {
    /// The environment that an atc reads: its port, its certificates, its Service, its kubeconfig, its cache.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let port = OsString::from(self.port.to_string());
        vec![
            ("PORT", port.clone()),
            ("KUBE", self.kubeconfig.clone().into()),
            ("KUBECONFIG", self.kubeconfig.clone().into()),
            ("TLS_CA_CERT", self.certificates.join("ca.crt").into()),
            (
                "TLS_SERVER_CERT",
                self.certificates.join("server.crt").into(),
            ),
            (
                "TLS_SERVER_KEY",
                self.certificates.join("server.key").into(),
            ),
            ("SVC_NAME", self.name.clone().into()),
            ("SVC_NAMESPACE", NAMESPACE.into()),
            ("SVC_PORT", port),
            ("CACHE_FS", self.cache.clone().into()),
        ]
    }
}
