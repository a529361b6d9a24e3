//! The cluster: the one place that talks to the API server on behalf of a release.
//!
//! Start at [`Cluster`]. Objects are JSON values from end to end: a typed round trip would lose the fields that this
//! program does not know.
//!
//! - [`mod@client`]: the HTTP client of the API server, and its configuration from a kubeconfig.
//! - `proxy`: through which proxy.
//! - [`mapping`], [`discovery`]: from a kind to its URL, one request per group-version, remembered.
//! - [`read`], `inventory`: get, list, metadata alone; of many objects at once.
//! - [`apply`], [`stages`], [`preview`]: server-side apply of one object, of a stage; dry run of all stages.
//! - [`fields`]: fields of others that become ours.
//! - [`delete`], [`prune`]: delete, orphan, remove stage by stage.
//! - [`status`]: status, finalizers and owner references of a custom resource.
//! - [`revisions`], [`find`], [`intent`], [`lock`]: the release's history in Secrets, the releases that there are, what
//!   is under way, a release's lock.
//! - [`compare`]: recorded objects against live ones, and back to the record.
//! - [`judge`], `explain`: read a live object and say whether it is ready; why not, by its Pods and events.
//! - [`wait`], [`wait_ready`]: until gone, until a CRD is served, until ready.
//! - [`kubeconfig`](mod@kubeconfig): read from a file, whose content no error shows.
//! - `token`, `plugin`: a token in a file that is replaced meanwhile; credentials of a plugin that are refused.
//! - `impersonation`: whom calls are made as that do not say so themselves.
//! - [`error`], [`refusal`]: what went wrong, in words, without the content of Secrets.

use std::sync::Arc;
use std::time::Duration;

use atc_api::Account;
use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use tokio::sync::Semaphore;

pub mod apply;
pub mod client;
pub mod compare;
pub mod delete;
pub mod discovery;
mod discreet;
pub mod error;
mod explain;
mod fields;
pub mod find;
mod impersonation;
pub mod intent;
mod inventory;
pub mod judge;
pub mod kubeconfig;
pub mod lock;
pub mod mapping;
mod plugin;
pub mod preview;
mod probe;
mod proxy;
pub mod prune;
pub mod read;
pub mod refusal;
mod request;
mod retry;
pub mod revisions;
pub mod stages;
pub mod status;
pub mod strays;
mod token;
pub mod wait;
pub mod wait_ready;

pub use apply::{Applied, ApplyOptions, Expect};
pub use client::{client, config};
pub use compare::{Compared, Restored, Standing};
pub use delete::{Deleted, Orphaned, Propagation};
pub use discovery::ScopeSnapshot;
pub use error::{ClusterError, ClusterErrors, ErrorKind, all};
pub use find::{Found, Unreadable};
pub use judge::{Judged, Listing, NoRules, Rules};
pub use kubeconfig::{KubeconfigFileError, kubeconfig};
pub use lock::{Holder, LOCK_LIFE, LOCK_RENEWAL, Lock, LockError};
pub use mapping::Mapping;
pub use preview::Preview;
pub use prune::{PRUNE_LIMIT, Pruned};
pub use read::{LiveMeta, PAGE};
pub use refusal::{Cause, FieldConflict, Refusal};
pub use revisions::RevisionError;
pub use status::MetadataEdit;
pub use wait::{EstablishError, Going};
pub use wait_ready::{Changes, Known, Unready, Wait, WaitError, WaitOptions};

use discovery::Discovery;

/// How a [`Cluster`] behaves.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Field manager of objects. Default `yoke`; at most 128 bytes, the API server's limit.
    pub field_manager: String,
    /// Field manager of status, finalizers and owner references of custom resources. Default `yoke.cd/atc`.
    pub status_manager: String,
    /// Time limit of one call, its answer included. Default 30 s: above the 10 s that an admission webhook may take
    /// three times over, below the minute after which the API server itself gives up. The client has none of its own,
    /// so that a dead connection would hold a call for ever.
    pub call_timeout: Duration,
    /// Calls in flight at once. Default 16: measured, more gain nothing (HTTP/1.1, one connection per call in flight).
    pub in_flight: usize,
    /// Of these, calls of one step. Default 8: half of them, so that a stage of a thousand objects does not stand in
    /// everybody's way.
    pub breadth: usize,
    /// Calls as service accounts in flight at once, and as many more of reviews; see [`Cluster::acting_as`]. Default 8: half
    /// of ours, since they wait for admission of others, ours included.
    pub acting_in_flight: usize,
    /// Longest time that one call is retried, waits included. Default 90 s: a server that says "come back in 7 s" for a
    /// minute is waited for, one that stays away longer is the caller's matter.
    pub patience: Duration,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            field_manager: atc_api::names::MANAGER_YOKE.to_owned(),
            status_manager: atc_api::names::MANAGER_ATC.to_owned(),
            call_timeout: Duration::from_secs(30),
            in_flight: 16,
            breadth: 8,
            acting_in_flight: 8,
            patience: Duration::from_secs(90),
        }
    }
}

