//! PodDisruptionBudgets and HorizontalPodAutoscalers: ready unless their controller says that it can't keep to them.
//!
//! What they say about Pods is left to the Pods: a budget whose Pods are unhealthy works, and must not stand in the way of
//! a later stage that mends them; an autoscaler has no figures until its Pods have run for a while, and on a cluster
//! without metrics it never has.

use serde_json::Value;

use super::conditions::words;
use super::{Verdict, condition, count, unobserved};

/// By its API's documentation `SyncFailed` is the reason when the number of disruptions could not be worked out.
pub(super) fn disruption_budget(live: &Value) -> Verdict {
    if let Some(verdict) = unobserved(live) {
        return verdict;
    }
    match condition(live, "DisruptionAllowed").filter(|found| found["reason"] == "SyncFailed") {
        Some(failed) => Verdict::InProgress(format!("it can't be kept to{}", words(failed))),
        None => Verdict::Ready,
    }
}

/// By the documentation of its conditions `AbleToScale` says whether its target can be read and scaled. Of
/// `ScalingActive` only what is wrong with the autoscaler itself counts.
pub(super) fn autoscaler(live: &Value) -> Verdict {
    let observed = &live["status"]["observedGeneration"];
    if !observed.is_null() && count(observed) < count(&live["metadata"]["generation"]) {
        return unobserved(live).unwrap_or(Verdict::Ready);
    }
    let is_false = |kind| condition(live, kind).filter(|found| found["status"] == "False");
    let invalid = |found: &&Value| {
        let reason = found["reason"].as_str().unwrap_or_default();
        reason.starts_with("Invalid")
    };
    let why = is_false("AbleToScale").or_else(|| is_false("ScalingActive").filter(invalid));
    match why {
        Some(found) => Verdict::InProgress(format!("it can't scale{}", words(found))),
        None => Verdict::Ready,
    }
}
