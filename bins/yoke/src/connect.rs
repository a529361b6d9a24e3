//! From flags and environment to a cluster and the namespace to work in.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use atc_engine::release::cluster::{self, Cluster, ClusterOptions};
use kube::Config;
use kube::config::{Kubeconfig, KubeconfigError};

use crate::cli::{Global, given};
use crate::render;

/// The namespace where neither a flag nor the kubeconfig's context names one.
const DEFAULT_NAMESPACE: &str = "default";
/// Where a command that needs no cluster is connected to: nothing can listen there.
const NOWHERE: &str = "http://127.0.0.1:1";

/// A cluster and a place in it.
pub(crate) struct Connection {
    /// The cluster. Nothing has been asked of it yet.
    pub(crate) cluster: Cluster,
    /// The namespace of the flag, else of the context, else `default`.
    pub(crate) namespace: String,
}

/// Whether a command talks to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// It does.
    Cluster,
    /// It does not, and works without any kubeconfig. No plugin for credentials is started either.
    Nothing,
}

/// Finds the cluster. Nothing is sent yet.
pub(crate) async fn connect(
    global: &Global,
    namespace: Option<&str>,
    need: Need,
) -> anyhow::Result<Connection> {
    let context = given(global.kube_context.as_ref());
    let config = match (read(global)?, need) {
        (Some(kubeconfig), _) => {
            let contexts = contexts(&kubeconfig);
            let config = cluster::config(kubeconfig, context).await;
            Some(config.map_err(|error| unusable(error, &contexts))?)
        }
        (None, _) if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() && context.is_none() => {
            Some(
                Config::incluster()
                    .context("there is no kubeconfig, and the pod's own account cannot be used")?,
            )
        }
        (None, Need::Nothing) if context.is_none() => None,
        (None, _) if std::env::var_os("KUBECONFIG").is_some_and(|listed| !listed.is_empty()) => {
            bail!(
                "there is no kubeconfig: no file that $KUBECONFIG names is there with a cluster in it"
            )
        }
        (None, _) => bail!(
            "there is no kubeconfig: neither -kubeconfig nor $KUBECONFIG names a file, and ~/.kube/config does not exist"
        ),
    };
    let of_context = config
        .as_ref()
        .map(|config| config.default_namespace.clone());
    let namespace = namespace
        .map(str::to_owned)
        .filter(|name| !name.is_empty())
        .or(of_context.filter(|name| !name.is_empty()))
        .unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
    let config = match (config, need) {
        (Some(config), Need::Cluster) => config,
        _ => Config::new(NOWHERE.parse().context("no address")?),
    };
    tracing::debug!(
        server = config.cluster_url.authority().map(|authority| authority
            .as_str()
            .rsplit('@')
            .next()
            .unwrap_or_default()),
        namespace,
        "cluster"
    );
    let options = ClusterOptions::default();
    let options = ClusterOptions {
        // Nobody else is served by this process. One place stays for the renewal of a claim.
        breadth: options.in_flight.saturating_sub(1),
        ..options
    };
    let client = cluster::client(config).context("cannot set up the client of the cluster")?;
    Ok(Connection {
        cluster: Cluster::new(client, options),
        namespace,
    })
}

/// The kubeconfig: of the flag (which must be there), of `$KUBECONFIG` (those files of its list that are there, merged),
/// else of the home folder. `None` where there is none, or an empty one.
fn read(global: &Global) -> anyhow::Result<Option<Kubeconfig>> {
    if let Some(path) = given(global.kubeconfig.as_ref()) {
        return Ok(Some(cluster::kubeconfig(path)?));
    }
    let mut merged: Option<Kubeconfig> = None;
    for path in paths(
        std::env::var_os("KUBECONFIG").as_deref(),
        std::env::var_os("HOME"),
    ) {
        if matches!(path.try_exists(), Ok(false)) {
            continue;
        }
        let next = cluster::kubeconfig(&path)?;
        merged = Some(match merged {
            Some(before) => before
                .merge(next)
                .context("the kubeconfigs of $KUBECONFIG do not fit together")?,
            None => next,
        });
    }
    Ok(merged.filter(|config| !(config.clusters.is_empty() && config.contexts.is_empty())))
}

/// The names of a kubeconfig's contexts.
fn contexts(kubeconfig: &Kubeconfig) -> Vec<String> {
    let contexts = kubeconfig.contexts.iter();
    contexts.map(|context| context.name.clone()).collect()
}

/// Why there is no cluster in a kubeconfig that could be read, which has these contexts.
fn unusable(error: KubeconfigError, contexts: &[String]) -> anyhow::Error {
    match error {
        KubeconfigError::CurrentContextNotSet => {
            anyhow::anyhow!("the kubeconfig has no current context: name one with -kube-context")
        }
        KubeconfigError::LoadContext(name) => {
            let has = match contexts {
                [] => "none".to_owned(),
                some => render::names(some),
            };
            anyhow::anyhow!("the kubeconfig has no context \"{name}\"; it has {has}")
        }
        KubeconfigError::LoadClusterOfContext(name) => {
            anyhow::anyhow!("the kubeconfig has no cluster \"{name}\", which its context names")
        }
        error @ KubeconfigError::ParseNoProxy(_) => {
            anyhow::Error::new(error).context("the variable NO_PROXY cannot be used")
        }
        error @ KubeconfigError::ParseProxyUrl(_) => anyhow::Error::new(error)
            .context("the proxy of the kubeconfig, or of the environment, cannot be used"),
        error => anyhow::Error::new(error).context("the kubeconfig cannot be used"),
    }
}

/// The files that may make up the kubeconfig.
fn paths(listed: Option<&OsStr>, home: Option<OsString>) -> Vec<PathBuf> {
    let listed: Vec<PathBuf> = listed
        .into_iter()
        .flat_map(std::env::split_paths)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    if listed.is_empty() {
        return home
            .into_iter()
            .filter(|home| !home.is_empty())
            .map(|home| PathBuf::from(home).join(".kube/config"))
            .collect();
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_that_is_missing_is_told_with_those_there_are() {
        let said = |contexts: &[&str]| {
            let contexts: Vec<String> = contexts.iter().map(|name| (*name).to_owned()).collect();
            unusable(KubeconfigError::LoadContext("c".to_owned()), &contexts).to_string()
        };
        let begin = "the kubeconfig has no context \"c\"; it has";
        assert_eq!(said(&["a", "b"]), format!("{begin} a, b"));
        assert_eq!(said(&[]), format!("{begin} none"));
    }

    #[test]
    fn files_of_the_environment() {
        let check = |listed: Option<&str>, home: Option<&str>, wanted: &[&str]| {
            let got = paths(listed.map(OsStr::new), home.map(Into::into));
            assert_eq!(
                got,
                wanted.iter().map(PathBuf::from).collect::<Vec<_>>(),
                "{listed:?} {home:?}"
            );
        };
        check(None, Some("/home/me"), &["/home/me/.kube/config"]);
        check(Some(""), Some("/home/me"), &["/home/me/.kube/config"]);
        check(Some(":"), Some("/home/me"), &["/home/me/.kube/config"]);
        check(Some("/a:/b::c"), Some("/home/me"), &["/a", "/b", "c"]);
        check(None, None, &[]);
        check(None, Some(""), &[]);
    }
}
