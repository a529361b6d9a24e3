//! All instances of one kind, served by one flight: for an operator of one's own, which brings its own CRD.
//!
//! The parts are those that the atc itself is made of: [`objects`] follows the instances, [`WatchHub`] what they made and
//! looked up, [`queue`](crate::queue) says who runs when, and [`Engine::instance`] runs. What the atc has around them is not
//! here: no Airways, no admission, no overrides, and nobody who looks for what instances left whose finalizer was taken off
//! by hand.

use std::sync::Arc;
use std::time::{Duration, Instant};

use atc_api::ResourceRef;
use atc_watch::{Effect, WatchHub};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::disposition::Disposition;
use crate::engine::Engine;
use crate::evaluate::LoadedFlight;
use crate::instance::{InstanceReport, InstanceRequest, InstanceSettings};
use crate::kept::{Instances, Kept};
use crate::memory::Verdicts;
use crate::objects::{self, Only, Sink};
use crate::observer::Watched;
use crate::queue::{Cause, Keyed, Limits, SharedQueue, Work};

/// What is running when the operator is told to end may take so long. Whatever is cut off is repeated by the next start.
pub const DRAIN: Duration = Duration::from_secs(5);

/// See the module's words.
///
/// *Caveats*: one process serves a kind at a time: run one replica, or elect a leader. The credentials need `list` and
/// `watch`, cluster-wide, for the kind, for each kind that its flight prints, and for each that it looks up; what can't be
/// watched is tried again for ever, and told through `tracing` only. In mode `static` nobody is kept from the children;
/// what others change or delete of them is put right, as in `dynamic`.
pub struct Operator {
    engine: Engine,
    flight: LoadedFlight,
    settings: InstanceSettings,
}

impl Operator {
    /// An operator that serves the kind of these settings with this flight. The kind must be served by the API server.
    pub fn new(engine: &Engine, flight: LoadedFlight, settings: InstanceSettings) -> Self {
        Self {
            engine: engine.clone(),
            flight,
            settings,
        }
    }

    /// Serves all instances until `end`: runs each when it is made or edited, when something that it looked up or made
    /// changes, and again after a failure. `told` hears how each run went.
    ///
    /// *Guarantees*: never two runs of one instance at once; what is asked for meanwhile is one more run; an object that two
    /// parties change in turn costs one run a second, and two a minute by and by; as many runs at once as
    /// [`EngineOptions::evaluations`](crate::EngineOptions::evaluations).
    pub async fn run(
        self,
        end: impl Future<Output = ()>,
        told: impl Fn(&ResourceRef, &InstanceReport) + Send + Sync + 'static,
    ) {
        let runs = self.engine.options().evaluations.max(1);
        let limits = Limits {
            total: runs,
            per_lane: runs,
        };
        let client = self.engine.cluster().client().clone();
        let mapping = self.settings.mapping.clone();
        let serving = Arc::new(Serving {
            hub: WatchHub::new(client.clone()),
            queue: SharedQueue::new(limits),
            instances: Instances::default(),
            told: Box::new(told),
            operator: self,
        });
        let stop = CancellationToken::new();
        let watch = objects::run(client, mapping, Only::All, &*serving, stop.clone());
        let one = |instance: ResourceRef, work: Work| {
            let serving = serving.clone();
            async move { serving.one(&instance, &work).await }
        };
        let mut work = std::pin::pin!(serving.queue.drive(&stop, one));
        tokio::select! {
            () = end => {}
            () = &mut work => {}
            () = async { tokio::join!(watch, serving.wake()); } => {}
        }
        stop.cancel();
        let _ = timeout(DRAIN, work).await;
    }
}

struct Serving {
    operator: Operator,
    hub: WatchHub<ResourceRef>,
    queue: Arc<SharedQueue<ResourceRef>>,
    instances: Instances,
    told: Box<Told>,
}

/// Is told how each run went.
type Told = dyn Fn(&ResourceRef, &InstanceReport) + Send + Sync;

/// One kind is one lane.
impl Keyed for ResourceRef {
    fn lane(&self) -> &str {
        &self.group_kind.kind
    }
}

impl Serving {
    /// Turns wakes of the watches into work.
    async fn wake(&self) {
        loop {
            let wake = self.hub.next().await;
            let cause = Cause::of_wake(&wake, &self.hub, |changed| {
                let owner = self.instances.get(&wake.owner);
                *changed == wake.owner || owner.is_some_and(|owner| owner.made(changed))
            });
            self.queue.push(&wake.owner, wake.effect, cause);
        }
    }

    async fn one(&self, instance: &ResourceRef, work: &Work) -> Disposition {
        let Some(kept) = self.instances.get(instance) else {
            self.hub.forget(instance);
            self.queue.forget(instance);
            self.take_up(instance);
            return Disposition::Wait;
        };
        let mut memory = kept.memory.lock().await;
        let (object, recalled) = kept.begin();
        let observer = Watched::new(self.hub.clone(), instance.clone());
        let request = InstanceRequest {
            object: &object,
            settings: &self.operator.settings,
            flight: Ok(&self.operator.flight),
            protection: None,
            recalled: &recalled,
        };
        let engine = &self.operator.engine;
        let report = match work.effect {
            Effect::Evaluate => engine.instance(&request, &mut memory, &observer).await,
            Effect::StatusOnly => engine.look(&request, &mut memory, &observer).await,
        };
        (self.told)(instance, &report);
        let (gone, disposition) = (report.gone, report.disposition);
        kept.settle(report);
        drop(memory);
        // What was shown during the run was not compared.
        self.look_again(instance, &kept);
        if gone || self.instances.get(instance).is_none() {
            self.hub.forget(instance);
        }
        disposition
    }

    /// One that came while it was forgotten had asked for its run, perhaps before that was forgotten.
    fn take_up(&self, instance: &ResourceRef) {
        if self.instances.get(instance).is_some() {
            let cause = Cause::Edit(instance.to_string());
            self.queue.push(instance, Effect::Evaluate, cause);
        }
    }

    /// Has the status of an instance written again, if others changed what we said there.
    fn look_again(&self, instance: &ResourceRef, kept: &Kept) {
        if kept.is_overwritten() {
            let cause = Cause::Status(instance.to_string());
            self.queue.push(instance, Effect::StatusOnly, cause);
        }
    }
}

impl Sink for Serving {
    fn upsert(&self, reference: ResourceRef, object: Value) {
        let instances = &self.instances;
        let (kept, edited) = instances.upsert(&reference, object, Verdicts::default);
        if edited {
            let cause = Cause::Edit(reference.to_string());
            self.queue.push(&reference, Effect::Evaluate, cause);
        } else {
            self.look_again(&reference, &kept);
        }
    }

    fn remove(&self, reference: &ResourceRef) {
        self.instances.remove(reference);
        self.queue.forget(reference);
        self.hub.forget(reference);
    }

    fn synced(&self) {}

    fn alive(&self, _: Instant) {}
}
