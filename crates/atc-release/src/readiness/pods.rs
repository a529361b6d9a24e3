//! Pods: ready when their three conditions are True, as in the existing tool's table, or when they have run to their end.

use serde_json::Value;

use super::conditions::words;
use super::{Verdict, condition, is_true};

/// Conditions that must be True.
const WANTED: [&str; 3] = ["Initialized", "ContainersReady", "Ready"];
/// Reasons of waiting that every container has at its start.
const STARTING: [&str; 2] = ["ContainerCreating", "PodInitializing"];

pub(super) fn pod(live: &Value) -> Verdict {
    match live["status"]["phase"].as_str() {
        Some("Succeeded") => return Verdict::Ready,
        Some("Failed") => {
            return Verdict::Failed(format!("it has failed{}", words(&live["status"])));
        }
        _ => (),
    }
    match WANTED.into_iter().find(|kind| !is_true(live, kind)) {
        None => Verdict::Ready,
        Some(kind) => {
            let why = trouble(live).map(|trouble| format!(": {trouble}"));
            let why = why.or_else(|| condition(live, kind).map(words));
            Verdict::InProgress(format!("it is not {kind}{}", why.unwrap_or_default()))
        }
    }
}

/// What keeps a Pod from running, in one line: no node takes it, or a container waits for something or has crashed.
/// `None` if it says nothing of the sort.
pub fn trouble(live: &Value) -> Option<String> {
    let unscheduled =
        condition(live, "PodScheduled").filter(|condition| condition["status"] == "False");
    if let Some(words) = unscheduled.map(words) {
        return words.strip_prefix(": ").map(str::to_owned);
    }
    if live["status"]["phase"] == "Failed" {
        return Some(format!("it has failed{}", words(&live["status"])));
    }
    let containers = ["initContainerStatuses", "containerStatuses"];
    containers
        .iter()
        .flat_map(|list| live["status"][list].as_array().into_iter().flatten())
        .find_map(container)
}

/// What keeps a container from running.
fn container(status: &Value) -> Option<String> {
    let name = status["name"].as_str().unwrap_or_default();
    let waiting = &status["state"]["waiting"];
    let reason = waiting["reason"].as_str().unwrap_or_default();
    let ended = |state: &Value| {
        let code = state["exitCode"].as_i64().filter(|code| *code != 0)?;
        Some(format!("exit code {code}{}", words(state)))
    };
    if !reason.is_empty() && !STARTING.contains(&reason) {
        let last = ended(&status["lastState"]["terminated"])
            .map(|last| format!(", last {last}"))
            .unwrap_or_default();
        return Some(format!("container \"{name}\"{}{last}", words(waiting)));
    }
    let ended = ended(&status["state"]["terminated"])?;
    Some(format!("container \"{name}\" ended with {ended}"))
}
