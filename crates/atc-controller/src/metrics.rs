//! What `/metrics` tells: evaluations by Airway, the queue, the watches, the caches of modules. `docs/metrics.md` has all
//! names.
//!
//! Names of instances, Secrets and URLs are in no label: there may be any number of them, and some hold what is secret.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atc_engine::Engine;
use atc_engine::watch::{WatchHealth, WatchHub};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::owner::Owner;
use crate::queue::SharedQueue;

/// The content type of the answer.
pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Airways with numbers of their own: 1,000, of some 20 lines each. The evaluations of all others are counted together.
const MAX_AIRWAYS: usize = 1000;
/// The name of these others, which no Airway can have.
const OTHERS: &str = "_others";

/// Kinds whose watches have numbers, the first by group and name: 1,000, more than a cluster serves. Flights can look up kinds
/// that there are not.
const MAX_KINDS: usize = 1000;

/// Bounds of the histogram, in seconds: a warm flight takes some milliseconds, a takeoff with stages minutes.
const BOUNDS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0,
];

/// All that is counted, and how it is told.
pub(crate) struct Metrics {
    registry: Registry,
    evaluations: Family<Evaluated, Counter>,
    durations: Family<ByAirway, Histogram, fn() -> Histogram>,
    airways: Mutex<HashSet<Arc<str>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Evaluated {
    airway: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAirway {
    airway: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKind {
    kind: String,
}

impl Metrics {
    /// Of this engine, this queue and these watches.
    pub(crate) fn new(
        engine: Engine,
        queue: Arc<SharedQueue<Owner>>,
        hub: WatchHub<Owner>,
    ) -> Self {
        let mut metrics = Self::bare();
        let parts = Parts { engine, queue };
        metrics.registry.register_collector(Box::new(parts));
        let watches = Watches(move || hub.health());
        metrics.registry.register_collector(Box::new(watches));
        metrics
    }

    fn bare() -> Self {
        let mut registry = Registry::with_prefix("atc");
        let evaluations = Family::default();
        let durations: Family<_, _, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(BOUNDS));
        registry.register(
            "evaluations",
            "Evaluations of instances, by Airway and result: ok or failed",
            evaluations.clone(),
        );
        registry.register_with_unit(
            "evaluation_duration",
            "Time that evaluations of instances took",
            Unit::Seconds,
            durations.clone(),
        );
        Self {
            registry,
            evaluations,
            durations,
            airways: Mutex::default(),
        }
    }

    /// An instance was evaluated.
    pub(crate) fn evaluated(&self, airway: &Arc<str>, failed: bool, took: Duration) {
        let airway = self.label(airway);
        let by_airway = ByAirway {
            airway: airway.clone(),
        };
        self.durations
            .get_or_create(&by_airway)
            .observe(took.as_secs_f64());
        let result = if failed { "failed" } else { "ok" };
        self.evaluations
            .get_or_create(&Evaluated { airway, result })
            .inc();
    }

    /// The Airway is gone, and its numbers with it.
    pub(crate) fn forget(&self, airway: &str) {
        let mut airways = self.airways.lock().unwrap_or_else(PoisonError::into_inner);
        airways.remove(airway);
        let airway = airway.to_owned();
        for result in ["ok", "failed"] {
            let airway = airway.clone();
            self.evaluations.remove(&Evaluated { airway, result });
        }
        self.durations.remove(&ByAirway { airway });
    }

    fn label(&self, airway: &Arc<str>) -> String {
        let mut airways = self.airways.lock().unwrap_or_else(PoisonError::into_inner);
        if !airways.contains(airway) {
            if airways.len() >= MAX_AIRWAYS {
                return OTHERS.to_owned();
            }
            airways.insert(airway.clone());
        }
        airway.as_ref().to_owned()
    }

    /// All of it in the text form of OpenMetrics.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// What other parts count, read when somebody asks.
struct Parts {
    engine: Engine,
    queue: Arc<SharedQueue<Owner>>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

impl Collector for Parts {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut tell = Tell(encoder);
        let fetched = self.engine.fetcher().figures();
        tell.counter(
            "module_memory_hits",
            "Modules given from memory, their server not asked",
            fetched.memory_hits,
        )?;
        tell.counter(
            "module_disk_hits",
            "Modules given from the disk cache, their server not asked",
            fetched.disk_hits,
        )?;
        tell.counter(
            "module_downloads",
            "Downloads of a module's bytes",
            fetched.downloads,
        )?;
        tell.counter(
            "module_unchanged",
            "Questions to a server that had nothing newer",
            fetched.unchanged,
        )?;
        tell.counter(
            "module_download_failures",
            "Downloads of modules and questions to servers that failed",
            fetched.failures,
        )?;
        tell.counter(
            "module_stale",
            "Modules given from before because their server gave nothing",
            fetched.stale,
        )?;
        tell.counter(
            "module_evictions",
            "Modules removed from the disk cache to make room",
            fetched.evictions,
        )?;
        tell.bytes(
            "module_cache",
            "Modules in the disk cache",
            fetched.disk_bytes,
        )?;
        let refusals = self.engine.options().policy.refusals();
        tell.counter(
            "module_refusals",
            "Modules refused for their location or for want of a signature",
            refusals,
        )?;
        let compiled = self.engine.runtime().figures();
        tell.counter(
            "compiled_memory_hits",
            "Modules whose compiled code was in memory",
            compiled.memory_hits,
        )?;
        tell.counter(
            "compiled_disk_hits",
            "Modules whose compiled code was on disk",
            compiled.disk_hits,
        )?;
        tell.counter("compiles", "Modules compiled", compiled.compiles)?;
        tell.counter(
            "compile_failures",
            "Modules that do not compile",
            compiled.failures,
        )?;
        tell.counter(
            "compiled_evictions",
            "Compiled modules removed from disk to make room",
            compiled.evictions,
        )?;
        tell.bytes(
            "compiled_cache",
            "Compiled modules on disk",
            compiled.disk_bytes,
        )?;
        tell.gauge(
            "queue_keys",
            "Airways and instances that are known to the queue, waiting or not",
            self.queue.len(),
            None,
        )
    }
}

/// How the watches fare, looked at when somebody asks.
struct Watches<F>(F);

impl<F> fmt::Debug for Watches<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watches").finish_non_exhaustive()
    }
}

impl<F> Collector for Watches<F>
where
    F: Fn() -> Vec<WatchHealth> + Send + Sync + 'static,
{
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let unit = Unit::Seconds;
        let mut silence = encoder.encode_descriptor(
            "watch_silence",
            "Time since the API server was last heard of by the watch of a kind",
            Some(&unit),
            MetricType::Gauge,
        )?;
        for watch in (self.0)().into_iter().take(MAX_KINDS) {
            let kind = watch.resource.group_kind.to_string();
            let gauge = ConstGauge::new(watch.silence.as_secs_f64());
            gauge.encode(silence.encode_family(&ByKind { kind })?)?;
        }
        Ok(())
    }
}

/// Writes numbers one after the other.
struct Tell<'a>(DescriptorEncoder<'a>);

impl Tell<'_> {
    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.tell(name, help, None, &ConstCounter::new(value))
    }

    fn bytes(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.gauge(name, help, value, Some(&Unit::Bytes))
    }

    fn gauge(
        &mut self,
        name: &str,
        help: &str,
        value: impl TryInto<i64>,
        unit: Option<&Unit>,
    ) -> fmt::Result {
        let value = value.try_into().unwrap_or(i64::MAX);
        self.tell(name, help, unit, &ConstGauge::new(value))
    }

    fn tell(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        metric: &impl EncodeMetric,
    ) -> fmt::Result {
        let encoder = self
            .0
            .encode_descriptor(name, help, unit, metric.metric_type())?;
        metric.encode(encoder)
    }
}

#[cfg(test)]
mod tests;
