//! Location → module → invocation → outcome and what was read.

use std::sync::Arc;
use std::time::Instant;

use atc_access::{AccessPolicy, Read};
use atc_api::names;
use atc_artifact::Location;
use atc_flight::{Bounds, Invocation, Module, ModuleDigest, Outcome, StderrSink};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::host;
use crate::observer::Observer;
use crate::recall::Recalled;

/// A flight that is fetched, proven and compiled.
#[derive(Clone, Debug)]
pub struct LoadedFlight {
    /// The compiled module.
    pub module: Module,
    /// Where it came from, as a release's record names it.
    pub url: String,
    /// Hex SHA-1 of the module, as a release's record has it.
    pub sha1: String,
    /// Hex SHA-256 of the module.
    pub sha256: String,
}

/// One run of a flight.
pub struct Run<'a> {
    /// What runs.
    pub flight: &'a LoadedFlight,
    /// The release's name as the flight sees it: `argv[0]` and `YOKE_RELEASE`.
    pub release: &'a str,
    /// The target namespace.
    pub namespace: &'a str,
    /// The flight's input.
    pub stdin: Vec<u8>,
    /// Arguments after `argv[0]`.
    pub args: &'a [String],
    /// What it may look up.
    pub access: AccessPolicy,
    /// What it may use.
    pub bounds: Bounds,
    /// Whether whoever wrote it sets its bounds himself, so that it takes its turns among its like only.
    pub limited: bool,
    /// Where its stderr goes besides the tail that is kept.
    pub stderr: StderrSink,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// Output, tail of stderr, exit code.
    pub outcome: Outcome,
    /// What it looked up.
    pub reads: Vec<Read>,
}

impl Evaluated {
    /// The error that a non-zero exit code is, with the flight's own words.
    pub fn failure(&self) -> Option<EngineError> {
        let exit = self.outcome.exit;
        (exit != 0).then(|| EngineError::Exit {
            code: exit,
            stderr: self.outcome.stderr.trim().to_owned(),
        })
    }
}

impl Engine {
    /// Fetches, proves and compiles a flight; cheap when the same content was loaded before.
    ///
    /// This is the one way to a flight: [`EngineOptions::policy`](crate::EngineOptions::policy) is asked each time,
    /// wherever the bytes come from, before anything is fetched and again before anything is compiled.
    ///
    /// `fresh` asks the server again for a location that is not pinned by a checksum.
    pub async fn load(
        &self,
        location: &Location,
        checksum: Option<&str>,
        fresh: bool,
    ) -> Result<LoadedFlight, EngineError> {
        let policy = &self.options().policy;
        let refused = |source| EngineError::Policy {
            url: location.to_string(),
            source: Box::new(source),
        };
        policy.admit(location).map_err(refused)?;
        let pinned = checksum.is_some_and(|sum| !sum.trim().is_empty())
            || location.inferred_checksum().is_some();
        let fetched = if fresh && !pinned {
            self.fetcher().fetch_fresh(location, checksum).await
        } else {
            self.fetcher().fetch(location, checksum).await
        };
        let artifact = fetched.map_err(|source| EngineError::Fetch {
            url: location.to_string(),
            source: Box::new(source),
        })?;
        let proven = policy.prove(self.fetcher(), location, &artifact).await;
        proven.map_err(refused)?;
        let mut digest = ModuleDigest::default();
        // The fetcher has hashed these very bytes; only a digest that cannot be read is worth doing so again.
        let module = match hex::decode_to_slice(&artifact.sha256, &mut digest) {
            Ok(()) => {
                let runtime = self.runtime();
                runtime.module_with_digest(digest, &artifact.bytes).await
            }
            Err(_) => self.runtime().module(&artifact.bytes).await,
        };
        let module = module.map_err(|source| EngineError::Compile {
            url: location.to_string(),
            source: Box::new(source),
        })?;
        Ok(LoadedFlight {
            module,
            url: location.canonical(),
            sha1: artifact.sha1,
            sha256: artifact.sha256,
        })
    }

    /// Runs a flight once. A non-zero exit code is no error here, see [`Evaluated::failure`].
    ///
    /// At most [`EngineOptions::evaluations`](crate::EngineOptions::evaluations) runs are under way at once.
    pub async fn evaluate(
        &self,
        run: Run<'_>,
        observer: Arc<dyn Observer>,
    ) -> Result<Evaluated, EngineError> {
        self.evaluate_unless(run, observer, &Recalled::default())
            .await
    }

    /// The same, unless it is recalled.
    pub(crate) async fn evaluate_unless(
        &self,
        run: Run<'_>,
        observer: Arc<dyn Observer>,
        recalled: &Recalled,
    ) -> Result<Evaluated, EngineError> {
        let turn = self.evaluation_slot(run.limited);
        let _slot = recalled.unless_gone(turn).await?;
        let started = Instant::now();
        let mut args = Vec::with_capacity(run.args.len() + 1);
        args.push(run.release.to_owned());
        args.extend_from_slice(run.args);
        let env = [
            (names::ENV_RELEASE, run.release),
            (names::ENV_NAMESPACE, run.namespace),
            (names::ENV_NAMESPACE_SHORT, run.namespace),
            (names::ENV_VERSION, names::HOST_VERSION),
        ];
        let invocation = Invocation {
            stdin: run.stdin.into(),
            args,
            env: env
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
            bounds: run.bounds,
            stderr: run.stderr,
        };
        let (host, ledger) = host::guarded(self.reach().clone(), run.access, observer);
        let flight = run.flight.module.run(invocation, host);
        let outcome = recalled.during(flight).await;
        tracing::debug!(
            release = run.release,
            url = run.flight.url,
            elapsed_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
            "flight ran"
        );
        let outcome = outcome?.map_err(|source| EngineError::Flight {
            source: Box::new(source),
            reads: ledger.reads(),
        })?;
        Ok(Evaluated {
            outcome,
            reads: ledger.reads(),
        })
    }
}
