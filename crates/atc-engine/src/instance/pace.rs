//! How soon an instance is evaluated again for what it, or another instance, brings about: a flight that prints something else
//! with each run and looks at it, or an object that two print, would keep it busy for ever.
//!
//! It is told by what a run was given and what it did, not by what woke it: the same instance, flight and look-ups of what no
//! instance has made, soon after the run before, and yet it changed something.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use atc_access::Read;
use atc_api::{AirwayMode, ResourceRef};
use serde_json::Value;

use super::{InstanceMemory, InstanceSettings};
use crate::children;
use crate::disposition::Disposition;
use crate::kept::fingerprint;
use crate::observer::Observer;
use crate::status::Ready;

/// The longest time that changes of what instances made are left alone: 30 s. They cost two runs a minute then, and whoever
/// fights with an instance sees that it does not give up.
const LONGEST: Duration = Duration::from_secs(30);
/// The pause is this part of the time for which it goes on already: a third. A chain of a few steps is not slowed down, and
/// what was answered for 10 s is answered within 4 s when it is over.
const PART: u32 = 3;
/// From this pause on the status says so: 4 s, which is after 12 s. What is over sooner is no matter for people.
const TOLD: Duration = Duration::from_secs(4);
/// Two changes belong together where the second run begins within twice the pause and this much more: 2 s, for the watches and
/// for a queue with others in it.
const SLACK: Duration = Duration::from_secs(2);

/// See the module's words.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Hash of what the last good run was given.
    given: u64,
    /// When the first of these runs ended that changed something.
    since: Option<Instant>,
    /// When the last of them did.
    last: Option<Instant>,
    pause: Duration,
}

impl Pace {
    /// A run has ended well that was given this, and whether it changed something.
    pub(super) fn ran(&mut self, given: u64, changed: bool, began: Instant, now: Instant) {
        let is_soon = |last| began.saturating_duration_since(last) < self.quiet();
        let goes_on = given == self.given && self.last.is_some_and(is_soon);
        if !goes_on {
            *self = Self {
                given,
                ..Self::default()
            };
        }
        if changed {
            let since = *self.since.get_or_insert(now);
            self.last = Some(now);
            self.pause = (now.saturating_duration_since(since) / PART).min(LONGEST);
        }
    }

    /// After so long without a change it is over.
    fn quiet(&self) -> Duration {
        self.pause * 2 + SLACK
    }

    fn is_told(&self) -> bool {
        self.pause >= TOLD
    }

    /// When to come back. Where the status tells of it, once more when it is over, so that it does not say so for ever.
    pub(super) fn disposition(&self) -> Disposition {
        if self.pause.is_zero() {
            return Disposition::Wait;
        }
        Disposition::Paced {
            pause: self.pause,
            again: self.is_told().then(|| self.quiet()),
        }
    }

    /// What is said of the children, and of the pace where that is to be told. The words stay the same as long as it goes on.
    pub(super) fn tell(&self, ready: Ready) -> Ready {
        if !self.is_told() {
            return ready;
        }
        let words = format!(
            "evaluated at most every {} s: what it makes changes with each run, or another one changes it",
            LONGEST.as_secs()
        );
        ready.and(&words)
    }
}

/// A run that has ended well.
pub(super) struct Ran<'a> {
    pub(super) settings: &'a InstanceSettings,
    pub(super) object: &'a Value,
    /// Which flight.
    pub(super) flight: &'a str,
    /// The instance.
    pub(super) reference: &'a ResourceRef,
    /// Whether it has written or removed something.
    pub(super) writes: bool,
    /// Whether its flight printed another status than before.
    pub(super) says_anew: bool,
    pub(super) began: Instant,
}

impl InstanceMemory {
    /// Takes down a run, of which the memory knows the children and look-ups already.
    pub(super) fn keep_pace(&mut self, run: &Ran<'_>, observer: &dyn Observer) {
        // In the other modes no child has it evaluated, and nothing that was looked up.
        let mode = run.settings.mode;
        if !matches!(mode, AirwayMode::Dynamic | AirwayMode::Subscription) {
            self.pace = Pace::default();
            return;
        }
        let is_child = |target: &ResourceRef| {
            let mut children = self.children.iter();
            children.any(|child| child.target.reference == *target)
        };
        let is_made = |target: &ResourceRef| {
            target == run.reference || is_child(target) || observer.is_made(target)
        };
        let given = given(fingerprint(run.object), run.flight, &self.reads, is_made);
        let looks_at_itself = || self.reads.iter().any(|read| read.target == *run.reference);
        let changed = run.writes || (run.says_anew && looks_at_itself());
        self.pace.ran(given, changed, run.began, Instant::now());
    }

