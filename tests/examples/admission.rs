//! Measures what admission and conversion cost on a control plane of its own; see `docs/benchmarks.md`.
//!
//! `FLIGHT` is the module of a flight of four objects that reads `spec.image`, `spec.host` and `spec.note`, `GUESTS` the
//! folder of those of `tests/guests`, `ATC` the binary.

use std::{
    env,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use atc_tests::{AirwayBuilder, Api, Atc, Cluster, eventually, is_ready};
use controlplane::Options;
use serde_json::{Value, json};

/// Calls of each sort.
const CALLS: usize = 100;
/// Between two calls: what they set going ends before the next.
const PAUSE: Duration = Duration::from_millis(200);
/// Objects that are converted.
const OBJECTS: usize = 100;
/// How often it is converted.
const REVIEWS: usize = 100;
const WEBHOOK: &str = "apiserver_admission_webhook_admission_duration_seconds";

#[tokio::main]
async fn main() -> Result<()> {
    let (flight, guests) = (env::var("FLIGHT")?, env::var("GUESTS")?);
    let options = Options {
        full: true,
        ..Options::default()
    };
    let cluster = Cluster::own(options).await;
    let atc = Atc::start(cluster.plane(), &cluster.api, "atc", &[]).await?;
    let namespace = cluster.namespace().await;
    let measured = AirwayBuilder::new("Measured", &flight);
    atc.airway(&measured).await?;
    admission(&cluster.api, &measured, namespace.name()).await?;
    let [small, converter] = ["puppet", "converter"].map(|name| format!("{guests}/{name}.wasm"));
    let mut airway = AirwayBuilder::new("Converted", &small)
        .set("skipAdmissionWebhook", true)
        .set(
            "wasmUrls",
            json!({ "flight": small, "converter": converter }),
        )
        .build();
    let versions = &mut airway["spec"]["template"]["versions"];
    let mut second = versions[0].clone();
    versions[0]["storage"] = false.into();
    second["name"] = "v2".into();
    versions.as_array_mut().context("no versions")?.push(second);
    conversion(&atc, &cluster.api, &airway, namespace.name()).await
}

/// Creates and changes instances, one after the other.
async fn admission(api: &Api, airway: &AirwayBuilder, namespace: &str) -> Result<()> {
    let path = airway.path(namespace);
    let spec = |at: usize| json!({ "image": "none", "host": format!("h{at}.dev"), "note": "0" });
    let body = |at: usize| airway.instance(&format!("i{at}"), &spec(at));
    for at in CALLS..CALLS + 5 {
        api.post(&path, &body(at)).await?;
        tokio::time::sleep(PAUSE).await;
    }
    let before = Histogram::read(api, WEBHOOK, &airway.name()).await?;
    let mut took = Vec::new();
    for at in 0..CALLS {
        took.push(timed(api.post(&path, &body(at))).await?);
        tokio::time::sleep(PAUSE).await;
    }
    let created = Histogram::read(api, WEBHOOK, &airway.name()).await?;
    tell("create an instance", took);
    println!("  of that the webhook: {}", created.since(&before));
    let mut took = Vec::new();
    for at in 0..CALLS {
        let edit = json!({ "spec": { "note": (at + 1).to_string() } });
        took.push(timed(api.merge(&format!("{path}/i{at}"), &edit)).await?);
        tokio::time::sleep(PAUSE).await;
    }
    let changed = Histogram::read(api, WEBHOOK, &airway.name()).await?;
    tell("change an instance", took);
    println!("  of that the webhook: {}", changed.since(&created));
    // The same call where nobody is asked.
    let mut took = Vec::new();
    for at in 0..CALLS {
        let map = json!({ "metadata": { "name": format!("m{at}") }, "data": { "k": "v" } });
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        took.push(timed(api.post(&path, &map)).await?);
    }
    tell("create a ConfigMap", took);
    Ok(())
}

/// Has a list of objects converted to another version than they are stored in.
async fn conversion(atc: &Atc<'_>, api: &Api, airway: &Value, namespace: &str) -> Result<()> {
    let airways = "/apis/yoke.cd/v1alpha1/airways";
    api.post(airways, airway).await?;
    let name = airway["metadata"]["name"].as_str().context("no name")?;
    eventually(Duration::from_secs(30), "the Airway is ready", || async {
        let found = api.get(&format!("{airways}/{name}")).await?;
        Ok(found.filter(is_ready))
    })
    .await;
    let group = name.split_once('.').context("no group")?;
    let path = |version: &str| {
        format!(
            "/apis/{}/{version}/namespaces/{namespace}/{}",
            group.1, group.0
        )
    };
    for at in 0..OBJECTS {
        let object = json!({
            "apiVersion": format!("{}/v1", group.1), "kind": "Converted", "metadata": { "name": format!("c{at}") },
            "spec": { "image": "none", "host": format!("c{at}.dev"), "note": "0" },
        });
        api.post(&path("v1"), &object).await?;
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    // The API server keeps a list of each version once it has been converted, so the review itself is asked for.
    let stored = api.list(&path("v2")).await?;
    let objects: Vec<Value> = stored
        .into_iter()
        .map(|mut object| {
            object["apiVersion"] = format!("{}/v2", group.1).into();
            object["kind"] = "Converted".into();
            object
        })
        .collect();
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {
            "uid": "u", "desiredAPIVersion": format!("{}/v1", group.1), "objects": objects,
        },
    });
    let mut took = Vec::new();
    for _ in 0..REVIEWS {
        let begin = Instant::now();
        let (status, answer) = atc.post(&format!("/crdconvert/{name}"), &review).await?;
        took.push(begin.elapsed());
        let answer: Value = serde_json::from_str(&answer)?;
        let converted = answer["response"]["convertedObjects"].as_array();
        anyhow::ensure!(status == 200 && converted.is_some_and(|all| all.len() == OBJECTS));
    }
    tell(&format!("convert {OBJECTS} objects in one review"), took);
    Ok(())
}

