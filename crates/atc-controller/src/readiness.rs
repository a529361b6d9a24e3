//! ConfigMaps with users' rules of readiness, followed while the process runs: a change of one looks again at the
//! instances that it concerns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use atc_api::ResourceRef;
use atc_engine::instance::home_of;
use atc_engine::readiness::SELECTOR;
use atc_engine::release::cluster::mapping::configmaps;
use atc_engine::watch::Effect;
use serde_json::Value;
use tokio::sync::watch;

use crate::control::Control;
use crate::objects::{self, Only, Sink};
use crate::owner::Owner;
use crate::queue::Cause;

/// How long the first instances wait for the first list of rules. Where it can't be had, instances are judged without;
/// the rules count from when they come.
const FIRST_LIST: Duration = Duration::from_secs(10);

/// Begins to follow the rules; returns when all that there are have been told, or after 10 s.
pub(crate) async fn begin(control: &Arc<Control>) {
    let (listed, mut is_listed) = watch::channel(false);
    let following = control.clone();
    tokio::spawn(async move {
        let client = following.engine.cluster().client().clone();
        let stop = following.stop.clone();
        let sink = RulesSink {
            control: following,
            listed,
        };
        objects::run(client, configmaps(), Only::Labels(SELECTOR), &sink, stop).await;
    });
    let first = tokio::time::timeout(FIRST_LIST, is_listed.wait_for(|listed| *listed));
    if first.await.is_err() {
        tracing::warn!(
            "the ConfigMaps with rules of readiness can't be listed; instances are judged without them"
        );
    }
}

struct RulesSink {
    control: Arc<Control>,
    listed: watch::Sender<bool>,
}

impl RulesSink {
    /// Looks again at the instances whose releases this ConfigMap's rules count for. Those whose children no rule is for
    /// cost no call.
    fn changed(&self, configmap: &ResourceRef) {
        let control = &self.control;
        let shared = control.engine.readiness().is_shared(&configmap.namespace);
        tracing::info!(%configmap, "rules of readiness changed");
        for (airway, kind) in control.kinds.all() {
            for target in kind.references() {
                if shared || home_of(&target.namespace) == configmap.namespace {
                    let airway = airway.clone();
                    let cause = Cause::Rule(configmap.to_string());
                    let owner = Owner::Instance { airway, target };
                    control.queue.push(&owner, Effect::StatusOnly, cause);
                }
            }
        }
    }
}

impl Sink for RulesSink {
    fn upsert(&self, reference: ResourceRef, object: Value) {
        match self.control.engine.readiness().put(&object) {
            Ok(true) => self.changed(&reference),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "rules of readiness do not count");
                // It may have had others before.
                self.changed(&reference);
            }
        }
    }

    fn remove(&self, reference: &ResourceRef) {
        let rules = self.control.engine.readiness();
        if rules.remove(&reference.namespace, &reference.name) {
            self.changed(reference);
        }
    }

    fn synced(&self) {
        self.listed.send_replace(true);
    }

    fn alive(&self, _: Instant) {}
}
