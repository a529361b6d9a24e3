//! What the status says while the resources of one stage are waited for before the next one is made: not what it said before.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use atc_api::ResourceRef;
use atc_release::cluster::{ClusterError, LiveMeta};
use atc_watch::{Latest, Selection, Target};
use serde_json::Value;
use tokio::sync::watch;

use super::InstanceSettings;
use crate::children::few;
use crate::clock;
use crate::engine::Engine;
use crate::error::chain;
use crate::observer::{Observer, Progress};
use crate::status::{self, Ready};

/// So long a stage is waited for before the status says so, and between two times that it says something else: 1 s. Most
/// stages are ready by then, and need no write of their own.
const PATIENCE: Duration = Duration::from_secs(1);

/// A stage that is not ready.
#[derive(Debug, Default)]
pub(super) struct Stage {
    /// From 1.
    at: usize,
    of: usize,
    /// What is not ready, and why.
    open: BTreeMap<ResourceRef, String>,
}

impl Stage {
    fn words(&self) -> Option<String> {
        let open: Vec<String> = self
            .open
            .iter()
            .map(|(object, why)| format!("{}/{}: {why}", object.group_kind.kind, object.name))
            .collect();
        (!open.is_empty()).then(|| {
            let (at, of) = (self.at, self.of);
            format!("stage {at} of {of}: waiting for {}", few(&open))
        })
    }
}

/// An observer that knows what a takeoff waits for.
pub(super) struct Onlooker<'a> {
    inner: &'a dyn Observer,
    stage: watch::Sender<Stage>,
}

impl<'a> Onlooker<'a> {
    pub(super) fn new(inner: &'a dyn Observer) -> (Self, watch::Receiver<Stage>) {
        let (stage, seen) = watch::channel(Stage::default());
        (Self { inner, stage }, seen)
    }
}

impl Observer for Onlooker<'_> {
    fn interest(&self, target: &Target) {
        self.inner.interest(target);
    }

    fn interest_in(&self, selection: &Selection) {
        self.inner.interest_in(selection);
    }

    fn latest(&self, reference: &ResourceRef) -> Latest {
        self.inner.latest(reference)
    }

    fn latest_in(&self, selection: &Selection) -> Option<u64> {
        self.inner.latest_in(selection)
    }

    fn is_made(&self, reference: &ResourceRef) -> bool {
        self.inner.is_made(reference)
    }

    fn follows(&self) -> bool {
        self.inner.follows()
    }

    fn progress(&self, step: Progress<'_>) {
        self.inner.progress(step);
        self.stage.send_if_modified(|now| match step {
            Progress::Applying { stage, stages, .. } => {
                *now = Stage {
                    at: stage,
                    of: stages,
                    open: BTreeMap::new(),
                };
                true
            }
            Progress::Waiting { object, verdict } => {
                let why = verdict.why().filter(|_| !verdict.lets_go_on());
                match why {
                    None => now.open.remove(object).is_some(),
                    Some(why) => {
                        let before = now.open.insert(object.clone(), why.to_owned());
                        before.as_deref() != Some(why)
                    }
                }
            }
            Progress::Removing { .. } => false,
        });
    }
}

