//! An operator around a flight: `App` is a kind of its own, the flight of `docs/examples/app` makes its resources, and
//! `atc_engine::Operator` does the rest. See the README beside this file.

use std::process::ExitCode;

use atc_engine::api::{AirwayMode, ResourceRef};
use atc_engine::artifact::Location;
use atc_engine::error::chain;
use atc_engine::instance::{InstanceReport, InstanceSettings};
use atc_engine::release::{Release, cluster::Cluster, cluster::ClusterOptions};
use atc_engine::{Engine, EngineOptions, Operator};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Config, CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::LevelFilter;

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

/// How a run of an app went: what failed, or what its status says now if that was written.
fn told(app: &ResourceRef, report: &InstanceReport) {
    match (&report.failure, &report.stored) {
        (Some(failure), _) => eprintln!("{app}: error: {failure}"),
        (None, Some(stored)) => {
            let says = stored["status"]["msg"].as_str();
            println!("{app}: {}", says.unwrap_or(&report.ready.message));
        }
        (None, None) => {}
    }
}

fn main() -> ExitCode {
    // A watch that the API server refuses is tried again for ever, and told here only.
    let warnings = tracing_subscriber::fmt().with_max_level(LevelFilter::WARN);
    warnings.with_writer(std::io::stderr).init();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run() -> Result<(), Box<dyn std::error::Error>> {
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

    let (mut term, mut int) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let end = async {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    };
    println!("serving Apps; Ctrl-C ends it");
    let operator = Operator::new(&engine, flight, settings());
    operator.run(end, told).await;
    Ok(())
}
