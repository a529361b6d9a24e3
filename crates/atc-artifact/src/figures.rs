//! What a fetcher has done so far, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a [`Fetcher`](crate::Fetcher) has done since it was made, in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchFigures {
    /// Modules given from memory, without asking a server.
    pub memory_hits: u64,
    /// Modules given from the disk cache, without asking a server.
    pub disk_hits: u64,
    /// Downloads of a module's bytes that came to a good end.
    pub downloads: u64,
    /// Questions that a server answered with: it is what you know.
    pub unchanged: u64,
    /// Downloads and questions that failed.
    pub failures: u64,
    /// Modules given from before because their server gave nothing.
    pub stale: u64,
    /// Modules that were removed from the disk cache to make room.
    pub evictions: u64,
    /// Bytes in the disk cache, as they were when this process changed it last.
    pub disk_bytes: u64,
}

/// Counts while it happens.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) memory_hits: Counter,
    pub(crate) disk_hits: Counter,
    pub(crate) downloads: Counter,
    pub(crate) unchanged: Counter,
    pub(crate) failures: Counter,
    pub(crate) stale: Counter,
}

/// A number that goes up.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn one_more(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
