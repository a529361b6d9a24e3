//! What all parts of the controller share: the engine, the watches, the queue, the known kinds.

use std::sync::Arc;

use atc_engine::Engine;
use atc_engine::watch::{Effect, WatchHub};
use tokio_util::sync::CancellationToken;

use crate::bootstrap::WebhookService;
use crate::health::Health;
use crate::kinds::Kinds;
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
    pub(crate) health: Health,
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
}
