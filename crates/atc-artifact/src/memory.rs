//! What a process remembers of the URLs it fetched. Contents stay in memory only while somebody uses them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::artifact::{Content, Held, Origin};
use crate::http::Validators;
use crate::store::Entry;

/// How many URLs are remembered in memory: 4,096, of some 500 bytes each.
pub const MAX_KNOWN_URLS: usize = 4096;

/// How many contents may be known by their digest before those that nobody uses any more are forgotten: 64.
const CONTENTS_BEFORE_SWEEP: usize = 64;

/// What is remembered of a URL.
#[derive(Clone)]
pub(crate) struct Known {
    /// What it gave last.
    pub(crate) sha256: String,
    pub(crate) validators: Validators,
    /// What an answer from memory is called: [`Origin::Cache`], or [`Origin::Stale`] after a failed try.
    pub(crate) origin: Origin,
    /// Until when this is given without asking the server; `None` if this process never asked it.
    current_until: Option<Instant>,
    /// When its server last said so.
    learned: Option<Instant>,
    used: Instant,
}

/// URLs and what they gave; contents as long as somebody holds them.
#[derive(Default)]
pub(crate) struct Memory {
    urls: Mutex<HashMap<String, Known>>,
    contents: Mutex<HashMap<String, Held>>,
}

impl Known {
    /// What was just learned from a server, to be given without asking again for so long.
    pub(crate) fn new(
        sha256: &str,
        validators: Validators,
        current_for: Duration,
        origin: Origin,
    ) -> Self {
        let used = Instant::now();
        let current_until = used.checked_add(current_for);
        Self {
            sha256: sha256.to_owned(),
            validators,
            origin,
            current_until,
            learned: (origin != Origin::Stale).then_some(used),
            used,
        }
    }

    /// Whether its server has said so since then.
    pub(crate) fn is_learned_since(&self, then: Instant) -> bool {
        self.learned.is_some_and(|learned| learned >= then)
    }

    /// Whether this may be given without asking the server.
    pub(crate) fn is_current(&self) -> bool {
        self.current_until
            .is_some_and(|until| Instant::now() < until)
    }
}

impl From<Entry> for Known {
    /// What an earlier process left on disk: never current.
    fn from(entry: Entry) -> Self {
        let Entry {
            digests,
            validators,
        } = entry;
        Self {
            sha256: digests.sha256,
            validators,
            origin: Origin::Cache,
            current_until: None,
            learned: None,
            used: Instant::now(),
        }
    }
}

impl Memory {
    pub(crate) fn url(&self, url: &str) -> Option<Known> {
        let mut all = lock(&self.urls);
        let known = all.get_mut(url)?;
        known.used = Instant::now();
        Some(known.clone())
    }

    /// Lets what a URL gave before be given a while longer, unless the server gave something meanwhile.
    pub(crate) fn put_stale(&self, url: &str, known: Known) {
        let newer = self
            .url(url)
            .is_some_and(|now| now.is_current() || now.sha256 != known.sha256);
        if !newer {
            self.put_url(url, known);
        }
    }

    /// Remembers what a URL gave; the one used longest ago makes room.
    pub(crate) fn put_url(&self, url: &str, known: Known) {
        let mut all = lock(&self.urls);
        all.insert(url.to_owned(), known);
        if all.len() > MAX_KNOWN_URLS {
            let oldest = all
                .iter()
                .min_by_key(|(_, known)| known.used)
                .map(|(url, _)| url.clone());
            if let Some(oldest) = oldest {
                all.remove(&oldest);
            }
        }
    }

    /// The content of this digest, if somebody holds it.
    pub(crate) fn content(&self, sha256: &str) -> Option<Content> {
        lock(&self.contents).get(sha256)?.upgrade()
    }

    /// Lets others find a content as long as somebody holds it.
    pub(crate) fn put_content(&self, content: &Content) {
        let mut all = lock(&self.contents);
        if all.len() >= CONTENTS_BEFORE_SWEEP {
            all.retain(|_, held| held.is_held());
        }
        all.insert(content.digests.sha256.clone(), content.downgrade());
    }
}

/// No code panics while it holds one of these locks, and what they guard is whole between any two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
