//! Custom resources of any kind: what their conditions say, where they say anything.
//!
//! By kstatus: a status of an older generation counts for nothing; `Stalled` is a failure, `Reconciling` is progress, and
//! `Ready` decides. Beside it `Available` counts, which the API conventions name for what serves, and Knative's
//! `Succeeded` for what runs to an end. A resource that says none of this is ready by being there.

use serde_json::Value;

use super::conditions::{failed, wants, words};
use super::{Verdict, condition, count, unobserved};

/// Conditions that decide, the first that is there.
const DECIDING: [&str; 2] = ["Ready", "Available"];
/// The condition of what runs to an end: False is for good.
const ENDING: &str = "Succeeded";

pub(super) fn resource(live: &Value) -> Verdict {
    let observed = &live["status"]["observedGeneration"];
    if observed.is_number() && count(observed) < count(&live["metadata"]["generation"]) {
        return unobserved(live).unwrap_or(Verdict::Ready);
    }
    let is = |kind, status: &str| condition(live, kind).filter(|found| found["status"] == *status);
    if let Some(stalled) = is("Stalled", "True") {
        return failed(stalled);
    }
    if let Some(reconciling) = is("Reconciling", "True") {
        return Verdict::InProgress(format!("it is reconciling{}", words(reconciling)));
    }
    if let Some(kind) = DECIDING.into_iter().find(|kind| says(live, kind)) {
        return wants(live, kind);
    }
    match is(ENDING, "False") {
        Some(found) => failed(found),
        None if says(live, ENDING) => wants(live, ENDING),
        None => Verdict::Ready,
    }
}

/// Whether there is such a condition, of whatever generation.
fn says(live: &Value, kind: &str) -> bool {
    let conditions = live["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == kind)
}
