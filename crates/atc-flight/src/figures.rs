//! What a runtime has done so far, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a [`Runtime`](crate::Runtime) has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuntimeFigures {
    /// Modules that were in memory when they were asked for.
    pub memory_hits: u64,
    /// Modules whose compiled form was on disk.
    pub disk_hits: u64,
    /// Compiles that came to a good end.
    pub compiles: u64,
    /// Modules that do not compile.
    pub failures: u64,
    /// Compiled modules that were removed from disk to make room.
    pub evictions: u64,
    /// Bytes of compiled modules on disk, as they were when this process changed them last.
    pub disk_bytes: u64,
}

/// Counts while it happens.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) memory_hits: AtomicU64,
    pub(crate) disk_hits: AtomicU64,
    pub(crate) compiles: AtomicU64,
    pub(crate) failures: AtomicU64,
}

/// One more.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
