//! `-wait`: until the resources of the last stage are ready. Those of the stages before it were waited for on the way.

use std::time::{Duration, Instant};

use atc_engine::children::Child;
use atc_engine::release::cluster::{WaitError, WaitOptions};
use atc_engine::release::object::Stages;
use atc_engine::{Engine, Observer};

use crate::render::Hinted;

/// What may help where they do not get ready.
const HINT: &str = "the release is recorded as it is: mend the cause and take off again, or go back to an earlier \
                    revision with descent";

/// Waits, at most `limit`. `children` are all resources as they were judged when they were applied.
pub(in crate::commands) async fn wait(
    engine: &Engine,
    namespace: &str,
    stages: &Stages,
    children: &mut [Child],
    limit: Duration,
    observer: &dyn Observer,
) -> anyhow::Result<()> {
    let Some(last) = stages.iter().last() else {
        return Ok(());
    };
    let first = children.len().saturating_sub(last.len());
    let children = children.get_mut(first..).unwrap_or_default();
    let started = Instant::now();
    let options = WaitOptions::within(limit);
    let waited = engine
        .wait_ready(last, children, namespace, options, observer)
        .await;
    tracing::debug!(elapsed_ms = started.elapsed().as_millis(), "waited");
    match waited {
        Ok(()) => Ok(()),
        Err(error @ WaitError::Cluster(_)) => {
            Err(anyhow::Error::new(error).context("cannot see whether the release is ready"))
        }
        Err(error) => {
            let words = "the release took off, but is not ready";
            Err(Hinted::new(words, HINT).because(error).into())
        }
    }
}
