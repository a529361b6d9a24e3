//! Operators of one's own: those of `docs/examples` as processes, one whose own code makes the resources and one around a
//! flight; and the door of the first.

use std::{process::Command, time::Duration};

use atc_engine::kube;
use atc_engine::release::Release;
use atc_engine::release::cluster::{Cluster as Target, ClusterOptions};
use atc_engine::{Engine, EngineOptions};
use atc_tests::{condition, eventually, example, guest, is_ready, never};
use serde_json::{Value, json};

use crate::examples::provider;
use crate::terminal::{Cli, objects};
use crate::world::{CRDS, LIMIT, configmap, deployment, text};

const WEBSITES: &str = "/apis/example.dev/v1/websites";
/// How long is looked for what must not happen.
const SILENCE: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_without_a_flight() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let plane = world.cluster.plane();
    let mut command = Command::new(example("operator").unwrap());
    command.env("KUBECONFIG", plane.kubeconfig());
    let mut operator = plane.keep("operator", command).unwrap();
    let said = |words: &str| {
        let log = std::fs::read_to_string(operator.log()).unwrap();
        assert!(log.contains(words), "{words:?} in {log}");
    };
    eventually(LIMIT, "websites are served", || world.get(WEBSITES)).await;

    let path = format!("/apis/example.dev/v1/namespaces/{}/websites", world.ns);
    let site = format!("{path}/hello");
    let spec = json!({ "image": "none", "replicas": 2, "html": "hello" });
    let body = json!({ "apiVersion": "example.dev/v1", "kind": "Website", "metadata": { "name": "hello" }, "spec": spec });
    world.post(&path, &body).await;
    // Whatever it is told, it is ready in the end, and not before.
    let ready = async |generation: u32| {
        eventually(
            LIMIT,
            &format!("generation {generation} is ready"),
            || async {
                let found = world.get(&site).await?.unwrap_or_default();
                let observed = condition(&found, "Ready").map(|c| c["observedGeneration"].clone());
                Ok((is_ready(&found) && observed == Some(generation.into())).then_some(found))
            },
        )
        .await
    };
    let made = ready(1).await;
    let pods = format!("/apis/apps/v1/namespaces/{}/deployments/hello", world.ns);
    let deployed = world.get(&pods).await.unwrap().unwrap();
    assert_eq!(deployed["status"]["readyReplicas"], 2);
    let owner = &deployed["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], made["metadata"]["uid"]);
    world.has("hello", json!({ "index.html": "hello" })).await;
    said("+    index.html: hello");
    let release = format!("example.dev.Website.{}.hello", world.ns);
    let ran = cli.ok(&["blackbox", &release], &Value::Null).await;
    assert!(ran.stdout.contains("(current)"), "{}", ran.stdout);

    // An edit changes what it must, and no more.
    let edit = async |spec: Value| world.merge(&site, &json!({ "spec": spec })).await;
    edit(json!({ "html": "bye" })).await;
    ready(2).await;
    world.has("hello", json!({ "index.html": "bye" })).await;
    said("-    index.html: hello\n+    index.html: bye");
    let now = world.get(&pods).await.unwrap().unwrap();
    for field in ["uid", "generation"] {
        assert_eq!(now["metadata"][field], deployed["metadata"][field]);
    }
    // What is dropped goes. Then nothing is written any more.
    edit(json!({ "html": null })).await;
    world.gone(&world.core("configmaps", "hello")).await;
    let settled = ready(3).await;
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    never(SILENCE, "anything is written", || async {
        let now = world.get(&site).await?.unwrap();
        Ok((version(&now) != version(&settled)).then_some(now))
    })
    .await;
    // What somebody takes away comes back.
    world.delete(&pods).await;
    eventually(LIMIT, "the Deployment is back", || async {
        let found = world.get(&pods).await?;
        Ok(found.filter(|found| found["metadata"]["uid"] != deployed["metadata"]["uid"]))
    })
    .await;
    // What is refused stands in the status, until it is mended.
    edit(json!({ "image": "" })).await;
    eventually(LIMIT, "the status says what is refused", || async {
        let found = world.get(&site).await?.unwrap_or_default();
        let Some(ready) = condition(&found, "Ready").cloned() else {
            return Ok(None);
        };
        let says = ready["reason"] == "Error" && text(&ready["message"]).contains("image");
        Ok(says.then_some(()))
    })
    .await;
    edit(json!({ "image": "none" })).await;
    ready(5).await;

    world.delete(&site).await;
    for path in [&site, &pods] {
        world.gone(path).await;
    }
    assert!(world.revisions().await.is_empty());
    assert!(operator.terminate().unwrap().success());
    let crd = format!("{CRDS}/websites.example.dev");
    let arguments = [
        "mayday",
        "-namespace",
        "default",
        "-remove-crds",
        "website-operator",
    ];
    let ran = cli.yoke.run(&arguments).await.unwrap();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    world.gone(&crd).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_around_a_flight() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let plane = world.cluster.plane();
    provider(&world.cluster).await;
    let mut command = Command::new(example("operator-flight").unwrap());
    command.env("KUBECONFIG", plane.kubeconfig());
    command.arg(guest("app").unwrap());
    let mut operator = plane.keep("operator-flight", command).unwrap();
    let apps = "/apis/example.dev/v1/apps";
    eventually(LIMIT, "apps are served", || world.get(apps)).await;

    let path = format!("/apis/example.dev/v1/namespaces/{}/apps", world.ns);
    let app = format!("{path}/shop");
    let spec = json!({ "image": "none", "replicas": 2 });
    let body = json!({ "apiVersion": "example.dev/v1", "kind": "App", "metadata": { "name": "shop" }, "spec": spec });
    world.post(&path, &body).await;
    let says = async |words: &str| {
        // It is ready when it is deployed, and not before.
        let ready = words.starts_with("deployed");
        eventually(LIMIT, &format!("it says {words}"), || async {
            let found = world.get(&app).await?.unwrap_or_default();
            let said = text(&found["status"]["msg"]).starts_with(words);
            Ok((said && is_ready(&found) == ready).then_some(found))
        })
        .await
    };
    let made = says("waiting for Secret shop-db").await;
    let databases = format!("/apis/db.example.dev/v1/namespaces/{}/databases", world.ns);
    let database = world
        .get(&format!("{databases}/shop"))
        .await
        .unwrap()
        .unwrap();
    let owner = &database["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], made["metadata"]["uid"]);

    // Somebody answers with a Secret, and then with another one.
    let secrets = format!("/api/v1/namespaces/{}/secrets", world.ns);
    let pods = format!("/apis/apps/v1/namespaces/{}/deployments/shop", world.ns);
    for answer in ["first", "second"] {
        let secret = json!({ "metadata": { "name": "shop-db" }, "stringData": { "url": answer } });
        let secret = world.post(&secrets, &secret).await;
        let uid = &secret["metadata"]["uid"];
        eventually(LIMIT, "it is deployed with this Secret", || async {
            let found = world.get(&pods).await?.unwrap_or_default();
            let connection =
                &found["spec"]["template"]["metadata"]["annotations"]["example.dev/connection"];
            Ok((connection == uid && found["status"]["readyReplicas"] == 2).then_some(()))
        })
        .await;
        says("deployed with the connection").await;
        if answer == "first" {
            world.delete(&format!("{secrets}/shop-db")).await;
            says("waiting for Secret shop-db").await;
            world.gone(&pods).await;
        }
    }
    // What others change of it is put back.
    world
        .merge(&pods, &json!({ "spec": { "replicas": 5 } }))
        .await;
    world.delete(&format!("{databases}/shop")).await;
    let status = json!({ "status": { "msg": "nonsense" } });
    world.merge(&format!("{app}/status"), &status).await;
    eventually(LIMIT, "all is as it was", || async {
        let deployed = world.get(&pods).await?.unwrap_or_default();
        let found = world.get(&format!("{databases}/shop")).await?;
        let is_new =
            found.is_some_and(|found| found["metadata"]["uid"] != database["metadata"]["uid"]);
        Ok((deployed["spec"]["replicas"] == 2 && is_new).then_some(()))
    })
    .await;
    says("deployed with the connection").await;
    // An edit counts, then nothing is written any more.
    world
        .merge(&app, &json!({ "spec": { "replicas": 1 } }))
        .await;
    eventually(LIMIT, "the edit is observed", || async {
        let found = world.get(&app).await?.unwrap_or_default();
        let observed = condition(&found, "Ready").map(|c| c["observedGeneration"].clone());
        Ok((is_ready(&found) && observed == Some(2.into())).then_some(()))
    })
    .await;
    eventually(LIMIT, "one Pod is left, and ready", || async {
        let found = world.get(&pods).await?.unwrap_or_default();
        assert_eq!(found["spec"]["replicas"], 1);
        let status = &found["status"];
        let seen = status["observedGeneration"] == found["metadata"]["generation"];
        let one = ["replicas", "updatedReplicas", "availableReplicas"]
            .iter()
            .all(|count| status[count] == 1);
        Ok((seen && one).then_some(()))
    })
    .await;
    let version = says("deployed").await["metadata"]["resourceVersion"].clone();
    never(SILENCE, "anything is written", || async {
        let now = world.get(&app).await?.unwrap();
        Ok((now["metadata"]["resourceVersion"] != version).then_some(now))
    })
    .await;

    world.delete(&app).await;
    let database = format!("{databases}/shop");
    for path in [&app, &pods, &database] {
        world.gone(path).await;
    }
    assert!(world.revisions().await.is_empty());
    assert!(operator.terminate().unwrap().success());
    let arguments = [
        "mayday",
        "-namespace",
        "default",
        "-remove-crds",
        "app-operator",
    ];
    let ran = cli.yoke.run(&arguments).await.unwrap();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    world.gone(&format!("{CRDS}/apps.example.dev")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_cannot_begin_says_why_in_words() {
    let cli = Cli::new().await;
    let mut command = Command::new(example("operator-flight").unwrap());
    command.env("KUBECONFIG", cli.world.cluster.plane().kubeconfig());
    let ran = command.arg("/nowhere.wasm").output().unwrap();
    assert!(!ran.status.success());
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.contains("error: can't get module \""), "{said}");
    assert!(
        said.contains("No such file") && !said.contains('{'),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_of_ones_own() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let config = config(&world.cluster.plane().kubeconfig()).await;
    let cluster = Target::connect(config, ClusterOptions::default()).unwrap();
    let engine = Engine::new(cluster, EngineOptions::default()).unwrap();
    let release = Release::new(&engine, &world.ns, "r");
    assert_eq!(release.name(), "r");
    // There is nothing to wait for, to remove.
    release.wait(LIMIT).await.unwrap();
    assert!(!release.mayday().await.unwrap().existed);

    let all = json!([
        objects(&["a"]),
        [deployment("d", 1), configmap("b", json!({}))]
    ]);
    assert!(release.diff(&all).await.unwrap().contains("+    k: v\n"));
    assert!(world.configmaps(&world.ns).await.is_empty());
    let made = release.takeoff(&all).await.unwrap();
    assert!(made.changed && !made.ready().status, "{made:?}");
    release.wait(LIMIT).await.unwrap();
    let again = release.takeoff(&all).await.unwrap();
    assert!(!again.changed && again.ready().status, "{again:?}");
    assert_eq!(release.diff(&all).await.unwrap(), "");

    // All of it or nothing; what cannot be is said.
    let bad = json!([
        configmap("c", json!({})),
        configmap("Not_A_Name", json!({}))
    ]);
    let error = release.takeoff(&bad).await.unwrap_err().chain();
    assert!(error.contains("Not_A_Name"), "{error}");
    assert!(world.configmap("c").await.is_none());
    let mut stuck = deployment("d", 1);
    stuck["spec"]["template"]["spec"]["nodeSelector"] = json!({ "no": "such" });
    release.takeoff(&[stuck]).await.unwrap();
    assert!(world.configmaps(&world.ns).await.is_empty());
    let late = release.wait(Duration::from_millis(100)).await.unwrap_err();
    assert!(late.chain().contains("deployment/d"), "{}", late.chain());

    // The command line knows it.
    let ran = cli.ok(&["turbulence", "r"], &Value::Null).await;
    assert!(ran.stderr.contains("as recorded"), "{}", ran.stderr);
    let gone = release.mayday().await.unwrap();
    assert!(gone.existed, "{gone:?}");
    assert_eq!(gone.deleted.len(), 1, "the rest went before: {gone:?}");
    assert!(world.revisions().await.is_empty());
}

async fn config(kubeconfig: &std::path::Path) -> kube::Config {
    let file = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    kube::Config::from_custom_kubeconfig(file, &options)
        .await
        .unwrap()
}
