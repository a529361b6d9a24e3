//! Conditions of a status: only those that speak of the present generation count.

use serde_json::Value;

use super::{Verdict, count};

/// Characters of a condition's message that are repeated in a verdict.
const MAX_WORDS: usize = 512;

/// The condition of a type, unless it speaks of an older generation.
pub(super) fn condition<'a>(live: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = live["status"]["conditions"].as_array()?;
    let found = conditions
        .iter()
        .find(|condition| condition["type"] == kind)?;
    let observed = count(&found["observedGeneration"]);
    (observed == 0 || observed == count(&live["metadata"]["generation"])).then_some(found)
}

/// Whether a condition is True, and of the present generation.
pub(super) fn is_true(live: &Value, kind: &str) -> bool {
    condition(live, kind).is_some_and(|condition| condition["status"] == "True")
}

/// `: reason: message` of a condition, in one line; empty if it says neither.
pub(super) fn words(condition: &Value) -> String {
    let mut words = String::new();
    for field in ["reason", "message"] {
        if let Some(text) = condition[field].as_str().filter(|text| !text.is_empty()) {
            words.push_str(": ");
            words.push_str(&one_line(text));
        }
    }
    words
}

/// The words of others as they may stand in a verdict: one line, at most [`MAX_WORDS`] characters.
pub fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_WORDS)
        .collect()
}

/// The verdict of a condition that says that all is lost: its words alone.
pub(super) fn failed(condition: &Value) -> Verdict {
    let words = words(condition);
    Verdict::Failed(
        words
            .strip_prefix(": ")
            .unwrap_or("it does not say why")
            .to_owned(),
    )
}

/// Ready when a condition is True.
pub(super) fn wants(live: &Value, kind: &str) -> Verdict {
    match condition(live, kind) {
        Some(found) if found["status"] == "True" => Verdict::Ready,
        Some(found) => Verdict::InProgress(format!("it is not {kind}{}", words(found))),
        None => Verdict::InProgress(format!("it does not say yet whether it is {kind}")),
    }
}

/// Ready when all these conditions are True; the first that is not says why. Without any it is ready at once.
pub fn all_true(live: &Value, kinds: &[String]) -> Verdict {
    kinds
        .iter()
        .map(|kind| wants(live, kind))
        .find(|verdict| !verdict.is_ready())
        .unwrap_or(Verdict::Ready)
}
