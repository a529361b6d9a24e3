//! What all parts of the controller share: the engine, the watches, the queue, the known kinds.

use std::sync::Arc;

use atc_engine::Engine;
use atc_engine::watch::{Effect, WatchHub};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::bootstrap::WebhookService;
use crate::certificates::SelfMade;
use crate::flights;
use crate::health::Health;
use crate::hooks::Hooks;
use crate::kinds::Kinds;
use crate::metrics::Metrics;
use crate::own_crds::OwnCrds;
use crate::owner::Owner;
use crate::protect::Protected;
use crate::queue::{Cause, SharedQueue};

/// Shared by all tasks.
pub(crate) struct Control {
    pub(crate) engine: Engine,
    pub(crate) hub: WatchHub<Owner>,
    pub(crate) queue: Arc<SharedQueue<Owner>>,
    pub(crate) kinds: Kinds,
    pub(crate) service: WebhookService,
    /// The certificate of our own making, where none is given.
    pub(crate) certificates: Option<Arc<SelfMade>>,
    pub(crate) hooks: Hooks,
    /// How often our own CRDs had to be put back.
    pub(crate) own_crds: OwnCrds,
    pub(crate) health: Health,
    pub(crate) metrics: Metrics,
    /// The instances of a kind have been told for the first time.
    pub(crate) listed: Notify,
    /// What mode `static` protects.
    pub(crate) protected: Protected,
    /// Ends all tasks.
    pub(crate) stop: CancellationToken,
}

impl Control {
    /// Asks for an evaluation because of an edit.
    pub(crate) fn edited(&self, owner: &Owner, what: impl Into<String>) {
        self.queue
            .push(owner, Effect::Evaluate, Cause::Edit(what.into()));
    }

    /// Has all webhook configurations written with these CAs.
    pub(crate) fn tell_ca(&self, bundle: Vec<u8>, what: &str) {
        self.service.set_ca_bundle(bundle);
        self.look_at_all(what);
    }

    /// Has all webhook configurations looked at.
    pub(crate) fn look_at_all(&self, what: &str) {
        let airways = self.kinds.all().into_iter();
        let airways = airways
            .filter(|(name, _)| !flights::is_kind(name))
            .map(|(name, _)| Owner::Airway(name));
        for owner in std::iter::once(Owner::Process).chain(airways) {
            self.edited(&owner, what);
        }
    }
}
