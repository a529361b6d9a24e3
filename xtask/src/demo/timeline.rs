//! The demo's lines: when, who, what, and why.

use std::{collections::BTreeMap, time::Instant};

use serde_json::Value;

use super::Event;

/// Shows events and knows how far the examples are.
pub(super) struct Timeline {
    begin: Instant,
    /// The last line of each object, so that nothing is said twice.
    said: BTreeMap<String, String>,
    messages: BTreeMap<String, String>,
    ready: BTreeMap<String, bool>,
}

/// Kinds of the examples' instances.
const INSTANCES: [&str; 2] = ["Pipeline", "App"];

impl Timeline {
    pub(super) fn new() -> Self {
        Self {
            begin: Instant::now(),
            said: BTreeMap::new(),
            messages: BTreeMap::new(),
            ready: BTreeMap::new(),
        }
    }

    fn say(&self, when: Instant, who: &str, what: &str) {
        println!(
            "{:>7.2} s  {who:<9} {what}",
            when.saturating_duration_since(self.begin).as_secs_f64()
        );
    }

    pub(super) fn show(&mut self, when: Instant, event: &Event) {
        match event {
            Event::Said(what) => self.say(when, "you", what),
            Event::Log(line) => {
                if let Some(text) = log_line(line) {
                    self.say(when, "atc", &text);
                }
            }
            Event::Object(object) => {
                let Some((name, text)) = object_line(object) else {
                    return;
                };
                if INSTANCES.iter().any(|kind| object["kind"] == *kind) {
                    let message = object["status"]["msg"].as_str().unwrap_or_default();
                    self.messages.insert(name.clone(), message.to_owned());
                    self.ready.insert(name.clone(), is_ready(object));
                }
                if self.said.get(&name) != Some(&text) {
                    let who = if object["kind"] == "Job" || object["kind"] == "Deployment" {
                        "cluster"
                    } else {
                        "status"
                    };
                    self.say(when, who, &format!("{name}: {text}"));
                    self.said.insert(name, text);
                }
            }
        }
    }

    /// Whether the App says that it waits for its Secret.
    pub(super) fn app_waits(&self) -> bool {
        self.messages.iter().any(|(name, message)| {
            name.starts_with("App ") && message.starts_with("waiting for Secret")
        })
    }

    /// Whether both instances are ready and say that nothing is left to do.
    pub(super) fn is_done(&self) -> bool {
        let done = |kind: &str, begin: &str| {
            let mut all = self
                .messages
                .iter()
                .filter(|(name, _)| name.split(' ').next() == Some(kind));
            all.any(|(name, message)| {
                message.starts_with(begin) && self.ready.get(name) == Some(&true)
            })
        };
        done("Pipeline", "all ") && done("App", "deployed ")
    }

    /// How far they are, for an error.
    pub(super) fn state(&self) -> String {
        let states = self.messages.iter().map(|(name, message)| {
            let ready = if self.ready.get(name) == Some(&true) {
                "ready"
            } else {
                "not ready"
            };
            format!("{name} is {ready} and says \"{message}\"")
        });
        states.collect::<Vec<_>>().join("; ")
    }
}

/// What the atc did for an instance, and why.
fn log_line(line: &Value) -> Option<String> {
    let field = |name: &str| match (&line[name], &line["fields"][name]) {
        (Value::String(text), _) | (_, Value::String(text)) if !text.is_empty() => {
            Some(text.as_str())
        }
        _ => None,
    };
    let instance = short(field("instance")?);
    let why = field("woken_by").map(short_words).unwrap_or_default();
    if let Some(error) = field("error") {
        return Some(format!("{instance} failed, woken by {why}: {error}"));
    }
    let mut did = Vec::new();
    for (name, verb) in [
        ("applied", "applied"),
        ("pruned", "removed"),
        ("orphaned", "let go of"),
    ] {
        if let Some(objects) = field(name) {
            did.push(format!("{verb} {}", short_words(objects)));
        }
    }
    if did.is_empty() {
        did.push("wrote its status".into());
    }
    Some(format!("{instance}: woken by {why} → {}", did.join(", ")))
}

