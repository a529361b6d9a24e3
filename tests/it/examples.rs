//! The flights of the examples, driven to their ends by the real atc.

use std::time::Duration;

use atc_tests::{AirwayBuilder, Atc, Cluster, FileServer, eventually, guest, is_ready};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_mins(1);

/// Puts the module of an example where the atc can fetch it.
fn served(files: &FileServer, name: &str) -> String {
    files.put(
        &format!("{name}.wasm"),
        std::fs::read(guest(name).unwrap()).unwrap(),
    )
}

async fn pipeline(kind: &str, flight: &str) {
    let cluster = Cluster::shared().await;
    let ns = cluster.namespace().await;
    let files = FileServer::start().unwrap();
    let atc = Atc::shared(&cluster).await.unwrap();
    let airway = AirwayBuilder::new(kind, &served(&files, flight)).dynamic();
    atc.airway(&airway).await.unwrap();
    let steps: Vec<Value> = ["one", "two", "three"]
        .map(|name| json!({ "name": name, "image": "none" }))
        .into();
    let path = airway.path(ns.name());
    cluster
        .api
        .post(&path, &airway.instance("p", &json!({ "steps": steps })))
        .await
        .unwrap();
    let done = eventually(LIMIT, "the pipeline has completed", || async {
        let found = cluster.api.get(&format!("{path}/p")).await?;
        Ok(found.filter(|p| is_ready(p) && p["status"]["msg"] == "all 3 Jobs have completed"))
    })
    .await;
    assert_eq!(
        done["status"]["conditions"][0]["reason"], "Ready",
        "{done:#}"
    );
    let jobs = cluster
        .api
        .list(&format!("/apis/batch/v1/namespaces/{ns}/jobs"))
        .await
        .unwrap();
    let time = |name: &str, which: &str| {
        let job = jobs
            .iter()
            .find(|job| job["metadata"]["name"] == format!("p-{name}"))
            .unwrap();
        job["status"][which].as_str().unwrap().to_owned()
    };
    assert_eq!(jobs.len(), 3);
    assert!(time("one", "completionTime") <= time("two", "startTime"));
    assert!(time("two", "completionTime") <= time("three", "startTime"));
    atc.remove_airway(&airway).await.unwrap();
    eventually(LIMIT, "its Jobs are gone with it", || async {
        let jobs = cluster
            .api
            .list(&format!("/apis/batch/v1/namespaces/{ns}/jobs"))
            .await?;
        Ok(jobs.is_empty().then_some(()))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_in_rust() {
    pipeline("RustPipeline", "pipeline").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_in_go() {
    pipeline("GoPipeline", "pipeline-go").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_waits_for_a_secret_of_others() {
    let cluster = Cluster::shared().await;
    let ns = cluster.namespace().await;
    let files = FileServer::start().unwrap();
    let atc = Atc::shared(&cluster).await.unwrap();
    provider(&cluster).await;
    let airway = AirwayBuilder::new("ExampleApp", &served(&files, "app"))
        .dynamic()
        .access(&["Secret"]);
    atc.airway(&airway).await.unwrap();
    let path = airway.path(ns.name());
    cluster
        .api
        .post(
            &path,
            &airway.instance("a", &json!({ "image": "none", "replicas": 2 })),
        )
        .await
        .unwrap();
    // It is not ready before it is deployed, though all that was printed is.
    let message = |begin: &'static str, ready: bool| {
        let (cluster, path) = (&cluster, format!("{path}/a"));
        eventually(LIMIT, begin, move || {
            let path = path.clone();
            async move {
                let found = cluster.api.get(&path).await?;
                Ok(found.filter(|a| {
                    is_ready(a) == ready
                        && a["status"]["msg"]
                            .as_str()
                            .is_some_and(|m| m.starts_with(begin))
                }))
            }
        })
    };
    let waiting = message("waiting for Secret a-db", false).await;
    let condition = &waiting["status"]["conditions"][0];
    assert_eq!(condition["reason"], "Waiting", "{waiting:#}");
    let deployments = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    assert!(cluster.api.list(&deployments).await.unwrap().is_empty());
    let secret = json!({ "metadata": { "name": "a-db" }, "stringData": { "url": "x://y" } });
    cluster
        .api
        .post(&format!("/api/v1/namespaces/{ns}/secrets"), &secret)
        .await
        .unwrap();
    message("deployed with the connection in Secret a-db", true).await;
    let deployment = cluster
        .api
        .get(&format!("{deployments}/a"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(deployment["status"]["readyReplicas"], 2);
    atc.remove_airway(&airway).await.unwrap();
}

/// The kind that the flight asks databases of; nobody answers.
pub(crate) async fn provider(cluster: &Cluster) {
    let free = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "databases.db.example.dev" },
        "spec": {
            "group": "db.example.dev",
            "scope": "Namespaced",
            "names": { "plural": "databases", "singular": "database", "kind": "Database" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": free } }],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/databases.db.example.dev";
    cluster.api.apply(path, &crd).await.unwrap();
    eventually(LIMIT, "databases are served", || async {
        cluster.api.get("/apis/db.example.dev/v1/databases").await
    })
    .await;
}
