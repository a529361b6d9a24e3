//! What a guest writes: stdout whole up to a bound, of stderr the tail, streamed on where somebody listens.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use crate::invocation::StderrSink;
use crate::limits::{Bound, Bounds};

/// The most that a stream takes in one write; there is no waiting, so the number hardly matters.
const PERMIT: usize = 1 << 20;

/// Both streams of one run, shared between the guest and whoever waits for it.
#[derive(Clone)]
pub(crate) struct Streams {
    stdout: Arc<Mutex<Stdout>>,
    stderr: Arc<Mutex<Tail>>,
    sink: StderrSink,
}

struct Stdout {
    bytes: Vec<u8>,
    limit: usize,
    overflowed: bool,
}

impl Streams {
    pub(crate) fn new(bounds: &Bounds, sink: StderrSink) -> Self {
        Self {
            stdout: Arc::new(Mutex::new(Stdout {
                bytes: Vec::new(),
                limit: bounds.stdout,
                overflowed: false,
            })),
            stderr: Arc::new(Mutex::new(Tail::new(bounds.stderr_tail))),
            sink,
        }
    }

    /// What was printed; afterwards it is gone from here.
    pub(crate) fn take_stdout(&self) -> Bytes {
        std::mem::take(&mut lock(&self.stdout).bytes).into()
    }

    /// The bound of stdout, if the guest went over it.
    pub(crate) fn overflow(&self) -> Option<Bound> {
        let stdout = lock(&self.stdout);
        stdout.overflowed.then_some(Bound::Stdout {
            limit: stdout.limit,
        })
    }

    /// The tail of stderr as text.
    pub(crate) fn stderr(&self) -> String {
        lock(&self.stderr).text()
    }

    pub(crate) fn guest_stdout(&self) -> GuestStream {
        GuestStream {
            streams: self.clone(),
            is_stderr: false,
        }
    }

    pub(crate) fn guest_stderr(&self) -> GuestStream {
        GuestStream {
            streams: self.clone(),
            is_stderr: true,
        }
    }
}

/// The end of one of the streams that the guest has.
#[derive(Clone)]
pub(crate) struct GuestStream {
    streams: Streams,
    is_stderr: bool,
}

impl GuestStream {
    fn take(&self, bytes: &[u8]) -> Result<(), Bound> {
        if self.is_stderr {
            lock(&self.streams.stderr).push(bytes);
            if let StderrSink::Stream(sink) = &self.streams.sink {
                sink(bytes);
            }
            return Ok(());
        }
        let mut stdout = lock(&self.streams.stdout);
        if bytes.len() > stdout.limit.saturating_sub(stdout.bytes.len()) {
            stdout.overflowed = true;
            return Err(Bound::Stdout {
                limit: stdout.limit,
            });
        }
        stdout.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

impl IsTerminal for GuestStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for GuestStream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for GuestStream {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for GuestStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes)
            .map_err(|bound| StreamError::Trap(bound.into()))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

impl AsyncWrite for GuestStream {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(
            self.take(bytes)
                .map(|()| bytes.len())
                .map_err(io::Error::other),
        )
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The last bytes of a stream.
struct Tail {
    bytes: Vec<u8>,
    limit: usize,
    cut: bool,
}

impl Tail {
    fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
            cut: false,
        }
    }

    /// Holds at most twice the limit, so that moving the tail to the front is rare.
    fn push(&mut self, bytes: &[u8]) {
        let skipped = bytes.len().saturating_sub(self.limit);
        let bytes = bytes.get(skipped..).unwrap_or_default();
        if self.bytes.len() + bytes.len() > self.limit.saturating_mul(2) {
            let keep = self.bytes.len().min(self.limit.saturating_sub(bytes.len()));
            self.bytes.drain(..self.bytes.len() - keep);
            self.cut = true;
        }
        self.cut |= skipped > 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The tail as text, without half a character at its beginning.
    fn text(&self) -> String {
        let start = self.bytes.len().saturating_sub(self.limit);
        let mut tail = self.bytes.get(start..).unwrap_or_default();
        if self.cut || start > 0 {
            /// A character has at most three bytes after its first.
            const CONTINUATIONS: usize = 3;
            let half = tail
                .iter()
                .take(CONTINUATIONS)
                .take_while(|byte| **byte & 0xc0 == 0x80)
                .count();
            tail = tail.get(half..).unwrap_or_default();
        }
        String::from_utf8_lossy(tail).into_owned()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_last_bytes() {
        let mut tail = Tail::new(4);
        for (push, expect) in [
            ("a", "a"),
            ("bc", "abc"),
            ("def", "cdef"),
            ("", "cdef"),
            ("0123456789", "6789"),
            ("x", "789x"),
        ] {
            tail.push(push.as_bytes());
            assert_eq!(tail.text(), expect);
            assert!(tail.bytes.len() <= 8);
        }
    }

    #[test]
    fn no_half_characters_at_the_cut() {
        let mut tail = Tail::new(4);
        tail.push("aé→".as_bytes());
        assert_eq!(tail.text(), "→");
    }

    #[test]
    fn a_limit_of_nothing_keeps_nothing() {
        let mut tail = Tail::new(0);
        tail.push(b"abc");
        assert_eq!(tail.text(), "");
    }
}
