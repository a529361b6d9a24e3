//! One run: what the guest gets, and what came of it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::limits::{Bound, Bounds};

/// What a guest gets for one run. Nothing else reaches it: no files, no sockets, nothing of our own environment.
#[derive(Clone, Default)]
pub struct Invocation {
    /// What the guest reads from stdin, then end of file.
    pub stdin: Bytes,
    /// The arguments, `argv[0]` included.
    pub args: Vec<String>,
    /// The environment, whole.
    pub env: Vec<(String, String)>,
    /// What the run may take.
    pub bounds: Bounds,
    /// What becomes of stderr.
    pub stderr: StderrSink,
}

impl fmt::Debug for Invocation {
    /// Input and environment may hold secrets: only their sizes are shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation")
            .field("stdin_bytes", &self.stdin.len())
            .field("args", &self.args.len())
            .field(
                "env",
                &self.env.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            )
            .field("bounds", &self.bounds)
            .field("stderr", &self.stderr)
            .finish()
    }
}

/// Gets each piece of stderr as it is written.
pub type StderrListener = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// What becomes of stderr; its tail is kept in any case.
#[derive(Clone, Default)]
pub enum StderrSink {
    /// Kept only.
    #[default]
    Tail,
    /// Each write is also handed on at once, on the guest's thread: a sink that blocks stops the guest.
    Stream(StderrListener),
}

impl fmt::Debug for StderrSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tail => "Tail",
            Self::Stream(_) => "Stream",
        })
    }
}

/// How a run ended that ended by itself.
#[derive(Clone)]
pub struct Outcome {
    /// All that was printed, also when `exit` is not 0.
    pub stdout: Bytes,
    /// The last bytes of stderr, at most [`Bounds::stderr_tail`].
    pub stderr: String,
    /// 0 when `_start` returned or there is none, else what the guest gave to `proc_exit`.
    pub exit: i32,
    /// A limit of memory or tables at which the guest was refused more. Beside a bad exit, often the cause.
    pub refused: Option<Bound>,
}

impl fmt::Debug for Outcome {
    /// The output may hold secrets: only its size is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome")
            .field("exit", &self.exit)
            .field("stdout_bytes", &self.stdout.len())
            .field("stderr", &self.stderr)
            .field("refused", &self.refused)
            .finish()
    }
}
