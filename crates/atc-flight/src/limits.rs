//! Everything that a guest can make us hold or wait for has a bound here, with unit, default and reason.

use std::fmt;
use std::time::Duration;

use wasmtime::ResourceLimiter;

use crate::duration::GoDuration;

/// The bytes of a page of guest memory.
const PAGE: u64 = 64 * 1024;
/// All that a 32-bit guest can address: 65,536 pages.
pub(crate) const MEMORY_MAX: u64 = 65_536 * PAGE;

/// The bounds of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How long the run may take by the clock, instantiation and look-ups included, compiling not. `None` is without
    /// end. Default: 10 s, the existing tool's.
    pub time: Option<Duration>,
    /// Bytes of guest memory. 0, the default, and everything above 4 GiB stand for 4 GiB, which is all that a guest can
    /// address.
    pub memory: u64,
    /// Elements of all tables together. Default: 1,000,000, ten times the functions of the largest flights; 8 MiB of
    /// ours.
    pub table_elements: u64,
    /// Bytes of stdout; one more ends the run. Default: 64 MiB, forty times what the cluster's store takes in a request.
    pub stdout: usize,
    /// Bytes of stderr that are kept, the last ones; the rest is dropped without an error. Default: 64 KiB, what a
    /// message of a condition can never show whole.
    pub stderr_tail: usize,
    /// Calls of both host functions together. Default: 10,000, some minutes of look-ups.
    pub lookups: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            time: Some(Duration::from_secs(10)),
            memory: 0,
            table_elements: 1_000_000,
            stdout: 64 << 20,
            stderr_tail: 64 << 10,
            lookups: 10_000,
        }
    }
}

impl Bounds {
    /// The memory limit as it holds: 0 and what is too large replaced.
    pub(crate) fn memory_limit(&self) -> u64 {
        if self.memory == 0 {
            MEMORY_MAX
        } else {
            self.memory.min(MEMORY_MAX)
        }
    }
}

/// A bound that a guest came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bound {
    /// The run took longer than [`Bounds::time`].
    Time {
        /// The limit.
        limit: Duration,
    },
    /// The module declares more memory than [`Bounds::memory`], or the guest asked for more.
    Memory {
        /// What it wanted, in bytes.
        wanted: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The module declares more table elements than [`Bounds::table_elements`], or the guest asked for more.
    TableElements {
        /// What it wanted.
        wanted: u64,
        /// The limit.
        limit: u64,
    },
    /// The guest printed more than [`Bounds::stdout`].
    Stdout {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The guest called the host more often than [`Bounds::lookups`].
    Lookups {
        /// The limit.
        limit: u32,
    },
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time { limit } => {
                write!(
                    f,
                    "the flight timed out: it ran longer than its time limit of {}",
                    GoDuration(*limit)
                )
            }
            Self::Memory { wanted, limit } => write!(
                f,
                "out of memory: the flight wants {} of memory, over its memory limit of {}",
                Size(*wanted),
                Size(*limit)
            ),
            Self::TableElements { wanted, limit } => {
                write!(
                    f,
                    "table too large: the flight wants {wanted} table elements, over its limit of {limit}"
                )
            }
            Self::Stdout { limit } => {
                write!(
                    f,
                    "output too large: the flight printed more than {} to stdout",
                    Size(*limit as u64)
                )
            }
            Self::Lookups { limit } => {
                write!(
                    f,
                    "too many look-ups: the flight called the host more than {limit} times"
                )
            }
        }
    }
}

impl std::error::Error for Bound {}

/// A number of bytes as people say it; exact, so in the largest unit that divides it.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u32, &str); 3] = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        for (shift, unit) in UNITS {
            if self.0 != 0 && self.0.trailing_zeros() >= shift {
                return write!(f, "{} {unit}", self.0 >> shift);
            }
        }
        write!(f, "{} bytes", self.0)
    }
}

/// Counts what the guest of one store holds. Growth past a limit fails inside the guest, which may go on.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory: u64,
    table_elements: u64,
    tables_now: u64,
    /// The last growth that was refused.
    pub(crate) refused: Option<Bound>,
}

/// A module has one memory (more are a feature that is off), and its own instance is the only one of its store.
const MEMORIES: usize = 1;
const INSTANCES: usize = 1;
/// Compilers emit one table; a few more do no harm.
const TABLES: usize = 16;

impl Limiter {
    pub(crate) fn new(bounds: &Bounds) -> Self {
        Self {
            memory: bounds.memory_limit(),
            table_elements: bounds.table_elements,
            tables_now: 0,
            refused: None,
        }
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        _now: usize,
        wanted: usize,
        max: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let wanted = wanted as u64;
        if wanted > self.memory {
            self.refused = Some(Bound::Memory {
                wanted,
                limit: self.memory,
            });
            return Ok(false);
        }
        Ok(max.is_none_or(|max| wanted <= max as u64))
    }

    fn table_growing(
        &mut self,
        now: usize,
        wanted: usize,
        max: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if max.is_some_and(|max| wanted > max) {
            return Ok(false);
        }
        let total = self
            .tables_now
            .saturating_add(wanted.saturating_sub(now) as u64);
        if total > self.table_elements {
            self.refused = Some(Bound::TableElements {
                wanted: total,
                limit: self.table_elements,
            });
            return Ok(false);
        }
        self.tables_now = total;
        Ok(true)
    }

    fn instances(&self) -> usize {
        INSTANCES
    }

    fn tables(&self) -> usize {
        TABLES
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}
