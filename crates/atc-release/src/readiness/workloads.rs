//! What makes Pods: Deployments, ReplicaSets, StatefulSets, DaemonSets. The rules are those of the existing tool's table,
//! with the exceptions that their documentation makes: pauses, deadlines, partitions, `OnDelete`.

use serde_json::Value;

use super::conditions::{failed, words};
use super::{Verdict, condition, count, unobserved};

/// Pods wanted; 1 where the spec leaves it out.
fn desired(live: &Value) -> i64 {
    live["spec"]["replicas"].as_i64().unwrap_or(1)
}

/// All of `fields` in the status are `wanted`, else the first that is not, in words.
fn all_are(live: &Value, fields: &[(&str, &str)], wanted: i64) -> Option<Verdict> {
    fields.iter().find_map(|(field, words)| {
        let have = count(&live["status"][field]);
        (have != wanted).then(|| Verdict::InProgress(format!("{have} of {wanted} pods {words}")))
    })
}

const EXIST: (&str, &str) = ("replicas", "exist");
const UPDATED: (&str, &str) = ("updatedReplicas", "are updated");
const READY: (&str, &str) = ("readyReplicas", "are ready");
const AVAILABLE: (&str, &str) = ("availableReplicas", "are available");

/// Failed past its progress deadline, with the words of that condition; a paused one is ready only if it is rolled out.
pub(super) fn deployment(live: &Value) -> Verdict {
    if let Some(verdict) = unobserved(live) {
        return verdict;
    }
    let wanted = desired(live);
    let pods = all_are(live, &[UPDATED, EXIST, READY, AVAILABLE], wanted);
    let Some(verdict) = pods else {
        // Without pods there is nothing to be available, and the condition may lag behind.
        return match condition(live, "Available") {
            Some(available) if available["status"] != "True" && wanted > 0 => {
                Verdict::InProgress(format!("it is not Available{}", words(available)))
            }
            None if wanted > 0 => {
                Verdict::InProgress("it does not say yet whether it is Available".to_owned())
            }
            _ => Verdict::Ready,
        };
    };
    let progress = condition(live, "Progressing");
    if let Some(late) = progress.filter(|progress| progress["reason"] == "ProgressDeadlineExceeded")
    {
        return failed(late);
    }
    if live["spec"]["paused"] == true {
        return Verdict::InProgress("it is paused before it was rolled out".to_owned());
    }
    if let Some(refused) =
        condition(live, "ReplicaFailure").filter(|refused| refused["status"] == "True")
    {
        return Verdict::InProgress(format!("its pods can't be made{}", words(refused)));
    }
    verdict
}

/// Also ReplicationControllers.
pub(super) fn replica_set(live: &Value) -> Verdict {
    unobserved(live)
        .or_else(|| all_are(live, &[EXIST, READY, AVAILABLE], desired(live)))
        .unwrap_or(Verdict::Ready)
}

/// With a partition only the pods from there on must be updated; with `OnDelete` none must.
pub(super) fn stateful_set(live: &Value) -> Verdict {
    if let Some(verdict) = unobserved(live) {
        return verdict;
    }
    let wanted = desired(live);
    let strategy = &live["spec"]["updateStrategy"];
    if strategy["type"] != "OnDelete" {
        let partition = count(&strategy["rollingUpdate"]["partition"]).max(0);
        let (status, must) = (&live["status"], (wanted - partition).max(0));
        // Once all pods are of one revision the count of updated ones may be left out.
        let one_revision = !status["updateRevision"].is_null()
            && status["currentRevision"] == status["updateRevision"];
        let updated = count(&status["updatedReplicas"]);
        if updated < must && !one_revision {
            return Verdict::InProgress(format!("{updated} of {must} pods are updated"));
        }
    }
    all_are(live, &[EXIST, READY, AVAILABLE], wanted).unwrap_or(Verdict::Ready)
}

/// With `OnDelete` pods of an older revision are as good as new ones.
pub(super) fn daemon_set(live: &Value) -> Verdict {
    if let Some(verdict) = unobserved(live) {
        return verdict;
    }
    let wanted = count(&live["status"]["desiredNumberScheduled"]);
    let on_delete = live["spec"]["updateStrategy"]["type"] == "OnDelete";
    let fields = [
        ("currentNumberScheduled", "are scheduled"),
        ("updatedNumberScheduled", "are updated"),
        ("numberReady", "are ready"),
        ("numberAvailable", "are available"),
    ];
    let skip = |field: &str| on_delete && field == "updatedNumberScheduled";
    let fields: Vec<_> = fields
        .into_iter()
        .filter(|(field, _)| !skip(field))
        .collect();
    all_are(live, &fields, wanted).unwrap_or(Verdict::Ready)
}
