//! Flights and ClusterFlights: their life, what they may make and read, and whose their objects are.

use atc_tests::{condition, eventually, is_ready};
use serde_json::{Value, json};

use crate::terminal::Cli;
use crate::world::{LIMIT, World, configmap, configmap_in, deployment, look, puppet, text};

pub(crate) const API: &str = "/apis/yoke.cd/v1alpha1";

/// A Flight whose module does what its input says.
pub(crate) fn flight(name: &str, input: &Value, more: &Value) -> Value {
    let mut body = json!({
        "apiVersion": "yoke.cd/v1alpha1",
        "kind": "Flight",
        "metadata": { "name": name },
        "spec": { "wasmUrl": puppet(), "inputObject": input },
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        body["spec"][key] = value.clone();
    }
    body
}

/// The Flights of a test's namespace.
pub(crate) struct Flights<'a>(pub(crate) &'a World);

impl Flights<'_> {
    pub(crate) fn all(&self) -> String {
        format!("{API}/namespaces/{}/flights", self.0.ns)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.all())
    }

    pub(crate) async fn create(&self, body: &Value) -> anyhow::Result<Value> {
        self.0.cluster.api.post(&self.all(), body).await
    }

    pub(crate) async fn ready(&self, name: &str) -> Value {
        ready(self.0, &self.path(name)).await
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.0.delete(&self.path(name)).await;
        self.0.gone(&self.path(name)).await;
    }
}

