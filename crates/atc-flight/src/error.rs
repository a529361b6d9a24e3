//! What can go wrong with a module or a run, as values for people and for branching.

use std::fmt;

use bytes::Bytes;

use crate::abi::AbiFault;
use crate::limits::Bound;

/// Why a module could not be taken or a run did not end by itself.
///
/// An exit code that is not 0 is no error but an [`Outcome`](crate::Outcome). Messages are one line, without what the
/// guest wrote to stderr: that is in [`FlightError::stderr`].
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlightError {
    /// The bytes are no module that could run here: not WebAssembly, broken, or with features that the ABI does not
    /// have.
    #[error("not a usable WebAssembly module: {reason}")]
    Compile {
        /// What is wrong with it.
        reason: String,
    },
    /// The module wants functions that are not there, or with other types.
    #[error("the module cannot be linked: {reason}")]
    Link {
        /// Every import that is missing, or the one whose type differs.
        reason: String,
    },
    /// The guest came to one of its limits.
    #[error("{bound}")]
    Bounds {
        /// Which one, with its value.
        bound: Bound,
        /// The tail of what the guest wrote to stderr.
        stderr: String,
    },
    /// The guest trapped.
    #[error("{0}")]
    Trap(Box<TrapReport>),
    /// The guest broke the rules of the ABI.
    #[error("the flight broke the guest ABI: {fault}")]
    Abi {
        /// Which rule.
        fault: AbiFault,
        /// The tail of what the guest wrote to stderr.
        stderr: String,
    },
    /// A fault on our side.
    #[error("running the flight failed: {reason}")]
    Internal {
        /// What failed.
        reason: String,
    },
}

/// A small kind to branch on, apart from the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlightErrorKind {
    /// [`FlightError::Compile`] or [`FlightError::Link`]: the module itself, it never will run.
    Module,
    /// The time limit.
    Time,
    /// Another limit.
    Bounds,
    /// A trap or a breach of the ABI.
    Guest,
    /// Ours.
    Internal,
}

impl FlightError {
    /// What to branch on.
    pub fn kind(&self) -> FlightErrorKind {
        match self {
            Self::Compile { .. } | Self::Link { .. } => FlightErrorKind::Module,
            Self::Bounds {
                bound: Bound::Time { .. },
                ..
            } => FlightErrorKind::Time,
            Self::Bounds { .. } => FlightErrorKind::Bounds,
            Self::Trap(_) | Self::Abi { .. } => FlightErrorKind::Guest,
            Self::Internal { .. } => FlightErrorKind::Internal,
        }
    }

    /// The tail of what the guest wrote to stderr before it ended; empty where it never ran.
    pub fn stderr(&self) -> &str {
        match self {
            Self::Bounds { stderr, .. } | Self::Abi { stderr, .. } => stderr,
            Self::Trap(report) => &report.stderr,
            Self::Compile { .. } | Self::Link { .. } | Self::Internal { .. } => "",
        }
    }

    /// What a trapped guest had printed to stdout by then; a controller may look for a status in it.
    pub fn stdout(&self) -> Option<&Bytes> {
        match self {
            Self::Trap(report) => Some(&report.stdout),
            _ => None,
        }
    }

    pub(crate) fn compile(reason: impl fmt::Display) -> Self {
        Self::Compile {
            reason: one_line(reason),
        }
    }

    pub(crate) fn link(reason: impl fmt::Display) -> Self {
        Self::Link {
            reason: one_line(reason),
        }
    }

    pub(crate) fn internal(reason: impl fmt::Display) -> Self {
        Self::Internal {
            reason: one_line(reason),
        }
    }
}

/// A trap, and where the guest was.
#[derive(Clone)]
pub struct TrapReport {
    /// `wasm trap: call stack exhausted` for example.
    pub reason: String,
    /// The guest's functions on the stack, innermost first, demangled; at most 20. A stripped module has numbers only.
    pub frames: Vec<String>,
    /// A limit of memory or tables at which the guest had been refused more: often the true cause.
    pub refused: Option<Bound>,
    /// The tail of what the guest wrote to stderr.
    pub stderr: String,
    /// What it had printed.
    pub stdout: Bytes,
}

impl fmt::Display for TrapReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// More names than these help nobody in one line.
        const NAMED: usize = 5;
        write!(f, "the flight trapped: {}", self.reason)?;
        if let Some((first, rest)) = self.frames.split_first() {
            write!(f, " (in {first}")?;
            for frame in rest.iter().take(NAMED - 1) {
                write!(f, " < {frame}")?;
            }
            if self.frames.len() > NAMED {
                f.write_str(" < …")?;
            }
            f.write_str(")")?;
        }
        if let Some(refused) = &self.refused {
            write!(f, "; before that, {refused}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for TrapReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrapReport")
            .field("reason", &self.reason)
            .field("frames", &self.frames)
            .field("refused", &self.refused)
            .field("stderr", &self.stderr)
            .field("stdout_bytes", &self.stdout.len())
            .finish()
    }
}

/// A text in one line: other crates' messages have several at times.
pub(crate) fn one_line(text: impl fmt::Display) -> String {
    let text = text.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut line = lines.next().unwrap_or_default().to_owned();
    for more in lines {
        line.push_str(if line.ends_with(':') { " " } else { "; " });
        line.push_str(more);
    }
    line
}