async fn timed<T>(call: impl Future<Output = Result<T>>) -> Result<Duration> {
    let begin = Instant::now();
    call.await?;
    Ok(begin.elapsed())
}

fn tell(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |share: usize| {
        took.get(took.len() * share / 100)
            .unwrap_or(&Duration::ZERO)
    };
    println!(
        "{what}: p50 {:.1?}, p99 {:.1?}, {} calls",
        at(50),
        at(99),
        took.len()
    );
}

/// What the API server counts of a histogram: by upper bound in ms, all, and the sum of seconds.
#[derive(Debug, Default)]
struct Histogram {
    within: Vec<(String, f64)>,
    count: f64,
    sum: f64,
}

impl Histogram {
    /// All series whose labels hold this name, added up.
    async fn read(api: &Api, metric: &str, name: &str) -> Result<Self> {
        let text = api.text("/metrics").await?;
        let mut all = Self::default();
        for line in text.lines() {
            let Some((series, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let (Some(rest), true) = (series.strip_prefix(metric), series.contains(name)) else {
                continue;
            };
            let value: f64 = value.parse()?;
            if rest.starts_with("_sum") {
                all.sum += value;
            } else if rest.starts_with("_count") {
                all.count += value;
            } else if let Some((_, bound)) = rest.split_once("le=\"") {
                let bound = bound.split('"').next().unwrap_or_default();
                match all.within.iter_mut().find(|(known, _)| known == bound) {
                    Some((_, sum)) => *sum += value,
                    None => all.within.push((bound.to_owned(), value)),
                }
            }
        }
        Ok(all)
    }

    /// What came since another reading, in words.
    fn since(&self, before: &Self) -> String {
        let count = self.count - before.count;
        if count == 0.0 {
            return "not asked".to_owned();
        }
        let mean = 1_000.0 * (self.sum - before.sum) / count;
        let earlier = |bound: &str| {
            let found = before.within.iter().find(|(known, _)| known == bound);
            found.map_or(0.0, |(_, value)| *value)
        };
        let mut words = format!("{count} calls, {mean:.1} ms each");
        for (bound, value) in &self.within {
            words = format!("{words}, {} within {bound} s", value - earlier(bound));
        }
        words
    }
}