    /// What the children say together, and why it is evaluated no more often.
    pub(super) fn summary(&self) -> Ready {
        self.pace.tell(children::summary(&self.children))
    }
}

/// Hash of what a run was given besides what instances make: the instance, its flight, and what it looked up.
fn given(said: u64, flight: &str, reads: &[Read], is_made: impl Fn(&ResourceRef) -> bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    (said, flight).hash(&mut hasher);
    for read in reads.iter().filter(|read| !is_made(&read.target)) {
        (&read.target, &read.observed).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use atc_access::{Observed, ReadKind};

    use super::*;

    /// Runs as often as it may be run, until a time; how many runs there were, and the pause then.
    fn spin(pace: &mut Pace, given: u64, start: Instant, limit: u64) -> (usize, Instant) {
        let (mut now, mut runs) = (start, 0);
        while now < start + Duration::from_secs(limit) {
            pace.ran(given, true, now, now);
            runs += 1;
            now += pace.pause.max(Duration::from_secs(1));
        }
        (runs, now)
    }

    #[test]
    fn what_goes_on_is_run_ever_more_seldom_r09() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let (runs, now) = spin(&mut pace, 1, start, 10);
        assert!((7..=10).contains(&runs), "{runs} runs in 10 s");
        assert!(pace.pause < TOLD && !pace.is_told(), "{:?}", pace.pause);
        let (runs, now) = spin(&mut pace, 1, now, 90);
        assert!(runs <= 12, "{runs} runs in 90 s");
        let (runs, _) = spin(&mut pace, 1, now, 600);
        assert!(runs <= 21, "{runs} runs in 10 min");
        assert_eq!(pace.pause, LONGEST);
        let said = pace.tell(Ready::settled()).message;
        assert!(said.starts_with("all resources are ready; evaluated at most every 30 s: "));
    }

    #[test]
    fn it_is_over_with_other_input_and_with_a_quiet_time() {
        let start = Instant::now();
        let paced = || {
            let mut pace = Pace::default();
            let (_, now) = spin(&mut pace, 1, start, 60);
            assert!(pace.is_told());
            (pace, now)
        };
        let (mut pace, now) = paced();
        pace.ran(2, true, now, now);
        assert_eq!(pace.disposition(), Disposition::Wait, "an edit");
        let (mut pace, now) = paced();
        let Disposition::Paced { pause, again } = pace.disposition() else {
            panic!("{pace:?}");
        };
        let last = pace.last.expect("it has changed something");
        // A run that changes nothing tells that it is over only after a while.
        pace.ran(1, false, now, now);
        assert_eq!(pace.pause, pause);
        let over = last + again.expect("one more run");
        pace.ran(1, true, over, over);
        assert_eq!(pace.disposition(), Disposition::Wait);
        assert_eq!(pace.tell(Ready::settled()), Ready::settled());
    }

    #[test]
    fn steps_with_time_between_them_are_not_slowed_down() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        for step in 0..100 {
            let now = start + Duration::from_secs(3 * step);
            pace.ran(1, true, now, now);
            assert_eq!(pace.disposition(), Disposition::Wait);
        }
    }

    #[test]
    fn what_instances_make_is_not_given() {
        let read = |name: &str, version: &str| Read {
            target: ResourceRef::new("n", "", "ConfigMap", name),
            api_version: "v1".into(),
            plural: "configmaps".into(),
            namespaced: true,
            kind: ReadKind::External,
            observed: Observed::Present {
                uid: "u".into(),
                resource_version: version.into(),
            },
        };
        let given = |said: u64, flight: &str, reads: [Read; 2]| {
            given(said, flight, &reads, |target| target.name == "made")
        };
        let before = given(1, "f", [read("made", "1"), read("foreign", "1")]);
        assert_eq!(
            before,
            given(1, "f", [read("made", "2"), read("foreign", "1")])
        );
        for other in [
            given(1, "f", [read("made", "1"), read("foreign", "2")]),
            given(2, "f", [read("made", "1"), read("foreign", "1")]),
            given(1, "g", [read("made", "1"), read("foreign", "1")]),
        ] {
            assert_ne!(before, other);
        }
    }
}
