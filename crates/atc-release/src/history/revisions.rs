//! Which revision is which: active, numbered, beyond the cap.

use jiff::Timestamp;

use super::{Head, NEVER_ACTIVE};

/// The active revision: the one that became active last. None if there is none, or none ever became active.
pub fn active<T: AsRef<Head>>(revisions: &[T]) -> Option<&T> {
    let latest = revisions
        .iter()
        .max_by(|one, two| recency(one.as_ref()).cmp(&recency(two.as_ref())))?;
    (latest.as_ref().active_at != NEVER_ACTIVE).then_some(latest)
}

/// The revisions in the order of their numbers: by creation. The number of a revision is its position, from 1.
pub fn numbered<T: AsRef<Head>>(revisions: &[T]) -> Vec<&T> {
    let mut sorted: Vec<&T> = revisions.iter().collect();
    sorted.sort_by(|one, two| {
        let (one, two) = (one.as_ref(), two.as_ref());
        (one.created_at, &one.secret).cmp(&(two.created_at, &two.secret))
    });
    sorted
}

/// The number of a revision, from 1.
pub fn number<T: AsRef<Head>>(revisions: &[T], secret: &str) -> Option<usize> {
    numbered(revisions)
        .iter()
        .position(|revision| revision.as_ref().secret == secret)
        .map(|index| index + 1)
}

/// The revisions beyond the `cap` most recently active ones, least recently active first; 0 or less keeps all.
pub fn beyond_cap<T: AsRef<Head>>(revisions: &[T], cap: i64) -> Vec<&T> {
    let Ok(cap @ 1..) = usize::try_from(cap) else {
        return Vec::new();
    };
    let mut sorted: Vec<&T> = revisions.iter().collect();
    sorted.sort_by(|one, two| recency(one.as_ref()).cmp(&recency(two.as_ref())));
    sorted.truncate(revisions.len().saturating_sub(cap));
    sorted
}

fn recency(head: &Head) -> (Timestamp, Timestamp, &str) {
    (head.active_at, head.created_at, &head.secret)
}
