//! `-wait`: until the resources of the last stage are ready. Those of the stages before it were waited for on the way.

use std::time::{Duration, Instant};

use atc_engine::api::GoDuration;
use atc_engine::release::cluster::{Cluster, WaitError, WaitOptions};
use atc_engine::release::object::{Object, Stages};

use crate::render::Hinted;

/// What may help where they do not get ready.
const HINT: &str = "the release is recorded as it is: mend the cause and take off again, or go back to an earlier \
                    revision with descent";

/// Waits, at most `limit`.
pub(in crate::commands) async fn wait(
    cluster: &Cluster,
    poll: GoDuration,
    stages: &Stages,
    limit: Duration,
) -> anyhow::Result<()> {
    let last: Vec<&Object> = stages.iter().last().into_iter().flatten().collect();
    let defaults = WaitOptions::default();
    let options = WaitOptions {
        limit,
        poll: poll.positive().unwrap_or(defaults.poll),
    };
    let started = Instant::now();
    let waited = cluster
        .wait_ready(&last, options, |unready| {
            for unready in unready {
                tracing::debug!(object = unready.object, why = unready.why, "not ready yet");
            }
        })
        .await;
    tracing::debug!(elapsed_ms = started.elapsed().as_millis(), "waited");
    match waited {
        Ok(_) => Ok(()),
        Err(error @ WaitError::Cluster(_)) => {
            Err(anyhow::Error::new(error).context("cannot see whether the release is ready"))
        }
        Err(error) => Err(Hinted::new(
            format!("the release took off, but is not ready: {error}"),
            HINT,
        )
        .into()),
    }
}