impl Engine {
    /// Does the work, and has the status say what it waits for, if that takes longer than [`PATIENCE`]. `told` is the object as
    /// it is stored then.
    pub(super) async fn telling<T>(
        &self,
        settings: &InstanceSettings,
        object: &Value,
        printed: Option<&Value>,
        told: &mut Option<Value>,
        mut stage: watch::Receiver<Stage>,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        let telling = async {
            let mut said = String::new();
            // Until the takeoff is over and nobody tells any more.
            while stage.wait_for(|now| now.words().is_some()).await.is_ok() {
                tokio::time::sleep(PATIENCE).await;
                let words = stage.borrow_and_update().words();
                match words {
                    Some(words) if words != said => {
                        let stored = told.as_ref().unwrap_or(object);
                        match self.tell(settings, stored, printed, &words).await {
                            Ok(Some(answer)) => *told = Some(answer),
                            Ok(None) => {}
                            // Somebody else has written: that is for the write at the end.
                            Err(error) => {
                                tracing::debug!(
                                    error = chain(&error),
                                    "the status does not say what is waited for"
                                );
                                break;
                            }
                        }
                        said = words;
                    }
                    Some(_) if stage.changed().await.is_err() => break,
                    _ => {}
                }
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            done = &mut work => done,
            () = telling => work.await,
        }
    }

    /// Writes a status that says this, onto the state that is known. Gives what is stored then, if it was to be written.
    pub(super) async fn tell(
        &self,
        settings: &InstanceSettings,
        stored: &Value,
        printed: Option<&Value>,
        words: &str,
    ) -> Result<Option<Value>, ClusterError> {
        let live = LiveMeta::of(stored);
        let generation = live.generation().unwrap_or(0);
        let status = stored.get("status").cloned().unwrap_or(Value::Null);
        let ready = Ready::in_progress(words);
        let Some(next) = status::next(&status, printed, &ready, generation, &clock::now()) else {
            return Ok(None);
        };
        self.cluster()
            .replace_status(
                &settings.mapping,
                live.namespace(),
                live.name(),
                &next,
                live.resource_version(),
            )
            .await
            .map(Some)
    }
}

/// Whether the status may say what is waited for: not where the run before has failed and that is said, or it would change with
/// each try; nor where the flight has set the condition itself.
pub(super) fn may_tell(object: &Value, has_failed: bool, printed: Option<&Value>) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let Some(ready) = conditions.find(|condition| condition["type"] == "Ready") else {
        return true;
    };
    let observed = ready["observedGeneration"] == object["metadata"]["generation"];
    let reason = ready["reason"].as_str().unwrap_or_default();
    let is_ours = ["InProgress", "Ready", "Error", "Terminating"].contains(&reason);
    !(has_failed && observed) && (is_ours || printed.is_some())
}

#[cfg(test)]
mod tests {
    use atc_release::readiness::Verdict;

    use super::*;
    use crate::observer::NoObserver;

    #[test]
    fn a_stage_says_what_is_not_ready_of_it() {
        let (onlooker, seen) = Onlooker::new(&NoObserver);
        let words = || seen.borrow().words();
        assert_eq!(words(), None);
        let apply = |stage| {
            onlooker.progress(Progress::Applying {
                stage,
                stages: 3,
                objects: 2,
            });
        };
        let wait = |name: &str, verdict: Verdict| {
            let object = ResourceRef::new("n", "apps", "Deployment", name);
            onlooker.progress(Progress::Waiting {
                object: &object,
                verdict: &verdict,
            });
        };
        apply(1);
        assert_eq!(words(), None, "what was just applied is not waited for yet");
        wait("b", Verdict::InProgress("0 of 1".into()));
        wait("a", Verdict::InProgress("1 of 2".into()));
        let said = words().expect("two");
        assert_eq!(
            said,
            "stage 1 of 3: waiting for Deployment/a: 1 of 2; Deployment/b: 0 of 1"
        );
        wait("a", Verdict::Ready);
        let said = words().expect("one");
        assert_eq!(said, "stage 1 of 3: waiting for Deployment/b: 0 of 1");
        apply(2);
        assert_eq!(words(), None);
    }

    #[test]
    fn what_was_said_of_a_failure_stays_and_what_a_flight_says_is_its_own() {
        let object = |reason: &str, generation: u32| {
            serde_json::json!({
                "metadata": { "generation": 2 },
                "status": { "conditions": [
                    { "type": "Ready", "reason": reason, "observedGeneration": generation },
                ] },
            })
        };
        let check = |object: &Value, has_failed: bool, printed: bool, expect: bool| {
            let status = Value::Null;
            let found = may_tell(object, has_failed, printed.then_some(&status));
            assert_eq!(found, expect, "{object} {has_failed} {printed}");
        };
        check(&Value::Null, false, false, true);
        check(&Value::Null, true, false, true);
        for reason in ["Ready", "Error", "InProgress"] {
            check(&object(reason, 2), false, false, true);
            check(&object(reason, 2), true, false, false);
            check(&object(reason, 1), true, false, true);
        }
        check(&object("Waiting", 2), false, false, false);
        check(&object("Waiting", 2), false, true, true);
    }
}
