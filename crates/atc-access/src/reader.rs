//! The port through which the guard reads the cluster, with the host's own rights.

use atc_api::{BoxFuture, ResourceRef};
use serde_json::Value;

/// Why the cluster could not be read: the state for the guest, and words that name the object but hold nothing of its
/// content.
pub use atc_api::HostFailure as ReadFailure;

/// Where the objects of a kind are in the API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// `apps`; empty for core.
    pub group: String,
    /// `v1`.
    pub version: String,
    /// `Deployment`.
    pub kind: String,
    /// `deployments`.
    pub plural: String,
    /// Whether objects of the kind live in namespaces.
    pub namespaced: bool,
}

impl Mapping {
    /// `apps/v1`; `v1` for core.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// Reads the cluster. The guard decides *whether*, the reader knows *how*.
pub trait ClusterReader: Send + Sync {
    /// Where a kind is. The text is `apps/v1`, or a group whose preferred version is meant (`apps`), or `v1`, or empty
    /// for core. A kind that nobody serves is a failure with [`State::Error`](atc_api::State::Error).
    fn resolve(
        &self,
        api_version_or_group: &str,
        kind: &str,
    ) -> BoxFuture<'_, Result<Mapping, ReadFailure>>;

    /// Reads one object, `None` if there is none. The namespace is empty for cluster-scoped kinds.
    fn get(
        &self,
        mapping: &Mapping,
        namespace: &str,
        name: &str,
    ) -> BoxFuture<'_, Result<Option<Value>, ReadFailure>>;

    /// Takes note that this object is about to be read, so that no later change of it is missed. It is called before
    /// each [`get`](Self::get), also of objects that the run then may not have: what counts in the end is the ledger.
    fn interest(&self, target: &ResourceRef, mapping: &Mapping);
}
