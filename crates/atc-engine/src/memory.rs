//! What is remembered of a release between two evaluations, so that only what changed is applied.
//!
//! Nothing here is needed for being right: a fresh [`Memory`] makes the next evaluation read the history and apply each
//! child once. It may be lost at any time.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use atc_api::ResourceRef;
use atc_release::history::Revision;
use atc_watch::{Fingerprint, Latest};

/// A verdict of a dry run counts for so long: admission is followed by the evaluation within milliseconds; what changed
/// in the cluster later than this is looked at anew.
pub const VERDICT_LIFE: Duration = Duration::from_secs(10);
/// Verdicts kept for one release at most; older ones go first. An edit leaves one, so this is many edits in 10 s.
pub const VERDICTS: usize = 32;

/// One child as it was last applied.
#[derive(Clone, Debug)]
pub struct Applied {
    /// Hash of the object as sent.
    pub sent: String,
    /// What a watch shows as long as nobody interferes.
    pub fingerprint: Fingerprint,
}

/// Children as last applied; shared with admission, which skips the dry run of what would not be applied.
#[derive(Clone, Debug, Default)]
pub struct AppliedChildren(Arc<RwLock<HashMap<ResourceRef, Applied>>>);

impl AppliedChildren {
    /// Whether sending this again would change nothing: sent as before, and the watch shows what it should.
    pub fn is_undisturbed(&self, reference: &ResourceRef, sent: &str, latest: &Latest) -> bool {
        let children = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(applied) = children.get(reference) else {
            return false;
        };
        applied.sent == sent
            && matches!(latest, Latest::Present(shown) if shown.undisturbed(&applied.fingerprint))
    }

    /// Whether this very object was sent last.
    pub fn was_sent(&self, reference: &ResourceRef, sent: &str) -> bool {
        let children = self.0.read().unwrap_or_else(PoisonError::into_inner);
        children
            .get(reference)
            .is_some_and(|applied| applied.sent == sent)
    }

    /// Remembers what was applied.
    pub fn insert(&self, reference: ResourceRef, applied: Applied) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(reference, applied);
    }

    /// The fingerprint after our last apply.
    pub fn fingerprint(&self, reference: &ResourceRef) -> Option<Fingerprint> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(reference)
            .map(|a| a.fingerprint.clone())
    }

    /// Forgets all but these.
    pub fn retain(&self, keep: &HashSet<ResourceRef>) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|reference, _| keep.contains(reference));
    }

    /// Makes the next evaluation apply each child; which they are stays known.
    pub fn clear(&self) {
        let mut children = self.0.write().unwrap_or_else(PoisonError::into_inner);
        children
            .values_mut()
            .for_each(|applied| applied.sent.clear());
    }
}

/// Hashes of desired states that a dry run passed, with when; shared between admission and evaluation.
#[derive(Clone, Debug, Default)]
pub struct Verdicts(Arc<RwLock<Vec<(String, Instant)>>>);

impl Verdicts {
    /// Whether this passed a dry run a short while ago.
    pub fn passed(&self, hash: &str, now: Instant) -> bool {
        let verdicts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        verdicts
            .iter()
            .any(|(known, at)| known == hash && now.saturating_duration_since(*at) < VERDICT_LIFE)
    }

    /// Remembers that this passed.
    pub fn pass(&self, hash: String, now: Instant) {
        let mut verdicts = self.0.write().unwrap_or_else(PoisonError::into_inner);
        verdicts.retain(|(known, at)| {
            *known != hash && now.saturating_duration_since(*at) < VERDICT_LIFE
        });
        if verdicts.len() >= VERDICTS {
            verdicts.remove(0);
        }
        verdicts.push((hash, now));
    }
}

/// See the module's words.
#[derive(Debug, Default)]
pub struct Memory {
    /// Children as last applied.
    pub applied: AppliedChildren,
    /// Dry runs that passed lately.
    pub verdicts: Verdicts,
    /// The release's revisions, once read; we are their only writer while we hold the memory.
    pub revisions: Option<Vec<Revision>>,
    /// When the cluster was last seen to hold them.
    pub confirmed: Option<Instant>,
    /// Objects of older revisions that are known to be gone or not ours any more.
    pub gone: HashSet<ResourceRef>,
}

impl Memory {
    /// The known revisions; empty when they were not read yet.
    pub fn history(&self) -> &[Revision] {
        self.revisions.as_deref().unwrap_or_default()
    }

    /// A memory that shares the applied children and the verdicts, for an admission review of the same release.
    pub fn for_review(applied: AppliedChildren, verdicts: Verdicts) -> Self {
        Self {
            applied,
            verdicts,
            ..Self::default()
        }
    }

    /// Forgets what would keep the next evaluation from reading and applying all.
    pub fn forget(&mut self) {
        self.applied.clear();
        self.revisions = None;
        self.gone.clear();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(uid: &str, version: &str, generation: i64, label: &str) -> Fingerprint {
        Fingerprint::of(&json!({"metadata": {
            "uid": uid, "resourceVersion": version, "generation": generation, "labels": {"l": label},
        }}))
    }

    #[test]
    fn only_what_nobody_touched_is_left_alone() {
        let children = AppliedChildren::default();
        let reference = ResourceRef::new("n", "apps", "Deployment", "d");
        let check = |sent: &str, latest: &Latest, expect: bool| {
            assert_eq!(
                children.is_undisturbed(&reference, sent, latest),
                expect,
                "{sent} {latest:?}"
            );
        };
        let present = |f: Fingerprint| Latest::Present(f);
        check("h", &present(shown("u", "5", 1, "a")), false);
        let applied = Applied {
            sent: "h".into(),
            fingerprint: shown("u", "5", 1, "a"),
        };
        children.insert(reference.clone(), applied);
        check("h", &present(shown("u", "5", 1, "a")), true);
        check("h", &present(shown("u", "9", 1, "a")), true); // its status moved
        check("other", &present(shown("u", "5", 1, "a")), false);
        check("h", &present(shown("u", "9", 2, "a")), false); // its spec moved
        check("h", &present(shown("u", "9", 1, "b")), false); // its labels moved
        check("h", &present(shown("v", "9", 1, "a")), false); // another object
        check("h", &Latest::Absent { at: 9 }, false);
        check("h", &Latest::Unknown, false);
        children.clear();
        check("h", &present(shown("u", "5", 1, "a")), false);
    }

    #[test]
    fn verdicts_pass_for_a_while_and_are_bounded() {
        let (verdicts, now) = (Verdicts::default(), Instant::now());
        verdicts.pass("a".into(), now);
        assert!(verdicts.passed("a", now) && !verdicts.passed("b", now));
        assert!(!verdicts.passed("a", now + VERDICT_LIFE));
        for number in 0..2 * VERDICTS {
            verdicts.pass(number.to_string(), now);
        }
        assert!(
            !verdicts.passed("0", now) && verdicts.passed(&(2 * VERDICTS - 1).to_string(), now)
        );
    }
}
