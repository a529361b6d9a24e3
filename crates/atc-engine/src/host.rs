//! Where access and release meet: the guard's reader over the cluster, with interest told to the watches.

use std::sync::Arc;

use atc_access::{AccessPolicy, ClusterReader, GuardedHost, Mapping, ReadFailure, ReadLedger};
use atc_api::{BoxFuture, HostCluster, ResourceRef, State};
use atc_release::cluster::{self, Cluster, ClusterError, ErrorKind};
use atc_watch::Target;
use serde_json::Value;

use crate::error::chain;
use crate::observer::Observer;

struct Reader {
    cluster: Cluster,
    observer: Arc<dyn Observer>,
}

/// The host of one run, and the ledger of what it reads.
pub(crate) fn guarded(
    cluster: Cluster,
    policy: AccessPolicy,
    observer: Arc<dyn Observer>,
) -> (Arc<dyn HostCluster>, ReadLedger) {
    let host = GuardedHost::new(Reader { cluster, observer }, policy);
    let ledger = host.ledger();
    (Arc::new(host), ledger)
}

fn failure(error: &ClusterError) -> ReadFailure {
    let state = match error.kind() {
        ErrorKind::NotFound => State::NotFound,
        ErrorKind::Unauthorized => State::Unauthenticated,
        ErrorKind::Forbidden => State::Forbidden,
        _ => State::Error,
    };
    ReadFailure::new(state, chain(error))
}

fn theirs(mapping: &Mapping) -> cluster::Mapping {
    cluster::Mapping {
        group: mapping.group.clone(),
        version: mapping.version.clone(),
        kind: mapping.kind.clone(),
        plural: mapping.plural.clone(),
        namespaced: mapping.namespaced,
    }
}

impl ClusterReader for Reader {
    fn resolve(
        &self,
        api_version_or_group: &str,
        kind: &str,
    ) -> BoxFuture<'_, Result<Mapping, ReadFailure>> {
        let (text, kind) = (api_version_or_group.to_owned(), kind.to_owned());
        Box::pin(async move {
            let found = self
                .cluster
                .mapping_of_group(&text, &kind)
                .await
                .map_err(|error| failure(&error))?;
            Ok(Mapping {
                group: found.group,
                version: found.version,
                kind: found.kind,
                plural: found.plural,
                namespaced: found.namespaced,
            })
        })
    }

    fn get(
        &self,
        mapping: &Mapping,
        namespace: &str,
        name: &str,
    ) -> BoxFuture<'_, Result<Option<Value>, ReadFailure>> {
        let (mapping, namespace, name) = (theirs(mapping), namespace.to_owned(), name.to_owned());
        Box::pin(async move {
            self.cluster
                .get(&mapping, &namespace, &name)
                .await
                .map_err(|error| failure(&error))
        })
    }

    fn interest(&self, target: &ResourceRef, mapping: &Mapping) {
        self.observer.interest(&Target::new(
            target.clone(),
            &mapping.version,
            &mapping.plural,
        ));
    }
}