/// A cluster, as a release sees it. Clones share everything: connections, the in-flight limit, discovery.
///
/// # Guarantees
/// - No call outlives its time limit, no answer its size limit; retries are few, jittered, bounded, and follow
///   `Retry-After`. While a call waits for its next try it holds no place in the in-flight limit.
/// - No call as ourselves waits for a place that a call as a service account has.
/// - No name, namespace, group or version reaches a URL unchecked.
/// - No error and no `Debug` output holds the content of a Secret.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
    /// Whom calls are made as, if not as ourselves.
    account: Option<Arc<Account>>,
    /// Whether they are those of a review.
    reviewing: bool,
    /// A namespace that will be made before anything is applied.
    expected: Option<Arc<str>>,
}

struct Inner {
    client: kube::Client,
    options: ClusterOptions,
    permits: Semaphore,
    acting: Semaphore,
    reviewing: Semaphore,
    discovery: Discovery,
}

impl Cluster {
    /// A cluster as this configuration says, with a client made by [`client`].
    ///
    /// # Errors
    /// When the configuration makes no client: unreadable certificates, an unknown proxy, ….
    pub fn connect(config: kube::Config, options: ClusterOptions) -> Result<Self, kube::Error> {
        Ok(Self::new(client(config)?, options))
    }

    /// A cluster behind this client.
    ///
    /// # Caveats
    /// A client made by `kube::Client::try_from` retries by itself, up to 15 times within one call, and one that impersonates
    /// somebody gives his groups to each service account that calls are made as: make it with [`client`].
    pub fn new(client: kube::Client, options: ClusterOptions) -> Self {
        let places = |count: usize| Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS));
        Self {
            inner: Arc::new(Inner {
                permits: places(options.in_flight),
                acting: places(options.acting_in_flight),
                reviewing: places(options.acting_in_flight),
                client,
                options,
                discovery: Discovery::default(),
            }),
            account: None,
            reviewing: false,
            expected: None,
        }
    }

    /// The same cluster, where all calls but those of discovery are made as this service account: the API server decides
    /// by its rights, and its errors name it. The server sets the groups of the account by itself.
    ///
    /// We need the right to `impersonate` the service account.
    ///
    /// Such calls have places of their own among those in flight: the API server may ask us for a review of what they write,
    /// which makes calls in its turn.
    #[must_use]
    pub fn acting_as(&self, account: Account) -> Self {
        Self {
            account: Some(Arc::new(account)),
            ..self.clone()
        }
    }

    /// The same for a review that the API server waits for: its calls as a service account have places that no other work
    /// takes, since it may be for such work that the API server asks.
    #[must_use]
    pub fn reviewing(&self) -> Self {
        Self {
            reviewing: true,
            ..self.clone()
        }
    }

    /// The same cluster, where this namespace is made, if it is not there, before anything is applied: a [preview](Self::preview)
    /// takes it for one that comes with the output.
    #[must_use]
    pub fn expecting(&self, namespace: &str) -> Self {
        Self {
            expected: Some(namespace.into()),
            ..self.clone()
        }
    }

    /// The places among the calls in flight that its calls take.
    fn permits(&self) -> &Semaphore {
        match (&self.account, self.reviewing) {
            (None, _) => &self.inner.permits,
            (Some(_), false) => &self.inner.acting,
            (Some(_), true) => &self.inner.reviewing,
        }
    }

    /// The same cluster, where calls are made as ourselves.
    fn as_ourselves(&self) -> Self {
        Self {
            account: None,
            ..self.clone()
        }
    }

    /// The service account that calls are made as.
    pub fn account(&self) -> Option<&Account> {
        self.account.as_deref()
    }

    /// The client underneath, which always acts as ourselves.
    pub fn client(&self) -> &kube::Client {
        &self.inner.client
    }

    /// Runs the calls of one step side by side, results in their order.
    async fn breadth<T>(&self, calls: Vec<BoxFuture<'_, T>>) -> Vec<T> {
        stream::iter(calls).buffered(self.width()).collect().await
    }

    /// Whether all of these say yes; asks no more of them after the first that does not.
    async fn all(&self, calls: Vec<BoxFuture<'_, bool>>) -> bool {
        let mut answers = stream::iter(calls).buffer_unordered(self.width());
        while let Some(yes) = answers.next().await {
            if !yes {
                return false;
            }
        }
        true
    }

    fn width(&self) -> usize {
        self.inner.options.breadth.max(1)
    }

    /// How it was set up.
    pub fn options(&self) -> &ClusterOptions {
        &self.inner.options
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("options", &self.inner.options)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod answering;
#[cfg(test)]
mod tests;
