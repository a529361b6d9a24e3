//! The output to work with: what a flight prints, or stdin itself.

use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::bail;
use atc_engine::access::{AccessPolicy, Matchers, Owner};
use atc_engine::artifact::Location;
use atc_engine::flight::{Bounds, StderrSink};
use atc_engine::{Engine, NoObserver, Run};

use crate::cli::{Takeoff, given};
use crate::input;
use crate::render::Hinted;

/// Time limit of a flight where the flag says 0: as its default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// What there is to work with.
pub(super) struct Printed {
    /// Resources, not parsed yet; never empty.
    pub(super) bytes: Vec<u8>,
    /// Where the flight came from, as the record names it; empty for stdin.
    pub(super) url: String,
    /// Hex SHA-1 of the flight's module; empty for stdin.
    pub(super) sha1: String,
}

/// Runs the flight, or reads stdin where there is none.
pub(super) async fn run(
    engine: &Engine,
    args: &Takeoff,
    namespace: &str,
) -> anyhow::Result<Printed> {
    let Some(flight) = &args.flight else {
        let Some(bytes) = input::read(input::MAX_RESOURCES).await? else {
            return Err(Hinted::new(
                "there is no flight, and stdin is a terminal",
                "name a flight after the release, or pipe the resources in",
            )
            .into());
        };
        if is_blank(&bytes) {
            bail!("stdin is empty: it should hold the resources, since there is no flight");
        }
        return Ok(Printed {
            bytes,
            url: String::new(),
            sha1: String::new(),
        });
    };

    let location = flight.parse::<Location>()?.with_insecure(args.insecure);
    let checksum = given(args.checksum.as_ref());
    let started = Instant::now();
    // A kept module that no checksum pins may be an old one: a takeoff is of what is there now.
    let fresh = checksum.is_none() && location.inferred_checksum().is_none();
    let loaded = engine.load(&location, checksum, fresh).await?;
    tracing::debug!(elapsed_ms = started.elapsed().as_millis(), "flight loaded");

    let stdin = input::read(input::MAX_INPUT).await?.unwrap_or_default();
    let stderr = Stderr::default();
    let run = Run {
        flight: &loaded,
        release: &args.release,
        namespace,
        stdin,
        args: &args.args,
        access: AccessPolicy {
            enabled: args.cluster_access,
            owner: Owner::new(namespace, &args.release),
            matchers: Matchers::from_flags(&args.resource_access),
            confined: false,
        },
        bounds: bounds(args),
        limited: false,
        stderr: stderr.sink(),
    };
    let started = Instant::now();
    let evaluated = engine.evaluate(run, Arc::new(NoObserver)).await;
    tracing::debug!(elapsed_ms = started.elapsed().as_millis(), "flight ran");
    let said = stderr.end();
    let outcome = evaluated?.outcome;
    if outcome.exit != 0 {
        let code = outcome.exit;
        if let Some(refused) = &outcome.refused {
            bail!("the flight failed: exit_code({code}), after {refused}");
        }
        if !said {
            bail!("the flight failed: exit_code({code}), and it wrote nothing to stderr");
        }
        bail!("the flight failed: exit_code({code})");
    }
    let bytes = Vec::from(outcome.stdout);
    if is_blank(&bytes) {
        bail!("the output of the flight is empty: a flight that wants nothing prints []");
    }
    Ok(Printed {
        bytes,
        url: loaded.url,
        sha1: loaded.sha1,
    })
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.trim_ascii().is_empty()
}

fn bounds(args: &Takeoff) -> Bounds {
    Bounds {
        time: if args.timeout.is_negative() {
            None
        } else {
            Some(args.timeout.positive().unwrap_or(DEFAULT_TIMEOUT))
        },
        memory: args.max_memory_mib.saturating_mul(1 << 20),
        ..Bounds::default()
    }
}

/// The flight's stderr on its way to the user.
#[derive(Clone, Default)]
struct Stderr(Arc<Mutex<Option<u8>>>);

impl Stderr {
    fn sink(&self) -> StderrSink {
        let last = self.0.clone();
        StderrSink::Stream(Arc::new(move |bytes| {
            if let Some(byte) = bytes.last() {
                // Nobody to tell where stderr is closed.
                let _ = std::io::stderr().lock().write_all(bytes);
                *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(*byte);
            }
        }))
    }

    /// Draws a line under what the flight wrote, so that it is told from our own words. Whether it wrote anything.
    fn end(&self) -> bool {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let line: &[u8] = match last {
            None => return false,
            Some(b'\n') => b"---\n",
            Some(_) => b"\n---\n",
        };
        let _ = std::io::stderr().lock().write_all(line);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_the_flags() {
        let parsed = |words: &str| {
            let words = format!("yoke takeoff {words} r");
            let cli = crate::cli::parse(words.split_whitespace().map(Into::into)).expect("parses");
            let crate::cli::Command::Takeoff(args) = cli.command else {
                panic!("takeoff")
            };
            bounds(&args)
        };
        assert_eq!(parsed("").time, Some(Duration::from_secs(10)));
        assert_eq!(parsed("-timeout 0").time, Some(Duration::from_secs(10)));
        assert_eq!(
            parsed("-timeout 300ms").time,
            Some(Duration::from_millis(300))
        );
        assert_eq!(parsed("-timeout -1ns").time, None);
        assert_eq!(parsed("").memory, 128 << 20);
        assert_eq!(parsed("-max-memory-mib 0").memory, 0);
        assert_eq!(
            parsed(&format!("-max-memory-mib {}", u64::MAX)).memory,
            u64::MAX
        );
    }
}
