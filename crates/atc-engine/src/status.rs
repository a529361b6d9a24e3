//! Report plus the flight's own status → the status to write, or nothing.
//!
//! Rules: a status that the flight printed for its parent becomes the whole status, its conditions
//! merged by type over the present ones; a `Ready` condition of the flight's is kept as it is, unless an evaluation has
//! failed since it was printed; else ours is set.
//! Times are no difference: a condition that says the same keeps its stored time, and a status that
//! differs in nothing else is not written.

use serde_json::{Map, Value, json};

/// What the controller itself says about readiness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// `True` or `False`.
    pub status: bool,
    /// `InProgress`, `Ready`, `Error` or `Terminating`.
    pub reason: &'static str,
    /// One line for people; cut to [`MESSAGE_MAX`].
    pub message: String,
}

/// The longest message of a condition in bytes: the API's own bound for conditions is 32,768.
pub const MESSAGE_MAX: usize = 32_000;

impl Ready {
    /// Everything is there and ready.
    pub fn settled() -> Self {
        Self {
            status: true,
            reason: "Ready",
            message: "all resources are ready".into(),
        }
    }

    /// Children are not ready yet.
    pub fn in_progress(message: impl Into<String>) -> Self {
        Self {
            status: false,
            reason: "InProgress",
            message: message.into(),
        }
    }

    /// The evaluation failed, or a child did for good.
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            status: false,
            reason: "Error",
            message: message.into(),
        }
    }

    /// The same with more words.
    #[must_use]
    pub(crate) fn and(mut self, words: &str) -> Self {
        self.message = format!("{}; {words}", self.message);
        self
    }

    /// The object is on its way out.
    pub fn terminating(message: impl Into<String>) -> Self {
        Self {
            status: false,
            reason: "Terminating",
            message: message.into(),
        }
    }

    fn condition(&self, generation: i64, now: &str) -> Value {
        let mut message = self.message.clone();
        if message.len() > MESSAGE_MAX {
            let mut end = MESSAGE_MAX;
            while !message.is_char_boundary(end) {
                end -= 1;
            }
            message.truncate(end);
            message.push('…');
        }
        json!({
            "type": "Ready",
            "status": if self.status { "True" } else { "False" },
            "reason": self.reason,
            "message": message,
            "observedGeneration": generation,
            "lastTransitionTime": now,
        })
    }
}

/// The status to store, or `None` when what is stored says the same already.
///
/// `current` is the stored status (null when there is none), `printed` what the flight printed for its parent,
/// `generation` the object's, `now` an RFC 3339 time. What can be no status counts
/// for nothing.
pub fn next(
    current: &Value,
    printed: Option<&Value>,
    ready: &Ready,
    generation: i64,
    now: &str,
) -> Option<Value> {
    let printed = printed.filter(|printed| misfit(printed).is_none());
    let stored = conditions(current);
    let printed_conditions = printed.map(conditions).unwrap_or_default();
    let mut status = match printed.or(Some(current)) {
        Some(Value::Object(map)) => map.clone(),
        _ => Map::new(),
    };

    let mut merged = stored.clone();
    for condition in &printed_conditions {
        put(&mut merged, condition, now);
    }
    if !printed_conditions.iter().any(|c| kind_of(c) == "Ready") {
        put(&mut merged, &ready.condition(generation, now), now);
    }
    status.insert("conditions".into(), Value::Array(merged));
    let status = Value::Object(status);
    (!same(current, &status)).then_some(status)
}

