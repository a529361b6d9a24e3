//! Statuses that others change, and instances that look at each other's children.

use std::time::Duration;

use anyhow::anyhow;
use atc_tests::{AirwayBuilder, condition, eventually, never};
use serde_json::{Value, json};

use crate::world::{LIMIT, World, configmap, look, puppet, text};

/// Whether a call writes the status of an instance of this test.
fn writes_status(world: &World, call: &atc_tests::Call) -> bool {
    world.is_mine(call) && call.writes() && call.resource.ends_with("/status")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_others_change_is_corrected() {
    let world = World::new().await;
    let kind = world.live().await;
    let made = kind.make("s", json!({ "status": { "msg": "hi" } })).await;
    world.settle().await;
    let path = format!("{}/status", kind.path("s"));
    let ready = condition(&made, "Ready").unwrap().clone();
    let is_right = |object: &Value| {
        let now = condition(object, "Ready").unwrap_or(&Value::Null);
        object["status"]["msg"] == "hi"
            && ["status", "reason", "message"]
                .into_iter()
                .all(|key| now[key] == ready[key])
    };
    let mut lie = ready.clone();
    lie["status"] = "False".into();
    lie["reason"] = "Hand".into();
    let edits = [
        json!({ "msg": "ho" }),
        json!({ "msg": null }),
        json!({ "conditions": null }),
        json!({ "conditions": [lie] }),
    ];
    for edit in edits {
        let mut audit = world.cluster.audit();
        world.merge(&path, &json!({ "status": edit })).await;
        kind.until("s", &format!("is right after {edit}"), is_right)
            .await;
        world.settle().await;
        let calls = audit.calls().await.unwrap();
        let writes = calls
            .iter()
            .filter(|call| writes_status(&world, call))
            .count();
        assert_eq!(writes, 1, "{edit}");
    }

    // What is not ours is left to whoever writes it.
    let runs = world.runs(&kind, "s");
    let mut audit = world.cluster.audit();
    let theirs = json!({ "type": "Theirs", "status": "True", "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let conditions = json!([ready, theirs]);
    world
        .merge(
            &path,
            &json!({ "status": { "conditions": conditions, "other": 1 } }),
        )
        .await;
    world.settle().await;
    let calls = audit.calls().await.unwrap();
    assert!(!calls.iter().any(|call| writes_status(&world, call)));
    let now = kind.instance("s").await;
    assert_eq!(now["status"]["other"], 1);
    assert!(is_right(&now) && condition(&now, "Theirs").is_some());
    assert_eq!(world.runs(&kind, "s"), runs);
    kind.delete("s").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scaling_is_reviewed_r162() {
    let world = World::new().await;
    let kind = world
        .kind_with(AirwayBuilder::new("Weighed", &puppet()), |airway| {
            let version = &mut airway["spec"]["template"]["versions"][0];
            version["subresources"] = json!({ "scale": {
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
            } });
        })
        .await;
    kind.make("s", json!({ "replicas": 1, "exitIf": { "replicas": "7" } }))
        .await;
    let path = format!("{}/scale", kind.path("s"));
    let scale = async |replicas: u32| {
        // A patch without a version: the status is written meanwhile.
        let scale = json!({ "spec": { "replicas": replicas } });
        world.cluster.api.merge(&path, &scale).await
    };
    let error = scale(7).await.unwrap_err().to_string();
    assert!(
        error.contains("weigheds.tests.atc.dev\" denied") && error.contains("replicas is 7"),
        "{error}"
    );
    assert_eq!(kind.instance("s").await["spec"]["replicas"], 1);
    scale(3).await.unwrap();
    world.has("s", json!({ "replicas": "3" })).await;
    scale(0).await.unwrap();
    world.has("s", json!({ "replicas": "0" })).await;
    let none = kind.path("none/scale");
    let error = world
        .cluster
        .api
        .merge(&none, &json!({ "spec": { "replicas": 1 } }))
        .await;
    assert!(error.unwrap_err().to_string().starts_with("404 "));
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_look_at_each_other_stay_calm() {
    let world = World::new().await;
    let kind = world.live().await;
    // Each prints another value each time it runs, and runs when the other's changes.
    let spec = |other: &str, own: &str| {
        json!({
            "look": [look("x", "ConfigMap", &world.ns, other, "data.v")],
            "objects": [configmap(own, json!({ "v": "${now}", "seen": "${x}" }))],
        })
    };
    kind.create("ping", &spec("pong", "ping")).await.unwrap();
    kind.create("pong", &spec("ping", "pong")).await.unwrap();
    let seen = |name: &'static str| {
        let world = &world;
        async move { text(&world.data(name).await["seen"]).to_owned() }
    };
    eventually(LIMIT, "each has seen the other", || async {
        if seen("ping").await.is_empty() || seen("pong").await.is_empty() {
            return Err(anyhow!("not yet"));
        }
        Ok(Some(()))
    })
    .await;
    // Beyond the first five, each runs once a second.
    let runs = || world.runs(&kind, "ping").max(world.runs(&kind, "pong"));
    let before = runs();
    let most = before + 12;
    never(Duration::from_secs(5), "they drive each other", || async {
        let runs = runs();
        Ok((runs > most).then_some(runs - before))
    })
    .await;
    // They go on, as they say.
    eventually(LIMIT, "they still run", || async {
        Ok((runs() > before).then_some(()))
    })
    .await;
    for name in ["ping", "pong"] {
        kind.delete(name).await;
    }
}
