//! What is remembered of an instance between its evaluations. It may be lost at any time: the next evaluation finds it anew.

use std::time::Instant;

use atc_access::Read;
use atc_watch::Dependency;
use serde_json::Value;

use super::pace::Pace;
use crate::children::Child;
use crate::memory::Memory;
use crate::status::{self, Ready};

/// See the module's words.
#[derive(Debug, Default)]
pub struct InstanceMemory {
    /// Of its release.
    pub release: Memory,
    /// Its children as last judged.
    pub children: Vec<Child>,
    /// What it read in its last good run.
    pub(super) reads: Vec<Read>,
    /// The account that its release acts as, as it was seen last.
    pub(super) account: Option<Dependency>,
    /// The status that the flight printed last; without its `Ready`, if an evaluation has failed since.
    pub(super) printed: Option<Value>,
    /// The instance as it was stored when its status said last what is waited for.
    pub(super) told: Option<Value>,
    /// What the last evaluation came to, if it failed.
    pub(super) failure: Option<Ready>,
    /// The last status that was sent and what the server made of it, where the two differ (a schema that prunes).
    pub(super) pruned_status: Option<(Value, Value)>,
    /// How soon it is evaluated again for what instances make.
    pub(super) pace: Pace,
    /// Since when its children are found unprotected, where they are to be.
    pub(super) unprotected: Option<Instant>,
    /// Since when others hold its removal up.
    pub(super) held_up: Option<Instant>,
    /// Since when others hold up what has left its output.
    pub(super) left_over: Option<Instant>,
}

impl InstanceMemory {
    /// An evaluation came to nothing else than this. `printed` is the status that its flight printed all the same; without one
    /// that of an earlier run stays, but for its `Ready`, which knows nothing of what failed.
    pub(super) fn fail(&mut self, ready: &Ready, printed: Option<Value>) {
        self.failure = Some(ready.clone());
        if printed.is_some() {
            self.printed = printed;
        } else if let Some(before) = &mut self.printed {
            status::forget_ready(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-02-02T00:00:00Z";

    #[test]
    fn a_ready_that_was_printed_before_a_failure_does_not_hide_it() {
        let printed = |reason: &str| {
            json!({ "msg": reason, "conditions": [
                { "type": "Warm", "status": "True", "reason": "Yes", "message": "m", "lastTransitionTime": NOW },
                { "type": "Ready", "status": "True", "reason": reason, "message": "m", "lastTransitionTime": NOW },
            ] })
        };
        let failure = Ready::error("refused");
        let said = |memory: &InstanceMemory, stored: &Value| {
            let next = status::next(stored, memory.printed.as_ref(), &failure, 1, NOW);
            next.unwrap_or_else(|| stored.clone())
        };
        let reason = |status: &Value| status["conditions"][1]["reason"].clone();
        let mut memory = InstanceMemory {
            printed: Some(printed("Custom")),
            ..InstanceMemory::default()
        };
        let stored = said(&memory, &Value::Null);
        assert_eq!(reason(&stored), "Custom");
        // An apply is refused, the module is gone, the run traps: whoever looks afterwards says the same.
        memory.fail(&failure, None);
        let failed = said(&memory, &stored);
        assert_eq!(reason(&failed), "Error");
        assert_eq!(
            (&failed["msg"], &failed["conditions"][0]["reason"]),
            (&json!("Custom"), &json!("Yes"))
        );
        assert_eq!(said(&memory, &failed), failed);
        // What the failed run itself has printed counts, until another says nothing.
        memory.fail(&failure, Some(printed("Mine")));
        let mine = said(&memory, &failed);
        assert_eq!(
            (reason(&mine), &mine["msg"]),
            (json!("Mine"), &json!("Mine"))
        );
        memory.fail(&failure, None);
        assert_eq!(reason(&said(&memory, &mine)), "Error");
        let mut memory = InstanceMemory::default();
        memory.fail(&failure, None);
        assert_eq!((memory.printed, memory.failure), (None, Some(failure)));
    }
}
