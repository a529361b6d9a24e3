//! Working on a release alone: a claim on its intent, renewed while the work is on, and given back whatever comes of it.
//!
//! The claim keeps two takeoffs of one release apart without a lock; the inventory in the intent is what the next one
//! finds when this one is killed. See [`atc_release::intent`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use atc_release::cluster::{Cluster, ErrorKind, RevisionError};
use atc_release::intent::{self, Claim, Intent, LEASE, RENEWAL, StoredIntent, Vigil};
use atc_release::object::Stages;
use jiff::Timestamp;
use tokio::sync::{Mutex, watch};

use crate::engine::Engine;
use crate::error::EngineError;

/// How long somebody else's work on the release is waited for. Default 30 s: an ordinary takeoff takes seconds, and twice
/// the lease, so that a holder who was killed is never in the way.
pub const HOLD_WAIT: Duration = Duration::from_secs(30);
/// How long giving the claim back may take; then it is left to run out.
const END_LIMIT: Duration = Duration::from_secs(10);
/// First pause between two looks at somebody else's claim; doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(25);
/// Longest pause between two looks. Short: whoever waits here is a person or a pipeline.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Who wants to work on a release alone, and for how long others are waited for.
#[derive(Clone, Debug)]
pub struct HoldRequest {
    /// Who, in words for whoever comes meanwhile.
    pub who: String,
    /// Our process, as `has_ended` on the same machine can look it up; empty for none.
    pub process: String,
    /// Whether a process, named like that, has certainly ended. False for one of another machine.
    pub has_ended: fn(&str) -> bool,
    /// Longest wait for somebody else who works on the release. Default [`HOLD_WAIT`].
    pub wait: Duration,
    /// Becomes true when the work shall stop. What is held is given back then.
    pub stop: watch::Receiver<bool>,
}

/// A claim that is held. It must be [ended](Hold::end); else it runs out.
#[derive(Debug)]
pub(crate) struct Hold {
    cluster: Cluster,
    stop: watch::Receiver<bool>,
    /// Locked over a write: the renewals and the work take turns.
    held: Mutex<StoredIntent>,
    /// What was there when it was claimed.
    leftover: Stages,
    /// Whether those before us were interrupted.
    found: bool,
    begun: AtomicBool,
}

impl Engine {
    /// Claims a release; waits for whoever has it.
    pub(crate) async fn claim(
        &self,
        release: &str,
        namespace: &str,
        request: &HoldRequest,
    ) -> Result<Hold, EngineError> {
        let failed = |source| EngineError::record(release, source);
        let (started, mut vigil, mut pause) = (Instant::now(), Vigil::default(), PAUSE_MIN);
        // The first try is made without a look: mostly there is no intent.
        let mut found: Option<StoredIntent> = None;
        loop {
            let other = found
                .as_ref()
                .and_then(|found| found.intent.claim.as_ref())
                .filter(|claim| {
                    !(request.has_ended)(&claim.process)
                        && !vigil.has_run_out(claim, Instant::now(), LEASE)
                });
            if let Some(other) = other {
                if started.elapsed() >= request.wait {
                    return Err(held_by(release, namespace, other, request.wait));
                }
                if pause == PAUSE_MIN {
                    tracing::info!(release, namespace, holder = other.who, "waiting");
                }
                wait(pause, &request.stop).await?;
                pause = (pause * 2).min(PAUSE_MAX);
            } else {
                let intent = Intent {
                    release: release.to_owned(),
                    namespace: namespace.to_owned(),
                    claim: Some(intent::claim(
                        &request.who,
                        &request.process,
                        rand::random(),
                        Timestamp::now(),
                    )),
                    inventory: found
                        .as_ref()
                        .map(|found| found.intent.inventory.clone())
                        .unwrap_or_default(),
                };
                let claimed = self.cluster().claim_intent(found.as_ref(), &intent).await;
                if let Some(stored) = claimed.map_err(failed)? {
                    return Ok(Hold {
                        cluster: self.cluster().clone(),
                        stop: request.stop.clone(),
                        held: Mutex::new(stored),
                        leftover: intent.inventory,
                        found: found.is_some(),
                        begun: AtomicBool::new(false),
                    });
                }
            }
            let looked = self.cluster().watched_intent(release, namespace).await;
            found = looked.map_err(failed)?;
        }
    }
}

impl Hold {
    /// Objects that earlier work may have left, beyond those of the revisions.
    pub(crate) fn leftover(&self) -> &Stages {
        &self.leftover
    }

