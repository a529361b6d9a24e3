//! Which kinds the API server serves, and where: one request per group-version, remembered until it proves wrong.
//!
//! Reading everything that a server serves takes 88 ms (22 groups); a release touches a handful of group-versions, at
//! 1 to 3 ms each. A broken aggregated API harms only its own group. What is remembered is forgotten when a request
//! meets an unserved URL, and read again when a kind is missing (a CRD may have been created meanwhile).

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use http::Method;
use serde::Deserialize;

use super::mapping::{Mapping, group_version_path, segment};
use super::request::Call;
use super::{Cluster, ClusterError, ErrorKind};
use crate::decorate::Scopes;

/// A group-version that lacks the wanted kind is read again at most this often. A CRD of our own is announced by
/// [`Cluster::forget_group`] and waits for nothing.
pub const REREAD: Duration = Duration::from_secs(1);
/// How long a group's list of versions is trusted: which version is preferred changes with a CRD, and nothing else
/// would tell.
const GROUP_LIFE: Duration = Duration::from_mins(1);
/// Group-versions remembered. A server has dozens; a flight may ask for any number that do not exist.
const MAX_SLOTS: usize = 1024;

/// What is known, by group-version (`apps/v1`) and by group (`apps/`).
#[derive(Default)]
pub(super) struct Discovery {
    versions: RwLock<HashMap<String, Arc<Slot<Kinds>>>>,
    groups: RwLock<HashMap<String, Arc<Slot<Vec<String>>>>>,
}

/// One document: what was read last, and the turn to read it.
struct Slot<T> {
    known: RwLock<Option<(Instant, Option<Arc<T>>)>>,
    turn: tokio::sync::Mutex<()>,
}

/// A kind's name to its mapping.
type Kinds = HashMap<String, Mapping>;

#[derive(Deserialize)]
struct ResourceList {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    versions: Vec<GroupVersion>,
    #[serde(rename = "preferredVersion")]
    preferred: Option<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self {
            known: RwLock::new(None),
            turn: tokio::sync::Mutex::new(()),
        }
    }
}

impl<T> Slot<T> {
    /// What was read last, and when. The inner `None`: the server does not serve it.
    fn known(&self) -> Option<(Instant, Option<Arc<T>>)> {
        self.known
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, value: Option<(Instant, Option<Arc<T>>)>) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

/// The slot of a key, made when there is none. When there are too many, those of documents that do not exist go first.
fn slot<T>(map: &RwLock<HashMap<String, Arc<Slot<T>>>>, key: &str) -> Arc<Slot<T>> {
    if let Some(slot) = map.read().unwrap_or_else(PoisonError::into_inner).get(key) {
        return slot.clone();
    }
    let mut map = map.write().unwrap_or_else(PoisonError::into_inner);
    if map.len() >= MAX_SLOTS {
        map.retain(|_, slot| matches!(slot.known(), Some((_, Some(_)))));
        if map.len() >= MAX_SLOTS {
            map.clear();
        }
    }
    map.entry(key.to_owned()).or_default().clone()
}

impl Cluster {
    /// Where the objects of a kind live. `api_version` is `apps/v1`, or `v1` for core.
    ///
    /// # Errors
    /// [`ErrorKind::NoSuchKind`] when the server does not serve it (asked anew at most each [`REREAD`]); whatever the
    /// request for its group-version meets.
    pub async fn mapping(&self, api_version: &str, kind: &str) -> Result<Mapping, ClusterError> {
        if let Some(mapping) = self.cached_mapping(api_version, kind) {
            return Ok(mapping);
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let path = group_version_path(group, version);
        let slot = slot(&self.inner.discovery.versions, api_version);
        let found = |kinds: &Kinds| kinds.get(kind).cloned();
        let kinds = self
            .document(
                &slot,
                api_version,
                path,
                |kinds| kinds.contains_key(kind),
                None,
                |list: ResourceList| kinds(group, version, list),
            )
            .await?;
        kinds
            .as_deref()
            .and_then(found)
            .ok_or_else(|| no_such_kind(api_version, kind))
    }

    /// Where the objects of a kind live, for a caller who knows the group and perhaps not the version: `apps`,
    /// `apps/v1`, `v1`, or empty for core. Without a version the preferred one is taken, or else the first that has
    /// the kind.
    pub async fn mapping_of_group(
        &self,
        group_or_api_version: &str,
        kind: &str,
    ) -> Result<Mapping, ClusterError> {
        let text = group_or_api_version;
        if text.is_empty() {
            return self.mapping("v1", kind).await;
        }
        if text.contains('/') || is_version(text) {
            return self.mapping(text, kind).await;
        }
        let path = segment("group", text).map(|group| format!("/apis/{group}"));
        let slot = slot(&self.inner.discovery.groups, text);
        let versions = self
            .document(&slot, text, path, |_| true, Some(GROUP_LIFE), versions)
            .await?;
        let mut broken = None;
        for version in versions.as_deref().into_iter().flatten() {
            match self.mapping(&format!("{text}/{version}"), kind).await {
                Ok(mapping) => return Ok(mapping),
                Err(error) if error.kind() == ErrorKind::NoSuchKind => {}
                Err(error) => broken = broken.or(Some(error)),
            }
        }
        Err(broken.unwrap_or_else(|| no_such_kind(text, kind)))
    }

    /// What is remembered of a kind, without asking anybody.
    pub fn cached_mapping(&self, api_version: &str, kind: &str) -> Option<Mapping> {
        let versions = self
            .inner
            .discovery
            .versions
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let (_, kinds) = versions.get(api_version)?.known()?;
        kinds?.get(kind).cloned()
    }

    /// Forgets everything of a group: after one of its CRDs was created, changed or deleted.
    pub fn forget_group(&self, group: &str) {
        let of_group = |key: &str| key.split_once('/').map_or("", |(group, _)| group) == group;
        // The slots stay: whoever waits for a turn reads anew.
        for (key, slot) in self
            .inner
            .discovery
            .versions
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            if of_group(key) {
                slot.set(None);
            }
        }
        if let Some(slot) = self
            .inner
            .discovery
            .groups
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(group)
        {
            slot.set(None);
        }
    }

