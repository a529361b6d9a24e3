//! The Ready condition: what a user reads first, its closed list of reasons, and how a list of conditions is changed.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The only condition type that this project sets.
pub const READY: &str = "Ready";

/// Why an object is, or is not, ready. The list is closed: scripts may rely on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadyReason {
    /// Its children are not all ready yet; nothing is wrong. Status `False`.
    InProgress,
    /// All is as desired. Status `True`.
    Ready,
    /// Something failed; the message says what. Status `False`.
    Error,
    /// It is being deleted and its children with it. Status `False`.
    Terminating,
}

impl ReadyReason {
    /// The word in the condition's `reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "InProgress",
            Self::Ready => "Ready",
            Self::Error => "Error",
            Self::Terminating => "Terminating",
        }
    }

    /// The status that goes with it.
    pub const fn status(self) -> ConditionStatus {
        match self {
            Self::Ready => ConditionStatus::True,
            Self::InProgress | Self::Error | Self::Terminating => ConditionStatus::False,
        }
    }
}

impl fmt::Display for ReadyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows.
    #[default]
    Unknown,
}

impl ConditionStatus {
    /// The word in the condition's `status`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl JsonSchema for ConditionStatus {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ConditionStatus".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": ["True", "False", "Unknown"] })
    }
}

/// One observation about an object, as everywhere in Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about; one of a kind in a list.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// One word for programs: why it holds or not.
    pub reason: String,
    /// One line for people.
    pub message: String,
    /// When the status last changed (RFC 3339).
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: String,
    /// The generation of the object that this was said about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// A Ready condition. Its time is set by [`set`].
    pub fn ready(reason: ReadyReason, message: impl Into<String>, generation: Option<i64>) -> Self {
        Self {
            type_: READY.to_owned(),
            status: reason.status(),
            reason: reason.as_str().to_owned(),
            message: message.into(),
            last_transition_time: String::new(),
            observed_generation: generation,
        }
    }

    /// Equal but for the time.
    fn says_the_same(&self, other: &Self) -> bool {
        self.type_ == other.type_
            && self.status == other.status
            && self.reason == other.reason
            && self.message == other.message
            && self.observed_generation == other.observed_generation
    }
}

/// The condition of that type, if the list has one.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Puts `new` in the place of the condition of its type, or at the end, and says whether the list changed.
///
/// `now` (RFC 3339) becomes the time of transition where the status differs from before; the time that `new` carries is
/// not looked at. Nothing but the time differs: the list stays as it is and the answer is `false`.
pub fn set(conditions: &mut Vec<Condition>, new: Condition, now: &str) -> bool {
    let Some(old) = conditions
        .iter_mut()
        .find(|condition| condition.type_ == new.type_)
    else {
        conditions.push(Condition {
            last_transition_time: now.to_owned(),
            ..new
        });
        return true;
    };
    if old.says_the_same(&new) {
        return false;
    }
    let kept = old.status == new.status && !old.last_transition_time.is_empty();
    let last_transition_time = if kept {
        std::mem::take(&mut old.last_transition_time)
    } else {
        now.to_owned()
    };
    *old = Condition {
        last_transition_time,
        ..new
    };
    true
}

#[cfg(test)]
mod tests;