    /// Whether earlier work was interrupted or failed.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.found
    }

    /// Does the work and renews the claim meanwhile. Ends early when it shall stop or when the claim is lost; the work is
    /// dropped then, wherever it is.
    pub(crate) async fn during<T>(
        &self,
        work: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, EngineError> {
        tokio::select! {
            biased;
            () = stopped(&self.stop) => Err(EngineError::Stopped),
            error = self.renew() => Err(error),
            result = work => result,
        }
    }

    /// Says what is about to be made: written before the first of it is. `known` is whether the revisions name it all.
    pub(crate) async fn begin(&self, stages: &Stages, known: bool) -> Result<(), EngineError> {
        if known {
            self.begun.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let mut held = self.held.lock().await;
        let before = held.intent.inventory.clone();
        held.intent.inventory = intent::united(&before, &intent::inventory_of(stages));
        let release = held.intent.release.clone();
        let written = if held.intent.inventory == before {
            Ok(true)
        } else {
            self.cluster.write_intent(&mut held).await
        };
        match written {
            Ok(true) => {
                self.begun.store(true, Ordering::Relaxed);
                Ok(())
            }
            // Nothing of it will be made: what was there before is all that may exist, and the claim can go.
            Ok(false) => {
                held.intent.inventory = before;
                Err(EngineError::Lost { release })
            }
            Err(source) => {
                held.intent.inventory = before;
                Err(EngineError::record(&release, source))
            }
        }
    }

    /// Gives the claim back. `settled`: what there is of the release is what its active revision says, so nothing of the
    /// intent need be kept.
    ///
    /// What can't be given back is left to run out: the work itself is done, or its failure is what counts.
    pub(crate) async fn end(self, settled: bool) {
        let mut held = self.held.into_inner();
        let begun = self.begun.load(Ordering::Relaxed);
        let keep = !settled && (begun || self.found || !held.intent.inventory.is_empty());
        let release = held.intent.release.clone();
        let ending = async {
            if keep {
                self.cluster.free_intent(&mut held).await
            } else {
                self.cluster.drop_intent(&mut held).await
            }
        };
        match tokio::time::timeout(END_LIMIT, ending).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(
                    release,
                    error = crate::error::chain(&error),
                    "the claim on the release could not be given back, and runs out by itself"
                );
            }
            Err(_) => {
                tracing::warn!(
                    release,
                    "the claim on the release could not be given back, and runs out by itself"
                );
            }
        }
    }

    /// Renews the claim until it is lost; why, then.
    async fn renew(&self) -> EngineError {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(RENEWAL).await;
            let mut held = self.held.lock().await;
            if let Some(claim) = &mut held.intent.claim {
                claim.renewed_at = Timestamp::now().to_string();
            }
            let release = held.intent.release.clone();
            let write = self.cluster.renew_intent(&mut held);
            match tokio::time::timeout(RENEWAL, write).await {
                Ok(Ok(true)) => renewed = Instant::now(),
                Ok(Ok(false)) => return EngineError::Lost { release },
                // By then others may have taken it over.
                _ if renewed.elapsed() >= LEASE => {
                    return EngineError::Unrenewed {
                        release,
                        lease: LEASE,
                    };
                }
                _ => {}
            }
        }
    }
}

/// Whether an error says that the namespace of the release is going or gone, so that nobody can claim anything in it.
pub(crate) fn is_without_namespace(error: &EngineError) -> bool {
    let EngineError::Record { source, .. } = error else {
        return false;
    };
    match &**source {
        RevisionError::Cluster(error) => {
            error.kind() == ErrorKind::Terminating
                || error
                    .refusal()
                    .is_some_and(|refusal| refusal.missing_namespace().is_some())
        }
        _ => false,
    }
}

fn held_by(release: &str, namespace: &str, claim: &Claim, waited: Duration) -> EngineError {
    EngineError::Held {
        release: release.to_owned(),
        namespace: namespace.to_owned(),
        who: claim.who.clone(),
        since: claim.since.clone(),
        waited,
    }
}

/// Pauses, unless it shall stop.
async fn wait(pause: Duration, stop: &watch::Receiver<bool>) -> Result<(), EngineError> {
    tokio::select! {
        () = stopped(stop) => Err(EngineError::Stopped),
        () = tokio::time::sleep(pause) => Ok(()),
    }
}

/// Resolves when it shall stop; never where nobody is left to say so.
async fn stopped(stop: &watch::Receiver<bool>) {
    if stop.clone().wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
