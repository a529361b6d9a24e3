//! A control plane with clients, and namespaces in it.

use std::{borrow::Borrow, path::Path};

use anyhow::{Context, Result};
use controlplane::{ControlPlane, Options};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

use crate::{Api, AuditLog};

/// A control plane as one test sees it. Clients belong to the test's runtime, so each test makes its own.
#[derive(Debug)]
pub struct Cluster<P = &'static ControlPlane> {
    plane: P,
    /// Raw calls as administrator.
    pub api: Api,
}

impl Cluster {
    /// The control plane that all tests of this process share: full, with one fake node.
    ///
    /// # Panics
    ///
    /// When it could not be started.
    pub async fn shared() -> Self {
        Self::on(controlplane::shared()).await
    }

    /// A control plane that several tests of this process share in another way.
    ///
    /// # Panics
    ///
    /// When there is no client for it.
    pub async fn on(plane: &'static ControlPlane) -> Self {
        Self::of(plane).await
    }
}

impl Cluster<ControlPlane> {
    /// A control plane of the test's own, for tests that stop parts of it or that count everything.
    ///
    /// # Panics
    ///
    /// When it could not be started.
    #[expect(
        clippy::panic,
        reason = "without a control plane the test cannot go on"
    )]
    pub async fn own(options: Options) -> Self {
        let started = tokio::task::spawn_blocking(move || ControlPlane::start(&options)).await;
        match started.map_err(anyhow::Error::from).and_then(|plane| plane) {
            Ok(plane) => Self::of(plane).await,
            Err(error) => panic!("no control plane: {error:#}"),
        }
    }
}

impl<P: Borrow<ControlPlane>> Cluster<P> {
    #[expect(clippy::panic, reason = "without a client the test cannot go on")]
    async fn of(plane: P) -> Self {
        match client(&plane.borrow().kubeconfig(), None).await {
            Ok(client) => Self {
                plane,
                api: Api::new(client),
            },
            Err(error) => panic!("no client: {error:#}"),
        }
    }

    /// The processes behind it.
    pub fn plane(&self) -> &ControlPlane {
        self.plane.borrow()
    }

    /// A client as administrator.
    pub fn client(&self) -> kube::Client {
        self.api.client()
    }

    /// A client as `user`, who may do what the test grants.
    pub async fn user(&self) -> Result<kube::Client> {
        client(&self.plane().user_kubeconfig(), None).await
    }

    /// A client as the atc's user: its calls are in the audit log.
    pub async fn atc_user(&self) -> Result<kube::Client> {
        client(&self.plane().atc_kubeconfig(), None).await
    }

    /// A client as the atc's user whose requests go to another server, for instance a [`crate::Proxy`].
    pub async fn through(&self, server: &str) -> Result<kube::Client> {
        client(&self.plane().atc_kubeconfig(), Some(server)).await
    }

    /// Calls as administrator that are made once: others are made again when the answer is 429, 503 or 504.
    pub async fn once(&self) -> Result<Api> {
        let mut config = config(&self.plane().kubeconfig(), None).await?;
        config.default_retry = false;
        Ok(Api::new(kube::Client::try_from(config)?))
    }

    /// The calls of the atc's user from now on.
    pub fn audit(&self) -> AuditLog {
        AuditLog::from_now(self.plane().audit_log())
    }

    /// A new namespace, deleted when it is dropped.
    ///
    /// # Panics
    ///
    /// When the apiserver refuses it.
    #[expect(clippy::panic, reason = "without its namespace the test cannot go on")]
    pub async fn namespace(&self) -> TempNamespace<'_> {
        match TempNamespace::create(self.plane(), &self.api).await {
            Ok(namespace) => namespace,
            Err(error) => panic!("no namespace: {error:#}"),
        }
    }
}

async fn client(kubeconfig: &Path, server: Option<&str>) -> Result<kube::Client> {
    Ok(kube::Client::try_from(config(kubeconfig, server).await?)?)
}

/// That of a kubeconfig file and nothing else: the user's own configuration is never read.
async fn config(kubeconfig: &Path, server: Option<&str>) -> Result<kube::Config> {
    // An error means that it is installed already.
    _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut file = Kubeconfig::read_from(kubeconfig).context("read the kubeconfig")?;
    if let Some(server) = server {
        for cluster in file
            .clusters
            .iter_mut()
            .filter_map(|named| named.cluster.as_mut())
        {
            cluster.server = Some(server.to_owned());
        }
    }
    let mut config =
        kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.proxy_url = None;
    Ok(config)
}

/// A namespace of one test. Its deletion is asked for when it is dropped, and not waited for.
#[derive(Debug)]
pub struct TempNamespace<'a> {
    name: String,
    plane: &'a ControlPlane,
}

impl<'a> TempNamespace<'a> {
    async fn create(plane: &'a ControlPlane, api: &Api) -> Result<Self> {
        let body = json!({ "metadata": { "generateName": "t-" } });
        let made = api.post("/api/v1/namespaces", &body).await?;
        let name = made["metadata"]["name"]
            .as_str()
            .context("a namespace without a name")?
            .to_owned();
        Ok(Self { name, plane })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl std::fmt::Display for TempNamespace<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl Drop for TempNamespace<'_> {
    fn drop(&mut self) {
        // By a process of its own: the test's runtime may be about to end.
        _ = self
            .plane
            .request("DELETE", &format!("/api/v1/namespaces/{}", self.name), "");
    }
}
