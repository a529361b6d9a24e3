//! Waiting, always bounded: until objects are gone, until a CRD is served, until objects are ready.

use std::time::{Duration, Instant};

use futures::FutureExt;
use serde_json::Value;

use super::mapping::Mapping;
use super::{Cluster, ClusterError, ErrorKind};

/// First pause between two looks; doubles up to the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// Longest pause between two looks at something that goes away or is being established.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// An object on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Going {
    /// Its kind.
    pub mapping: Mapping,
    /// Its namespace; empty for cluster scope.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid: another object of that name does not count.
    pub uid: String,
}

/// Why a CRD is not there to be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EstablishError {
    /// The time was up.
    #[error("CustomResourceDefinition \"{name}\" is not served after {limit:?}: {why}")]
    Late {
        /// The CRD.
        name: String,
        /// The limit.
        limit: Duration,
        /// What it lacks.
        why: String,
    },
    /// The server refuses its names: another CRD has them.
    #[error("CustomResourceDefinition \"{name}\" can't be established: {why}")]
    Refused {
        /// The CRD.
        name: String,
        /// What its conditions say.
        why: String,
    },
    /// The CRD could not be read.
    #[error("cannot see whether CustomResourceDefinition \"{name}\" is served")]
    Cluster {
        /// The CRD.
        name: String,
        /// Why.
        #[source]
        source: ClusterError,
    },
}

/// Pauses that double.
struct Pauses(Duration);

impl Pauses {
    fn new() -> Self {
        Self(FIRST_PAUSE)
    }

    /// Sleeps, but not past the deadline. False when the deadline has come.
    async fn pause(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        tokio::time::sleep(self.0.min(left)).await;
        self.0 = (self.0 * 2).min(MAX_PAUSE);
        true
    }
}

impl Cluster {
    /// Waits until these objects are gone, at most `limit`; returns those that are not. Zero looks at none of them.
    ///
    /// Looks at the metadata of each, less often the longer it takes. An object that cannot be read counts as there.
    pub async fn wait_gone(&self, objects: &[Going], limit: Duration) -> Vec<Going> {
        let deadline = Instant::now() + limit;
        let mut left = objects.to_vec();
        let mut pauses = Pauses::new();
        while !left.is_empty() && pauses.pause(deadline).await {
            let looks = left
                .into_iter()
                .map(|object| self.still_there(object).boxed());
            left = self
                .breadth(looks.collect())
                .await
                .into_iter()
                .flatten()
                .collect();
        }
        left
    }

    /// The object, unless it is gone.
    async fn still_there(&self, object: Going) -> Option<Going> {
        let there = match self
            .metadata(&object.mapping, &object.namespace, &object.name)
            .await
        {
            Ok(live) => live.is_some_and(|live| live.uid() == object.uid),
            Err(error) => error.kind() != ErrorKind::NoSuchKind,
        };
        there.then_some(object)
    }

    /// Waits until a CRD is established and discovery serves its kind in every served version, at most `limit`, and
    /// forgets what discovery knew of its group. Afterwards [`Cluster::mapping`] finds the kind.
    pub async fn wait_established(
        &self,
        name: &str,
        limit: Duration,
    ) -> Result<(), EstablishError> {
        let deadline = Instant::now() + limit;
        let failed = |source| EstablishError::Cluster {
            name: name.to_owned(),
            source,
        };
        let mut pauses = Pauses::new();
        loop {
            let live = self.get(&crds(), "", name).await.map_err(failed)?;
            let why = match live.as_ref().map(establishment) {
                None => "there is no such CustomResourceDefinition".to_owned(),
                Some(Establishment::Refused(why)) => {
                    return Err(EstablishError::Refused {
                        name: name.to_owned(),
                        why,
                    });
                }
                Some(Establishment::Pending(why)) => why,
                Some(Establishment::Established(kinds)) => {
                    match self.first_unserved(&kinds).await.map_err(failed)? {
                        None => return Ok(()),
                        Some(api_version) => {
                            format!("discovery does not list it in {api_version} yet")
                        }
                    }
                }
            };
            if !pauses.pause(deadline).await {
                return Err(EstablishError::Late {
                    name: name.to_owned(),
                    limit,
                    why,
                });
            }
        }
    }

    /// The first of these kinds that discovery does not serve, read anew.
    async fn first_unserved(&self, kinds: &Kinds) -> Result<Option<String>, ClusterError> {
        self.forget_group(&kinds.group);
        for version in &kinds.versions {
            let api_version = format!("{}/{version}", kinds.group);
            match self.mapping(&api_version, &kinds.kind).await {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NoSuchKind => {
                    return Ok(Some(api_version));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// The mapping of CustomResourceDefinitions.
pub(super) fn crds() -> Mapping {
    Mapping {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
        namespaced: false,
    }
}

/// What a CRD serves.
#[derive(Debug, PartialEq, Eq)]
struct Kinds {
    group: String,
    kind: String,
    versions: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Establishment {
    Established(Kinds),
    Pending(String),
    Refused(String),
}

/// What the conditions of a CRD say.
fn establishment(crd: &Value) -> Establishment {
    let condition = |kind: &str| {
        crd["status"]["conditions"]
            .as_array()
            .and_then(|all| all.iter().find(|c| c["type"] == kind))
    };
    if let Some(names) = condition("NamesAccepted").filter(|c| c["status"] == "False") {
        return Establishment::Refused(
            names["message"]
                .as_str()
                .unwrap_or("its names are taken")
                .to_owned(),
        );
    }
    if !crd["metadata"]["deletionTimestamp"].is_null() {
        return Establishment::Pending("it is being deleted".to_owned());
    }
    if condition("Established").is_none_or(|c| c["status"] != "True") {
        return Establishment::Pending("it is not established yet".to_owned());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let served = crd["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|v| v["served"] == true);
    Establishment::Established(Kinds {
        group: text(&crd["spec"]["group"]),
        kind: text(&crd["spec"]["names"]["kind"]),
        versions: served.map(|v| text(&v["name"])).collect(),
    })
}
