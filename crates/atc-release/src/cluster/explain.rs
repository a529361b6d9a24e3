//! Why an object is not ready, in the words of those who know: its Pods, and the warnings among its events.
//!
//! Asked once when a wait has failed, never at rest. What Secrets hold is not among it: neither Pods nor events repeat it.

use std::time::Duration;

use futures::FutureExt;
use serde_json::Value;

use super::mapping::{Mapping, encode};
use super::request::JSON;
use super::{Cluster, ClusterError};
use crate::readiness;

/// Time for all calls about one object: its words are a help, and the error that they belong to waits for them.
const LIMIT: Duration = Duration::from_secs(3);
/// Pods that are looked at: those of one workload have the same trouble.
const PODS: u32 = 50;
/// Pods that are named.
const PODS_NAMED: usize = 2;
/// Events that are read of one object; the server gives them in no order.
const EVENTS: u32 = 50;
/// Events that are told of one object, the last ones.
const EVENTS_TOLD: usize = 3;

impl Cluster {
    /// What the Pods and the events of a live object say, one line each, at most 12. What can't be read within 3 s is left
    /// out.
    pub async fn explain(&self, live: &Value) -> Vec<String> {
        if readiness::group_and_kind(live) == ("", "Secret") {
            return Vec::new();
        }
        let words = async {
            let (pods, mut lines) = tokio::join!(self.pods_of(live), self.warnings_of(live));
            for pod in &pods {
                lines.extend(about_pod(pod));
                lines.extend(self.warnings_of(pod).await);
            }
            lines
        };
        // A limit that passes says nothing that whoever asks could use.
        tokio::time::timeout(LIMIT, words.boxed())
            .await
            .unwrap_or_default()
    }

    /// Some Pods of a workload that are in trouble.
    async fn pods_of(&self, live: &Value) -> Vec<Value> {
        let namespace = live["metadata"]["namespace"].as_str();
        let (Some(selector), Some(namespace)) = (selector(live), namespace) else {
            return Vec::new();
        };
        let mapping = core("Pod", "pods");
        let pods = self.first_page(&mapping, Some(namespace), Some(&selector), None, PODS);
        let mut pods = match pods.await {
            Ok(pods) => pods,
            Err(error) => return unread("Pods", &error),
        };
        pods.retain(|pod| {
            !readiness::is_deleting(pod) && !readiness::judge(pod, &[]).verdict.is_ready()
        });
        // Those that know why first.
        pods.sort_by_key(|pod| readiness::trouble(pod).is_none());
        pods.truncate(PODS_NAMED);
        pods
    }

    /// The last warnings among an object's events.
    async fn warnings_of(&self, live: &Value) -> Vec<String> {
        let metadata = &live["metadata"];
        let Some(uid) = metadata["uid"].as_str() else {
            return Vec::new();
        };
        let namespace = metadata["namespace"].as_str().unwrap_or("default");
        match self.events(namespace, uid).await {
            Ok(events) => told(events),
            Err(error) => unread("Events", &error),
        }
    }

    async fn events(&self, namespace: &str, uid: &str) -> Result<Vec<Value>, ClusterError> {
        let mapping = core("Event", "events");
        let fields = encode(&format!("involvedObject.uid={uid},type=Warning"));
        let query = format!("limit={EVENTS}&fieldSelector={fields}");
        let page = self.page(&mapping, Some(namespace), &query, JSON).await?;
        Ok(page.items)
    }
}

/// It is no matter for the error that is being told.
fn unread<T>(what: &str, error: &ClusterError) -> Vec<T> {
    tracing::debug!(%error, "cannot read {what} for an explanation");
    Vec::new()
}

fn core(kind: &str, plural: &str) -> Mapping {
    Mapping {
        group: String::new(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
    }
}

/// The selector of a workload's Pods, as a query parameter.
fn selector(live: &Value) -> Option<String> {
    let selector = &live["spec"]["selector"];
    let labels = match readiness::group_and_kind(live) {
        ("apps" | "batch", _) => selector["matchLabels"].as_object(),
        ("", "ReplicationController" | "Service") => selector.as_object(),
        _ => None,
    }?;
    let pairs = labels
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let all = pairs.collect::<Vec<_>>().join(",");
    (!all.is_empty()).then_some(all)
}

fn about_pod(pod: &Value) -> Option<String> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let trouble = readiness::trouble(pod)?;
    Some(format!("Pod \"{name}\": {trouble}"))
}

/// When an event was seen last; times of one form sort as texts.
fn last_seen(event: &Value) -> String {
    let times = [
        &event["series"]["lastObservedTime"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["metadata"]["creationTimestamp"],
    ];
    let time = times.iter().find_map(|time| time.as_str());
    // With and without fractions of a second.
    time.unwrap_or_default().trim_end_matches('Z').to_owned()
}

/// The last of these events, one line each. The same may have been seen in several, each with a count of its own.
fn told(mut events: Vec<Value>) -> Vec<String> {
    events.sort_by_key(last_seen);
    let mut told: Vec<(String, i64)> = Vec::new();
    for event in &events {
        let (words, mut times) = about_event(event);
        if let Some(before) = told.iter().position(|(earlier, _)| *earlier == words) {
            times = times.saturating_add(told.remove(before).1);
        }
        told.push((words, times));
    }
    let first = told.len().saturating_sub(EVENTS_TOLD);
    let line = |(words, times): (String, i64)| match times {
        ..=1 => words,
        _ => format!("{words} (seen {times} times)"),
    };
    told.into_iter().skip(first).map(line).collect()
}

/// What an event says, and how often it was seen.
fn about_event(event: &Value) -> (String, i64) {
    let text = |value: &Value| readiness::one_line(value.as_str().unwrap_or_default());
    let object = &event["involvedObject"];
    let count = event["series"]["count"]
        .as_i64()
        .or(event["count"].as_i64())
        .unwrap_or(1);
    let words = format!(
        "event of {} \"{}\": {}: {}",
        text(&object["kind"]),
        text(&object["name"]),
        text(&event["reason"]),
        text(&event["message"]).trim_end(),
    );
    (words, count)
}

#[cfg(test)]
mod tests;
