//! Changes as somebody else's watches show them, asked for in memory; a poll, ever slower, for what they do not show.

use std::time::{Duration, Instant};

use super::{Due, Place};
use crate::readiness;

/// Time between two questions; they cost no call.
const ASK: Duration = Duration::from_millis(20);
/// First time between two looks at what the watches can't tell; doubles up to [`POLL_MAX`].
const POLL_MIN: Duration = Duration::from_millis(50);
/// Longest time between two looks at what the watches can't tell.
const POLL_MAX: Duration = Duration::from_secs(1);

/// See the module's words.
pub(super) struct Told<'a> {
    tells: &'a (dyn Fn(usize) -> Option<String> + Sync),
    pause: Duration,
    next_poll: Instant,
}

impl<'a> Told<'a> {
    pub(super) fn new(tells: &'a (dyn Fn(usize) -> Option<String> + Sync)) -> Self {
        Self {
            tells,
            pause: POLL_MIN,
            next_poll: Instant::now() + POLL_MIN,
        }
    }

    /// What is to be looked at, as soon as there is anything; nothing when the deadline comes first.
    pub(super) async fn next(
        &mut self,
        places: &[Place<'_>],
        deadline: Instant,
    ) -> Vec<(usize, Due)> {
        loop {
            let now = Instant::now();
            if now >= deadline {
                return Vec::new();
            }
            let polling = now >= self.next_poll;
            let due: Vec<(usize, Due)> = places
                .iter()
                .enumerate()
                .filter(|(index, place)| !place.is_ready() && self.is_due(*index, place, polling))
                .map(|(index, _)| (index, Due::Look))
                .collect();
            if polling {
                self.pause = (self.pause * 2).min(POLL_MAX);
                self.next_poll = now + self.pause;
            }
            if !due.is_empty() {
                return due;
            }
            tokio::time::sleep(ASK.min(deadline - now)).await;
        }
    }

    fn is_due(&self, index: usize, place: &Place<'_>, polling: bool) -> bool {
        if place.missed {
            return polling;
        }
        let rests = !readiness::related(place.object.value()).is_empty();
        match (self.tells)(index) {
            Some(shown) if is_newer(&shown, &place.version) => true,
            Some(_) => polling && rests,
            None => polling,
        }
    }
}

/// Whether one resourceVersion is newer than another: numbers that grow, by the API's own rule. An object that is shown as
/// gone has none, and is looked at once.
fn is_newer(shown: &str, known: &str) -> bool {
    match (shown.parse::<u64>(), known.parse::<u64>()) {
        (Ok(shown), Ok(known)) => shown > known,
        _ => shown != known,
    }
}

#[cfg(test)]
mod tests {
    use super::is_newer;

    #[test]
    fn versions() {
        for (shown, known, expect) in [
            ("5", "4", true),
            ("10", "9", true),
            ("4", "4", false),
            ("4", "5", false),
            ("5", "", true),
            ("", "", false),
            ("x", "y", true),
        ] {
            assert_eq!(is_newer(shown, known), expect, "{shown} {known}");
        }
    }
}
