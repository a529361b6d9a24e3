//! An operator without a flight: `Website` is a kind of its own, its resources are made in Rust, and
//! `atc_engine::release` does the rest. See the README beside this file.

use std::{process::ExitCode, sync::Arc, time::Duration};

use atc_engine::release::{Release, cluster::Cluster, cluster::ClusterOptions};
use atc_engine::{Engine, EngineError, EngineOptions, error::chain, status::Ready};
use futures::StreamExt;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::{Controller, controller::Action, finalizer, watcher};
use kube::{Api, Config, CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tracing_subscriber::filter::LevelFilter;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.dev", version = "v1", kind = "Website", namespaced)]
#[kube(status = "WebsiteStatus")]
struct WebsiteSpec {
    image: String,
    replicas: u32,
    /// The page. Without it the image shows its own.
    html: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct WebsiteStatus {
    conditions: Vec<Condition>,
}

/// When a reconciliation that failed is tried again.
const AGAIN: Duration = Duration::from_secs(5);
type Failed = finalizer::Error<EngineError>;

/// What shall exist because of a website. What is no longer in the list goes.
fn resources(site: &Website) -> Vec<Value> {
    let (name, spec) = (site.name_any(), &site.spec);
    let labels = json!({ "app": name });
    let page = spec.html.as_ref().map(|html| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
            "data": { "index.html": html },
        })
    });
    let mount = json!({ "name": "page", "mountPath": "/usr/share/nginx/html" });
    let pod = json!({
        "containers": [{ "name": "web", "image": spec.image, "volumeMounts": [mount] }],
        "volumes": [{ "name": "page", "configMap": { "name": name, "optional": true } }],
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": {
            "replicas": spec.replicas,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": pod },
        },
    });
    page.into_iter().chain([deployment]).collect()
}

/// Shows what will differ, makes it so, and tells how it stands.
async fn take_off(release: &Release, site: &Website) -> Result<Ready, EngineError> {
    let wanted = resources(site);
    print!("{}", release.diff(&wanted).await?);
    Ok(release.takeoff(&wanted).await?.ready())
}

/// Runs whenever a website, or a resource of one, changes.
async fn reconcile(site: Arc<Website>, engine: Arc<Engine>) -> Result<Action, Failed> {
    let namespace = site.namespace().unwrap_or_default();
    let sites: Api<Website> = Api::namespaced(engine.cluster().client().clone(), &namespace);
    finalizer(&sites, "example.dev/website", site, |event| async {
        match event {
            finalizer::Event::Apply(site) => {
                let release = Release::of(&engine, &*site)?;
                let taken_off = take_off(&release, &site).await;
                // What failed stands in the status, and is tried again.
                let failed = |error: &EngineError| Ready::error(error.chain());
                let ready = taken_off.as_ref().map_or_else(failed, Ready::clone);
                release.report(&*site, &ready).await?;
                taken_off?;
            }
            finalizer::Event::Cleanup(site) => drop(Release::of(&engine, &*site)?.mayday().await?),
        }
        // Waiting costs nothing: the Deployment wakes us when it gets ready.
        Ok(Action::await_change())
    })
    .await
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
    let cluster = Cluster::connect(Config::infer().await?, ClusterOptions::default())?;
    let engine = Arc::new(Engine::new(cluster, EngineOptions::default())?);
    // The kind itself is a release, too. It is served when this returns.
    let own = Release::new(&engine, "default", "website-operator");
    own.takeoff(&[Website::crd()]).await?;
    println!("serving Websites; Ctrl-C ends it");

    let (client, all) = (engine.cluster().client(), watcher::Config::default);
    Controller::new(Api::<Website>::all(client.clone()), all())
        .owns(Api::<Deployment>::all(client.clone()), all())
        .owns(Api::<ConfigMap>::all(client.clone()), all())
        .shutdown_on_signal()
        .run(reconcile, |_, _, _| Action::requeue(AGAIN), engine.clone())
        .for_each(|ran| async { _ = ran.inspect_err(|error| eprintln!("error: {}", chain(error))) })
        .await;
    Ok(())
}
