//! The kit itself: if these fail, no other failure here means anything.

use std::time::Duration;

use atc_tests::{Api, Cluster, Fault, Proxy, eventually};
use serde_json::json;

const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_and_the_counting_of_calls() {
    let cluster = Cluster::shared().await;
    let ns = cluster.namespace().await;
    let mut audit = cluster.audit();
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let body = json!({ "metadata": { "name": "a" }, "data": { "k": "v" } });
    // Two by the administrator, who is not counted, and two by the atc's user.
    cluster.api.post(&path, &body).await.unwrap();
    let atc = Api::new(cluster.atc_user().await.unwrap());
    let found = atc.get(&format!("{path}/a")).await.unwrap().unwrap();
    assert_eq!(found["data"]["k"], "v");
    atc.merge(&format!("{path}/a"), &json!({ "data": { "k": "w" } }))
        .await
        .unwrap();
    assert_eq!(cluster.api.get(&format!("{path}/b")).await.unwrap(), None);
    let calls = audit.calls().await.unwrap();
    let mut mine: Vec<_> = calls
        .iter()
        .filter(|c| c.namespace == ns.name())
        .map(|c| c.verb.as_str())
        .collect();
    mine.sort_unstable();
    assert_eq!(mine, ["get", "patch"]);
    // A user without rights.
    let user = Api::new(cluster.user().await.unwrap());
    let refused = user.get(&path).await.unwrap_err().to_string();
    assert!(
        refused.contains("403") && refused.contains("forbidden"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_to_its_end() {
    let cluster = Cluster::shared().await;
    let ns = cluster.namespace().await;
    let path = format!("/apis/batch/v1/namespaces/{ns}/jobs");
    let pod = json!({ "restartPolicy": "Never", "containers": [{ "name": "c", "image": "none" }] });
    let job = json!({ "metadata": { "name": "j" }, "spec": { "template": { "spec": pod } } });
    cluster.api.post(&path, &job).await.unwrap();
    eventually(LIMIT, "the job is complete", || async {
        let job = cluster.api.get(&format!("{path}/j")).await?;
        Ok(job.filter(|job| job["status"]["succeeded"] == 1))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_does_what_networks_do() {
    let cluster = Cluster::shared().await;
    let ns = cluster.namespace().await;
    let proxy = Proxy::start(cluster.plane()).await.unwrap();
    let api = Api::new(cluster.through(&proxy.server()).await.unwrap());
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let body = |name: &str| json!({ "metadata": { "name": name } });
    api.post(&path, &body("a")).await.unwrap();
    assert!(api.get(&format!("{path}/a")).await.unwrap().is_some());
    assert_eq!(proxy.requests().len(), 2);

    proxy.fail_times("configmaps/a", Fault::Status(500, None), 1);
    let refused = api.get(&format!("{path}/a")).await.unwrap_err().to_string();
    assert!(
        refused.contains("500") && refused.contains("made by the proxy"),
        "{refused}"
    );
    assert!(api.get(&format!("{path}/a")).await.unwrap().is_some());

    proxy.fail_times("POST", Fault::LoseAnswer, 1);
    api.post(&path, &body("b")).await.unwrap_err();
    assert!(
        cluster
            .api
            .get(&format!("{path}/b"))
            .await
            .unwrap()
            .is_some()
    );

    proxy.fail_times("POST", Fault::Cut, 1);
    api.post(&path, &body("c")).await.unwrap_err();
    assert!(
        cluster
            .api
            .get(&format!("{path}/c"))
            .await
            .unwrap()
            .is_none()
    );

    proxy.fail("configmaps/a", Fault::Stall);
    let read =
        tokio::time::timeout(Duration::from_millis(200), api.get(&format!("{path}/a"))).await;
    read.unwrap_err();
    proxy.heal();
    assert!(api.get(&format!("{path}/a")).await.unwrap().is_some());
}