/// A line for an object, with `Kind name` as what it is about.
fn object_line(object: &Value) -> Option<(String, String)> {
    let (kind, name) = (
        object["kind"].as_str()?,
        object["metadata"]["name"].as_str()?,
    );
    let status = &object["status"];
    let text = match kind {
        "Job" if condition(object, "Complete") => "completed".to_owned(),
        "Job" if condition(object, "Failed") => "failed".to_owned(),
        "Job" => "running".to_owned(),
        "Deployment" => {
            let ready = status["readyReplicas"].as_u64().unwrap_or(0);
            format!(
                "{ready} of {} pods ready",
                object["spec"]["replicas"].as_u64().unwrap_or(0)
            )
        }
        _ => {
            let message = status["msg"].as_str()?;
            let ready = if is_ready(object) {
                "ready"
            } else {
                "not ready"
            };
            format!("\"{message}\", {ready}")
        }
    };
    Some((format!("{kind} {name}"), text))
}

fn is_ready(object: &Value) -> bool {
    condition(object, "Ready")
}

fn condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    conditions
        .iter()
        .any(|c| c["type"] == kind && c["status"] == "True")
}

/// Each reference `namespace/Kind.group:name` in a text as `Kind name`.
fn short_words(text: &str) -> String {
    text.split(' ').map(short).collect::<Vec<_>>().join(" ")
}

fn short(word: &str) -> String {
    let (word, comma) = word
        .strip_suffix(',')
        .map_or((word, ""), |word| (word, ","));
    let bare = word.split_once('/').map_or(word, |(_, rest)| rest);
    match bare.split_once(':') {
        Some((kind, name)) => format!("{} {name}{comma}", kind.split('.').next().unwrap_or(kind)),
        None => format!("{word}{comma}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::{Event, Timeline, log_line, object_line, short_words};

    #[test]
    fn references_are_shortened() {
        let text = "change of default/Job.batch:nightly-extract, which was looked up";
        assert_eq!(
            short_words(text),
            "change of Job nightly-extract, which was looked up"
        );
        assert_eq!(short_words("timer"), "timer");
    }

    #[test]
    fn log_lines() {
        let line = json!({
            "message": "instance evaluated", "instance": "default/Pipeline.example.dev:nightly",
            "woken_by": "edit of default/Pipeline.example.dev:nightly", "applied": "default/Job.batch:nightly-extract",
            "pruned": "",
        });
        let expect =
            "Pipeline nightly: woken by edit of Pipeline nightly → applied Job nightly-extract";
        assert_eq!(log_line(&line).as_deref(), Some(expect));
        assert_eq!(log_line(&json!({ "message": "serving HTTPS" })), None);
    }

    #[test]
    fn objects_and_the_end() {
        let instance = |kind: &str, message: &str, ready: &str| {
            let conditions = json!([{ "type": "Ready", "status": ready }]);
            json!({ "kind": kind, "metadata": { "name": "a" }, "status": { "msg": message, "conditions": conditions } })
        };
        let (name, text) = object_line(&instance("App", "waiting for Secret x", "False")).unwrap();
        assert_eq!(
            (name.as_str(), text.as_str()),
            ("App a", "\"waiting for Secret x\", not ready")
        );
        assert_eq!(
            object_line(&json!({ "kind": "App", "metadata": { "name": "a" } })),
            None
        );
        let mut timeline = Timeline::new();
        timeline.show(
            Instant::now(),
            &Event::Object(instance("App", "waiting for Secret x", "False")),
        );
        assert!(timeline.app_waits() && !timeline.is_done());
        timeline.show(
            Instant::now(),
            &Event::Object(instance("App", "deployed with x", "True")),
        );
        timeline.show(
            Instant::now(),
            &Event::Object(instance("Pipeline", "all 3 Jobs have completed", "False")),
        );
        assert!(!timeline.app_waits() && !timeline.is_done());
        timeline.show(
            Instant::now(),
            &Event::Object(instance("Pipeline", "all 3 Jobs have completed", "True")),
        );
        assert!(timeline.is_done());
    }
}