    /// The scopes of these kinds (`apiVersion`, `kind`), with one request per group-version not yet known. Kinds that
    /// the server does not serve are absent from the snapshot.
    ///
    /// # Errors
    /// When a group-version cannot be read (a broken aggregated API, no connection): the objects of that group could
    /// not be applied anyhow.
    pub async fn scopes<'a>(
        &self,
        kinds: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<ScopeSnapshot, ClusterError> {
        let mut wanted: Vec<_> = kinds.into_iter().collect();
        wanted.sort_unstable();
        wanted.dedup();
        // All at once: the slots' turns see to it that a group-version is read once.
        let mappings = futures::future::join_all(
            wanted
                .iter()
                .map(|(api_version, kind)| self.mapping(api_version, kind)),
        )
        .await;
        let mut snapshot = ScopeSnapshot::default();
        for ((api_version, kind), mapping) in wanted.into_iter().zip(mappings) {
            match mapping {
                Ok(mapping) => {
                    snapshot
                        .kinds
                        .insert((api_version.to_owned(), kind.to_owned()), mapping);
                }
                Err(error) if error.kind() == ErrorKind::NoSuchKind => {}
                Err(error) => return Err(error),
            }
        }
        Ok(snapshot)
    }

    /// A document, read by one caller at a time. What is known is taken when it satisfies `enough` and is younger than
    /// `life`, and when it does not satisfy but was read less than [`REREAD`] ago. `None`: the server does not have it.
    async fn document<T, D: serde::de::DeserializeOwned>(
        &self,
        slot: &Slot<T>,
        name: &str,
        path: Result<String, super::mapping::PathError>,
        enough: impl Fn(&T) -> bool,
        life: Option<Duration>,
        read: impl FnOnce(D) -> T,
    ) -> Result<Option<Arc<T>>, ClusterError> {
        let call = Call::at("discover", Method::GET, name.to_owned(), false, path)?;
        let _turn = slot.turn.lock().await;
        if let Some((at, document)) = slot.known() {
            let age = at.elapsed();
            let satisfied = document.as_deref().is_some_and(&enough);
            if age < REREAD || (satisfied && life.is_none_or(|life| age < life)) {
                return Ok(document);
            }
        }
        // All share what is found, so nobody's rights but our own decide.
        let document = match self.as_ourselves().call(&call).await {
            Ok(answer) => {
                let document: D = serde_json::from_value(answer.json(&call)?)
                    .map_err(|error| call.nonsense(error.to_string()))?;
                Some(Arc::new(read(document)))
            }
            Err(error) if matches!(error.kind(), ErrorKind::NoSuchKind | ErrorKind::NotFound) => {
                None
            }
            Err(error) => return Err(error),
        };
        slot.set(Some((Instant::now(), document.clone())));
        Ok(document)
    }
}

/// What a set of objects needs to know of discovery, as it was at one moment.
#[derive(Clone, Debug, Default)]
pub struct ScopeSnapshot {
    kinds: HashMap<(String, String), Mapping>,
}

impl ScopeSnapshot {
    /// The mapping of a kind of the snapshot.
    pub fn mapping(&self, api_version: &str, kind: &str) -> Option<&Mapping> {
        self.kinds.get(&(api_version.to_owned(), kind.to_owned()))
    }
}

impl Scopes for ScopeSnapshot {
    fn namespaced(&self, api_version: &str, kind: &str) -> Option<bool> {
        self.mapping(api_version, kind)
            .map(|mapping| mapping.namespaced)
    }
}

fn no_such_kind(api_version: &str, kind: &str) -> ClusterError {
    ClusterError::NoSuchKind {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    }
}

/// Whether a text is a Kubernetes version (`v1`, `v2beta3`) and so names the core group's, not a group.
fn is_version(text: &str) -> bool {
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v') else {
        return false;
    };
    let split = rest.split_once("alpha").or_else(|| rest.split_once("beta"));
    split.map_or(digits(rest), |(major, minor)| {
        digits(major) && digits(minor)
    })
}

/// Kinds of a group-version; subresources (`deployments/scale`) are none.
fn kinds(group: &str, version: &str, list: ResourceList) -> Kinds {
    let mut kinds = Kinds::new();
    for resource in list.resources {
        if resource.name.contains('/') {
            continue;
        }
        // The first resource of a kind is the real one.
        kinds
            .entry(resource.kind.clone())
            .or_insert_with(|| Mapping {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: resource.kind,
                plural: resource.name,
                namespaced: resource.namespaced,
            });
    }
    kinds
}

/// Versions of a group, the preferred one first.
fn versions(group: Group) -> Vec<String> {
    let mut versions: Vec<_> = group.preferred.into_iter().map(|v| v.version).collect();
    for version in group.versions {
        if !versions.contains(&version.version) {
            versions.push(version.version);
        }
    }
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_texts() {
        for (text, expect) in [
            ("v1", true),
            ("v2beta3", true),
            ("v1alpha1", true),
            ("apps", false),
            ("v", false),
            ("vx", false),
            ("v1.example.com", false),
            ("velero.io", false),
        ] {
            assert_eq!(is_version(text), expect, "{text}");
        }
    }
}
