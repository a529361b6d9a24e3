//! The engine: what all evaluations of a process share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atc_api::{Account, ResourceRef};
use atc_artifact::{Certificates, Credentials, FetchOptions, Fetcher, ModulePolicy};
use atc_flight::{Compiler, Runtime, RuntimeOptions};
use atc_release::cluster::Cluster;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::EngineError;
use crate::readiness::CustomReadiness;
use crate::strays::Strays;

/// How an engine is set up.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Folder for fetched and precompiled modules; `None` keeps nothing on disk.
    pub cache_dir: Option<PathBuf>,
    /// Who proves to registries of modules who we are; default nobody.
    pub credentials: Credentials,
    /// Where client certificates and CAs for single registries lie; default nowhere.
    pub certificates: Certificates,
    /// Whether modules are compiled for many runs (the default) or for one.
    pub compiler: Compiler,
    /// Which modules may run. Default: all.
    pub policy: ModulePolicy,
    /// Runs of flights under way at once. Default 64: each may hold its memory limit, most hold a few MiB.
    pub evaluations: usize,
    /// How long a stage of what is removed may take to be gone. Default 2 min, as in the existing tool; whoever comes
    /// back by itself waits less.
    pub prune_wait: Duration,
    /// How long a stage that is not the last may take to get ready. Default [`STAGE_WAIT`]; with 0 the next stage is made
    /// without waiting, but for kinds that it needs.
    pub stage_wait: Duration,
    /// Longest time between two looks at what is waited for and no watch shows. Default 2 s, as in the existing tool.
    pub poll: Duration,
    /// Objects that no instance's release may hold, since they are the process's own. Default none.
    pub reserved: Vec<ResourceRef>,
    /// Whether what is said of a stage that is not ready also has the words of its Pods and events: a few calls, for
    /// somebody who reads them. Default no.
    pub explain: bool,
}

/// How long a stage that is not the last may take to get ready, and a kind to be served: 30 s, as in the existing tool.
pub const STAGE_WAIT: Duration = Duration::from_secs(30);

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            cache_dir: None,
            credentials: Credentials::default(),
            certificates: Certificates::default(),
            compiler: Compiler::default(),
            policy: ModulePolicy::default(),
            evaluations: 64,
            prune_wait: Duration::from_mins(2),
            stage_wait: STAGE_WAIT,
            poll: Duration::from_secs(2),
            reserved: Vec::new(),
            explain: false,
        }
    }
}

/// Runs of converters at once: 8. They have turns of their own, since a flight that looks a converted object up waits for
/// one while it holds its own turn.
const CONVERSIONS: usize = 8;
/// Limited runs take at most one in four of all turns: whoever writes them sets their bounds himself.
const LIMITED_SHARE: usize = 4;

/// Evaluates flights and makes releases of what they print. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
    /// The cluster as releases reach it.
    reach: Cluster,
}

struct Shared {
    cluster: Cluster,
    runtime: Runtime,
    fetcher: Fetcher,
    slots: Semaphore,
    conversions: Semaphore,
    limited: Semaphore,
    options: EngineOptions,
    readiness: CustomReadiness,
    strays: Strays,
}

impl Engine {
    /// An engine on a cluster.
    pub fn new(cluster: Cluster, options: EngineOptions) -> Result<Self, EngineError> {
        let runtime = Runtime::new(RuntimeOptions {
            cache_dir: options.cache_dir.clone(),
            compiler: options.compiler,
            ..RuntimeOptions::default()
        })
        .map_err(|source| EngineError::Runtime {
            source: Box::new(source),
        })?;
        let fetcher = Fetcher::new(FetchOptions {
            cache_dir: options.cache_dir.clone(),
            credentials: options.credentials.clone(),
            certificates: options.certificates.clone(),
            ..FetchOptions::default()
        });
        let slots = Semaphore::new(options.evaluations.max(1));
        let limited = Semaphore::new((options.evaluations / LIMITED_SHARE).max(1));
        let reach = cluster.clone();
        let shared = Arc::new(Shared {
            cluster,
            runtime,
            fetcher,
            slots,
            conversions: Semaphore::new(CONVERSIONS),
            limited,
            options,
            readiness: CustomReadiness::default(),
            strays: Strays::default(),
        });
        Ok(Self { shared, reach })
    }

    /// The cluster it works on, as itself: records, intents, status and finalizers are its own matter.
    pub fn cluster(&self) -> &Cluster {
        &self.shared.cluster
    }

    /// The same engine, whose releases look up, apply and remove as this service account.
    #[must_use]
    pub(crate) fn acting_as(&self, account: Account) -> Self {
        Self {
            shared: self.shared.clone(),
            reach: self.shared.cluster.acting_as(account),
        }
    }

    /// The same engine for a review that the API server waits for.
    #[must_use]
    pub(crate) fn reviewing(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            reach: self.reach.reviewing(),
        }
    }

    /// The same engine, whose releases do so as itself.
    #[must_use]
    pub(crate) fn as_itself(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            reach: self.shared.cluster.clone(),
        }
    }

    /// The cluster as the objects of releases are looked up, applied, judged and removed.
    pub(crate) fn reach(&self) -> &Cluster {
        &self.reach
    }

    /// What tells this object, sent by whom it is sent, from another, or from the same sent by somebody else: what one may
    /// write says nothing of what another may.
    pub(crate) fn signed(&self, hash: String) -> String {
        match self.reach.account() {
            Some(account) => format!("{account} {hash}"),
            None => hash,
        }
    }

    /// Where modules are fetched from.
    pub fn fetcher(&self) -> &Fetcher {
        &self.shared.fetcher
    }

    /// What runs modules.
    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    /// How it was set up.
    pub fn options(&self) -> &EngineOptions {
        &self.shared.options
    }

    /// Users' rules of readiness; none until somebody tells them.
    pub fn readiness(&self) -> &CustomReadiness {
        &self.shared.readiness
    }

    pub(crate) fn found_strays(&self) -> &Strays {
        &self.shared.strays
    }

    /// A turn to run a flight; one whose author sets its bounds also takes one of those for its like, and takes that first.
    pub(crate) async fn evaluation_slot(
        &self,
        limited: bool,
    ) -> (Option<SemaphorePermit<'_>>, Option<SemaphorePermit<'_>>) {
        // The semaphores are never closed, so there is always a permit in the end.
        let share = if limited {
            self.shared.limited.acquire().await.ok()
        } else {
            None
        };
        (share, self.shared.slots.acquire().await.ok())
    }

    pub(crate) async fn conversion_slot(&self) -> Option<SemaphorePermit<'_>> {
        self.shared.conversions.acquire().await.ok()
    }
}
