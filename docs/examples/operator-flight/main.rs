//! An operator around a flight: `App` is a kind of its own, the flight of `docs/examples/app` makes its resources, and
//! `atc_engine::Operator` does the rest. See the README beside this file.

use atc_engine::api::{AirwayMode, ResourceRef};
use atc_engine::artifact::Location;
use atc_engine::instance::{InstanceReport, InstanceSettings};
use atc_engine::release::{Release, cluster::Cluster, cluster::ClusterOptions};
use atc_engine::{Engine, EngineOptions, Operator};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Config, CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.dev", version = "v1", kind = "App", namespaced)]
#[kube(status = "AppStatus")]
struct AppSpec {
    image: String,
    #[serde(default = "one")]
    replicas: u32,
}

fn one() -> u32 {
    1
}

/// What the flight says, and the condition `Ready`, which the engine keeps.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct AppStatus {
    msg: Option<String>,
    conditions: Option<Vec<Condition>>,
}

/// How apps are served: whatever the flight made or looked up runs it again when it changes, and besides its own objects
/// it may look up Secrets.
fn settings() -> InstanceSettings {
    InstanceSettings {
        mode: AirwayMode::Dynamic,
        cluster_access: true,
        matchers: ["Secret"].iter().collect(),
        ..InstanceSettings::of::<App>()
    }
}

/// How a run of an app went.
fn told(app: &ResourceRef, report: &InstanceReport) {
    match &report.failure {
        Some(failure) => eprintln!("{app}: error: {failure}"),
        None => println!("{app}: {}", report.ready.message),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let module = std::env::args()
        .nth(1)
        .ok_or("usage: operator-flight MODULE")?;
    let cluster = Cluster::connect(Config::infer().await?, ClusterOptions::default())?;
    let engine = Engine::new(cluster, EngineOptions::default())?;
    let flight = engine
        .load(&module.parse::<Location>()?, None, false)
        .await?;

    // The kind itself is a release, too. It is served when this returns.
    let own = Release::new(&engine, "default", "app-operator");
    own.takeoff(&[App::crd()]).await?;

    let mut end = signal(SignalKind::terminate())?;
    let operator = Operator::new(&engine, flight, settings());
    operator.run(async { _ = end.recv().await }, told).await;
    Ok(())
}