pub(crate) async fn ready(world: &World, path: &str) -> Value {
    eventually(LIMIT, &format!("{path} is ready"), || async {
        let found = world.get(path).await?.unwrap_or_default();
        let observed = condition(&found, "Ready")
            .is_some_and(|ready| ready["observedGeneration"] == found["metadata"]["generation"]);
        if is_ready(&found) && observed {
            return Ok(Some(found));
        }
        Err(anyhow::anyhow!("{}", found["status"]))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flight_lives_and_goes() {
    let world = World::new().await;
    let flights = Flights(&world);
    let body = flight(
        "basic",
        &json!({ "objects": [configmap("one", json!({ "k": "1" })), configmap("two", json!({ "k": "2" }))] }),
        &json!({}),
    );
    flights.create(&body).await.unwrap();
    let found = flights.ready("basic").await;
    assert_eq!(
        found["metadata"]["finalizers"],
        json!(["yoke.cd/mayday.flight"])
    );
    let entry = |name: &str| json!({ "resource": format!("{}/ConfigMap:{name}", world.ns), "version": "v1", "ready": true });
    assert_eq!(
        found["status"]["inventory"],
        json!([entry("one"), entry("two")])
    );

    let child = world.configmap("one").await.unwrap();
    let metadata = &child["metadata"];
    assert_eq!(
        metadata["labels"]["app.kubernetes.io/managed-by"],
        "atc.yoke"
    );
    assert_eq!(
        metadata["annotations"]["instance.atc.yoke.cd/release"],
        "basic"
    );
    assert_eq!(
        metadata["annotations"]["instance.atc.yoke.cd/namespace"],
        world.ns
    );
    assert_eq!(
        metadata["annotations"]["instance.atc.yoke.cd/instanceRef"],
        Value::Null
    );
    assert_eq!(
        metadata["ownerReferences"][0]["uid"],
        found["metadata"]["uid"]
    );
    let record = &world.revisions().await[0]["metadata"]["annotations"];
    assert_eq!(
        record["internal.yoke/release-name"],
        format!("{}/Flight.yoke.cd:basic", world.ns)
    );

    // Text wins over the object; what it prints no more goes.
    let input = json!({ "objects": [configmap("two", json!({ "k": "3" }))] }).to_string();
    world
        .merge(
            &flights.path("basic"),
            &json!({ "spec": { "input": input } }),
        )
        .await;
    world.has("two", json!({ "k": "3" })).await;
    world.gone(&world.core("configmaps", "one")).await;
    let found = flights.ready("basic").await;
    assert_eq!(found["status"]["inventory"], json!([entry("two")]));

    flights.delete("basic").await;
    world.gone(&world.core("configmaps", "two")).await;
    assert!(world.revisions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flight_follows_how_its_workload_stands() {
    let world = World::new().await;
    let flights = Flights(&world);
    let input = json!({ "objects": [deployment("d", 1), configmap("c", json!({ "k": "v" }))] });
    flights
        .create(&flight("work", &input, &json!({})))
        .await
        .unwrap();
    // Only looks at the status tell that the Deployment has come to be available.
    flights.ready("work").await;
    let touch = json!({ "metadata": { "annotations": { "note": "x" } } });
    world.merge(&world.core("configmaps", "c"), &touch).await;
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/d", world.ns);
    let pods = json!({ "spec": { "template": { "spec": { "nodeSelector": { "no": "such" } } } } });
    world.merge(&path, &pods).await;
    let ready = |object: &Value, name: &str| {
        let all = object["status"]["inventory"].as_array().cloned();
        all.into_iter()
            .flatten()
            .any(|entry| text(&entry["resource"]).ends_with(name) && entry["ready"] == true)
    };
    eventually(
        LIMIT,
        "it says that its Deployment is not ready",
        || async {
            let found = world.get(&flights.path("work")).await?.unwrap_or_default();
            let reason = condition(&found, "Ready").map(|ready| ready["reason"].clone());
            if reason == Some("InProgress".into()) && !ready(&found, ":d") && ready(&found, ":c") {
                return Ok(Some(()));
            }
            Err(anyhow::anyhow!("{}", found["status"]))
        },
    )
    .await;
    flights.delete("work").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_that_changes_nothing_keeps_the_inventory_w1() {
    let world = World::new().await;
    let flights = Flights(&world);
    // A name that no other test has: its runs are counted.
    let name = format!("kept-{}", world.ns);
    let drift = json!({ "fixDriftInterval": "1s" });
    let body = flight(&name, &json!({ "note": "a" }), &drift);
    flights.create(&body).await.unwrap();
    let settled = flights.ready(&name).await;
    assert_eq!(settled["status"]["inventory"].as_array().unwrap().len(), 1);
    let (child, ran) = (world.configmap(&name).await, world.runs_of(&name));
    assert!(child.is_some());
    eventually(LIMIT, "it ran three times more", || async {
        Ok((world.runs_of(&name) >= ran + 3).then_some(()))
    })
    .await;
    let found = world.get(&flights.path(&name)).await.unwrap().unwrap();
    assert_eq!(found["status"], settled["status"]);
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    assert_eq!(version(&found), version(&settled));
    assert_eq!(world.configmap(&name).await, child);
    flights.delete(&name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flight_is_reviewed_whole() {
    let world = World::new().await;
    let flights = Flights(&world);
    let other = world.namespace().await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "wide" }, "rules": [],
    });
    let mut own_role = role.clone();
    own_role["kind"] = "Role".into();
    for (input, words) in [
        (json!({ "fail": "not this one" }), "not this one"),
        (
            json!({ "objects": [configmap_in(&other, "x", json!({}))] }),
            other.as_str(),
        ),
        (json!({ "objects": [role] }), "own namespace only"),
        (json!({ "objects": [own_role] }), "none that gives rights"),
        (
            json!({ "objects": [{ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "made" } }] }),
            "own namespace only",
        ),
    ] {
        let said = flights
            .create(&flight("no", &input, &json!({})))
            .await
            .unwrap_err()
            .to_string();
        assert!(
            said.contains(words) && said.contains("flights.yoke.cd"),
            "{said}"
        );
    }
    let said = flights
        .create(&flight(
            "no",
            &json!({}),
            &json!({ "checksum": "cd".repeat(32) }),
        ))
        .await;
    assert!(said.unwrap_err().to_string().contains(&"cd".repeat(32)));
    let said = flights
        .create(&flight("no", &json!({}), &json!({ "wasmUrl": "ftp://x" })))
        .await;
    assert!(said.unwrap_err().to_string().contains("spec.wasmUrl"));

    // The same for an update of one that is there.
    flights
        .create(&flight("yes", &json!({ "note": "a" }), &json!({})))
        .await
        .unwrap();
    flights.ready("yes").await;
    let update = json!({ "spec": { "inputObject": { "fail": "nor this" } } });
    let said = world
        .cluster
        .api
        .merge(&flights.path("yes"), &update)
        .await
        .unwrap_err();
    assert!(said.to_string().contains("nor this"));
    world.has("yes", json!({ "note": "a" })).await;
    flights.delete("yes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flight_reads_nothing_outside_its_namespace_w5() {
    let world = World::new().await;
    let flights = Flights(&world);
    let other = world.namespace().await;
    let data = configmap("source", json!({ "v": "seen" }));
    for namespace in [&world.ns, &other] {
        world
            .post(&format!("/api/v1/namespaces/{namespace}/configmaps"), &data)
            .await;
    }
    let access = json!({ "clusterAccess": true, "resourceAccessMatchers": ["*/*"] });
    let input = |namespace: &str| {
        json!({
            "look": [look("v", "ConfigMap", namespace, "source", "data.v")],
            "objects": [configmap("copy", json!({ "v": "${v}" }))],
        })
    };
    flights
        .create(&flight("reader", &input(&world.ns), &access))
        .await
        .unwrap();
    world.has("copy", json!({ "v": "seen" })).await;
    let said = flights
        .create(&flight("thief", &input(&other), &access))
        .await
        .unwrap_err()
        .to_string();
    assert!(said.contains("forbidden"), "{said}");
    flights.delete("reader").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flight_has_modes() {
    let world = World::new().await;
    let flights = Flights(&world);
    let body = flight(
        "live",
        &json!({ "note": "a" }),
        &json!({ "mode": "dynamic" }),
    );
    flights.create(&body).await.unwrap();
    flights.ready("live").await;
    world.settle().await;
    world.delete(&world.core("configmaps", "live")).await;
    world.has_soon("live", json!({ "note": "a" })).await;
    let said = flights
        .create(&flight("fixed", &json!({}), &json!({ "mode": "static" })))
        .await;
    assert!(said.unwrap_err().to_string().contains("spec.mode"));
    flights.delete("live").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_flight_writes_anywhere() {
    let world = World::new().await;
    let other = world.namespace().await;
    let name = format!("cf-{}", world.ns);
    let objects =
        [&world.ns, &other].map(|namespace| configmap_in(namespace, "x", json!({ "k": "v" })));
    let mut body = flight(&name, &json!({ "objects": objects }), &json!({}));
    body["kind"] = "ClusterFlight".into();
    let path = format!("{API}/clusterflights/{name}");
    world.post(&format!("{API}/clusterflights"), &body).await;
    let found = ready(&world, &path).await;
    let inventory = found["status"]["inventory"].as_array().unwrap();
    let mut names: Vec<_> = inventory
        .iter()
        .map(|entry| text(&entry["resource"]).to_owned())
        .collect();
    names.sort_unstable();
    let mut wanted = [&world.ns, &other].map(|namespace| format!("{namespace}/ConfigMap:x"));
    wanted.sort_unstable();
    assert_eq!(names, wanted);
    world.delete(&path).await;
    world.gone(&path).await;
    for namespace in [&world.ns, &other] {
        assert!(world.configmaps(namespace).await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_of_the_same_name_is_another_one_w28() {
    let mut cli = Cli::new().await;
    cli.world = World::new().await;
    let world = &cli.world;
    let flights = Flights(world);
    let body = flight(
        "web",
        &json!({ "objects": [configmap("of-flight", json!({ "k": "1" }))] }),
        &json!({}),
    );
    flights.create(&body).await.unwrap();
    flights.ready("web").await;

    let theirs = json!([configmap("of-release", json!({ "k": "1" }))]);
    cli.ok(&["takeoff", "web"], &theirs).await;
    assert_eq!(
        world.configmaps(&world.ns).await,
        ["of-flight", "of-release"]
    );
    // Neither takes, nor removes, what the other has.
    let taking = json!([configmap("of-flight", json!({ "k": "2" }))]).to_string();
    cli.fails(&["takeoff", "web"], &taking, &["of a Flight"])
        .await;
    world.has("of-flight", json!({ "k": "1" })).await;
    cli.ok(&["mayday", "web"], &Value::Null).await;
    assert_eq!(world.configmaps(&world.ns).await, ["of-flight"]);
    cli.ok(&["takeoff", "web"], &theirs).await;
    flights.delete("web").await;
    assert_eq!(world.configmaps(&world.ns).await, ["of-release"]);
    cli.ok(&["mayday", "web"], &Value::Null).await;
}