/// Why a status that was printed can't be one, whatever the schema says: a status is an object, and conditions a list of
/// objects.
pub(crate) fn misfit(printed: &Value) -> Option<String> {
    let Value::Object(fields) = printed else {
        let what = type_of(printed);
        return Some(format!("status is {what}, and must be an object"));
    };
    match fields.get("conditions")? {
        Value::Null => None,
        Value::Array(all) => {
            let mut all = all.iter().enumerate();
            let (at, odd) = all.find(|(_, condition)| !condition.is_object())?;
            let what = type_of(odd);
            Some(format!(
                "status.conditions[{at}] is {what}, and must be an object"
            ))
        }
        other => {
            let what = type_of(other);
            Some(format!("status.conditions is {what}, and must be a list"))
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Takes the `Ready` condition out of a status that was printed.
pub(crate) fn forget_ready(printed: &mut Value) {
    let conditions = printed.get_mut("conditions").and_then(Value::as_array_mut);
    if let Some(conditions) = conditions {
        conditions.retain(|condition| kind_of(condition) != "Ready");
    }
}

/// Our part of a stored status: what the flight printed, and the `Ready` condition. What else is in it is others'.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ours {
    fields: Map<String, Value>,
    conditions: Vec<Value>,
}

impl Ours {
    /// That of a status as it is stored, after a flight that printed this (or nothing) for its parent.
    pub fn of(stored: &Value, printed: Option<&Value>) -> Self {
        let printed = printed.filter(|printed| misfit(printed).is_none());
        let printed_conditions = printed.map(conditions).unwrap_or_default();
        let is_ours = |condition: &Value| {
            let kind = kind_of(condition);
            kind == "Ready" || printed_conditions.iter().any(|one| kind_of(one) == kind)
        };
        let names = printed.and_then(Value::as_object).into_iter().flatten();
        let names = names
            .map(|(name, _)| name)
            .filter(|name| *name != "conditions");
        let field = |name: &String| Some((name.clone(), stored.get(name)?.clone()));
        Self {
            fields: names.filter_map(field).collect(),
            conditions: conditions(stored).into_iter().filter(is_ours).collect(),
        }
    }

    /// Whether a status still says it, whatever times its conditions bear.
    pub fn stands_in(&self, status: &Value) -> bool {
        let live = conditions(status);
        let is_there = |ours: &Value| {
            live.iter()
                .find(|live| kind_of(live) == kind_of(ours))
                .is_some_and(|live| timeless(live) == timeless(ours))
        };
        self.fields
            .iter()
            .all(|(name, value)| status.get(name) == Some(value))
            && self.conditions.iter().all(is_there)
    }
}

fn timeless(condition: &Value) -> Value {
    let mut condition = condition.clone();
    if let Value::Object(map) = &mut condition {
        map.shift_remove("lastTransitionTime");
    }
    condition
}

fn conditions(status: &Value) -> Vec<Value> {
    status
        .get("conditions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

fn kind_of(condition: &Value) -> &str {
    condition
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Puts a condition over the one of its type; its time moves only when its status does.
fn put(conditions: &mut Vec<Value>, condition: &Value, now: &str) {
    let mut condition = condition.clone();
    let Some(stored) = conditions
        .iter_mut()
        .find(|c| kind_of(c) == kind_of(&condition))
    else {
        if let Value::Object(map) = &mut condition
            && !map.get("lastTransitionTime").is_some_and(Value::is_string)
        {
            map.insert("lastTransitionTime".into(), now.into());
        }
        conditions.push(condition);
        return;
    };
    if stored.get("status") == condition.get("status")
        && let (Value::Object(map), Some(time)) = (&mut condition, stored.get("lastTransitionTime"))
    {
        map.insert("lastTransitionTime".into(), time.clone());
    } else if let Value::Object(map) = &mut condition
        && !map.get("lastTransitionTime").is_some_and(Value::is_string)
    {
        map.insert("lastTransitionTime".into(), now.into());
    }
    *stored = condition;
}

/// Whether two statuses that we made say the same, whatever times their conditions bear.
pub fn alike(a: &Value, b: &Value) -> bool {
    let without_times = |status: &Value| {
        let mut status = status.clone();
        for condition in status
            .get_mut("conditions")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            *condition = timeless(condition);
        }
        status
    };
    without_times(a) == without_times(b)
}

/// Equality without regard to the order of keys. Times of conditions were made equal by [`put`].
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, Value::Object(map)) | (Value::Object(map), Value::Null) => map.is_empty(),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "2026-01-01T00:00:00Z";
    const NOW: &str = "2026-02-02T00:00:00Z";

    fn cond(kind: &str, status: &str, reason: &str, time: &str) -> Value {
        json!({"type": kind, "status": status, "reason": reason, "message": "m", "lastTransitionTime": time})
    }

    #[test]
    fn ours_is_added_and_settles() {
        let first = next(&Value::Null, None, &Ready::settled(), 3, NOW).expect("written");
        assert_eq!(first["conditions"][0]["type"], "Ready");
        assert_eq!(first["conditions"][0]["observedGeneration"], 3);
        assert_eq!(
            next(&first, None, &Ready::settled(), 3, "2027-01-01T00:00:00Z"),
            None
        );
    }

    #[test]
    fn time_moves_with_status_only() {
        let first = next(&Value::Null, None, &Ready::in_progress("a"), 1, OLD).expect("written");
        let second = next(&first, None, &Ready::in_progress("b"), 1, NOW).expect("message changed");
        assert_eq!(second["conditions"][0]["lastTransitionTime"], OLD);
        let third = next(&second, None, &Ready::settled(), 1, NOW).expect("status changed");
        assert_eq!(third["conditions"][0]["lastTransitionTime"], NOW);
    }

    #[test]
    fn printed_status_is_whole_and_keeps_other_conditions() {
        let current = json!({"old": 1, "conditions": [cond("Warm", "True", "Yes", OLD)]});
        let printed = json!({"msg": "hi", "conditions": [cond("Painted", "True", "Dry", OLD)]});
        let status = next(&current, Some(&printed), &Ready::settled(), 1, NOW).expect("written");
        assert_eq!(status["msg"], "hi");
        assert!(status.get("old").is_none());
        let kinds: Vec<_> = status["conditions"]
            .as_array()
            .expect("list")
            .iter()
            .map(kind_of)
            .collect();
        assert_eq!(kinds, ["Warm", "Painted", "Ready"]);
        assert_eq!(
            next(
                &status,
                Some(&printed),
                &Ready::settled(),
                1,
                "2028-01-01T00:00:00Z"
            ),
            None
        );
    }

    #[test]
    fn a_status_that_can_be_none_is_told_and_counts_for_nothing() {
        let check = |printed: Value, expect: Option<&str>| {
            assert_eq!(misfit(&printed).as_deref(), expect, "{printed}");
            if expect.is_some() {
                let current =
                    json!({ "msg": "hi", "conditions": [cond("Warm", "True", "Yes", OLD)] });
                let with = next(&current, Some(&printed), &Ready::error("no"), 1, NOW);
                let without = next(&current, None, &Ready::error("no"), 1, NOW);
                assert_eq!(with, without, "{printed}");
            }
        };
        check(json!({}), None);
        check(json!({ "conditions": null }), None);
        check(json!({ "conditions": [{ "type": "Warm" }] }), None);
        check(json!("x"), Some("status is a text, and must be an object"));
        check(json!([]), Some("status is a list, and must be an object"));
        check(
            json!({ "msg": "ho", "conditions": "nope" }),
            Some("status.conditions is a text, and must be a list"),
        );
        check(
            json!({ "conditions": {} }),
            Some("status.conditions is an object, and must be a list"),
        );
        check(
            json!({ "conditions": [{}, 1] }),
            Some("status.conditions[1] is a number, and must be an object"),
        );
    }

    #[test]
    fn own_ready_of_the_flight_is_kept() {
        let printed = json!({"conditions": [cond("Ready", "False", "Custom", OLD)]});
        let status =
            next(&Value::Null, Some(&printed), &Ready::settled(), 1, NOW).expect("written");
        assert_eq!(
            status["conditions"],
            json!([cond("Ready", "False", "Custom", OLD)])
        );
        assert_eq!(
            next(&status, Some(&printed), &Ready::settled(), 2, NOW),
            None
        );
    }

    #[test]
    fn only_our_part_is_to_stand() {
        let printed =
            json!({"msg": "hi", "lost": 1, "conditions": [cond("Painted", "True", "Dry", OLD)]});
        let stored = json!({"msg": "hi", "conditions": [
            cond("Warm", "True", "Yes", OLD), cond("Painted", "True", "Dry", OLD), cond("Ready", "True", "Ready", OLD),
        ]});
        let ours = Ours::of(&stored, Some(&printed));
        let check = |ours: &Ours, path: &str, value: Value, expect: bool| {
            let mut status = stored.clone();
            *status.pointer_mut(path).expect("there") = value.clone();
            assert_eq!(ours.stands_in(&status), expect, "{path} {value}");
        };
        assert!(ours.stands_in(&stored) && !ours.stands_in(&Value::Null));
        check(&ours, "/msg", json!("ho"), false);
        check(
            &ours,
            "/conditions/0",
            cond("Warm", "False", "No", NOW),
            true,
        );
        check(&ours, "/conditions/1/reason", json!("Wet"), false);
        check(&ours, "/conditions/2/status", json!("False"), false);
        check(&ours, "/conditions/2/lastTransitionTime", json!(NOW), true);
        check(&ours, "/conditions", json!([]), false);
        // Of a flight that prints no status, only the condition is ours.
        let ready = Ours::of(&stored, None);
        check(&ready, "/msg", json!("ho"), true);
        check(&ready, "/conditions/1/reason", json!("Wet"), true);
        check(&ready, "/conditions/2/status", json!("False"), false);
    }

    #[test]
    fn a_message_is_cut_at_a_character() {
        let ready = Ready::error("ä".repeat(MESSAGE_MAX));
        let status = next(&Value::Null, None, &ready, 1, NOW).expect("written");
        assert!(
            status["conditions"][0]["message"]
                .as_str()
                .expect("text")
                .len()
                <= MESSAGE_MAX + 4
        );
    }
}
