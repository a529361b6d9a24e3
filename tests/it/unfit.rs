//! Instances that can't be let go: their Airway says which and why, and one that is deleted waits for none of them for ever.

use anyhow::anyhow;
use atc_tests::{AirwayBuilder, Fault, Proxy, condition, eventually};
use serde_json::{Value, json};

use crate::{
    outage::behind,
    solo::{Solo, plane},
    world::{CRDS, Kind, LIMIT, World, puppet, text},
};

/// Narrows the schema at its root, so that the API server refuses whatever was stored before.
async fn narrow(kind: &Kind<'_>, stored: &str) {
    let mut template = kind.airway.build()["spec"]["template"].clone();
    let version = &mut template["versions"][0];
    // A selectable field is one that the schema declares.
    version["selectableFields"] = json!([{ "jsonPath": ".spec.note" }]);
    let schema = &mut version["schema"]["openAPIV3Schema"];
    schema["required"] = json!(["must"]);
    schema["properties"]["must"] = json!({ "type": "string" });
    kind.update(json!({ "template": template })).await;
    let path = format!("{}?dryRun=All", kind.path(stored));
    let edit = json!({ "metadata": { "labels": { "a": "b" } } });
    eventually(LIMIT, "what is stored does not fit any more", || async {
        match kind.world.cluster.api.merge(&path, &edit).await {
            Ok(_) => Err(anyhow!("it was taken")),
            Err(error) if error.to_string().contains("must") => Ok(Some(())),
            Err(error) => Err(error),
        }
    })
    .await;
}

/// Waits until an Airway says this, with this reason; the whole message.
async fn says(kind: &Kind<'_>, reason: &str, words: &str) -> String {
    let what = format!("Airway {} says {words:?}", kind.airway.name());
    eventually(LIMIT, &what, || async {
        let airway = kind.world.get(&kind.airway_path()).await?;
        let airway = airway.unwrap_or_default();
        let ready = condition(&airway, "Ready").cloned().unwrap_or_default();
        let message = text(&ready["message"]);
        if ready["reason"] == reason && message.contains(words) {
            return Ok(Some(message.to_owned()));
        }
        Err(anyhow!("{ready}"))
    })
    .await
}

async fn required(kind: &Kind<'_>) -> Value {
    let path = format!("{CRDS}/{}", kind.airway.name());
    let crd = kind.world.get(&path).await.unwrap().unwrap();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["required"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_its_schema_holds_back_is_named_by_its_airway() {
    let world = World::new().await;
    let kind = world.kind(AirwayBuilder::new("Narrowed", &puppet())).await;
    kind.make("a", json!({ "note": "1" })).await;
    kind.make("b", json!({ "note": "1" })).await;
    narrow(&kind, "a").await;
    world.delete(&kind.path("a")).await;
    let words = format!("1 instance can't be let go: {}/a: ", world.ns);
    let said = says(&kind, "Ready", &words).await;
    assert!(said.contains("schema of its kind"), "{said}");
    world.gone(&world.core("configmaps", "a")).await;
    // Nobody else may store what does not fit meanwhile.
    assert_eq!(required(&kind).await, json!(["must"]));
    assert!(kind.create("c", &json!({})).await.is_err());

    let template = kind.airway.build()["spec"]["template"].clone();
    kind.update(json!({ "template": template })).await;
    kind.gone("a").await;
    eventually(LIMIT, "nothing is said of it any more", || async {
        let said = says(&kind, "Ready", "instances are served").await;
        Ok((!said.contains("let go")).then_some(()))
    })
    .await;
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_airway_that_goes_takes_what_does_not_fit_its_schema_along() {
    let world = World::new().await;
    let kind = world.kind(AirwayBuilder::new("Strangled", &puppet())).await;
    for name in ["a", "b"] {
        kind.make(name, json!({ "note": name })).await;
    }
    narrow(&kind, "a").await;
    // One is on its way already.
    world.delete(&kind.path("a")).await;
    says(&kind, "Ready", "1 instance can't be let go").await;
    kind.remove().await;
    for name in ["a", "b"] {
        world.gone(&world.core("configmaps", name)).await;
    }
    assert!(world.revisions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_airway_that_goes_says_what_it_waits_for() {
    let world = World::new().await;
    let kind = world.kind(AirwayBuilder::new("Detained", &puppet())).await;
    let hold = |finalizers: Value| json!({ "metadata": { "finalizers": finalizers } });
    for name in ["a", "b"] {
        kind.make(name, json!({ "note": name })).await;
        let finalized = hold(json!(["tests.atc.dev/held"]));
        world
            .merge(&world.core("configmaps", name), &finalized)
            .await;
    }
    world.delete(&kind.airway_path()).await;
    for name in ["a", "b"] {
        let words = format!("{}/{name}: can't remove its resources: ", world.ns);
        let said = says(&kind, "Terminating", &words).await;
        let begin = "waiting for 2 instances to go: ";
        assert!(said.starts_with(begin), "{said}");
    }
    for name in ["a", "b"] {
        world
            .merge(&world.core("configmaps", name), &hold(Value::Null))
            .await;
    }
    world.gone(&kind.airway_path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_whose_finalizer_can_not_be_taken_off_is_terminating() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let proxy = Proxy::start(plane()).await.unwrap();
    let _atc = behind(&solo, &proxy).await;
    let kind = solo.kind().await;
    kind.make("t", json!({ "note": "1" })).await;
    let write = format!("PATCH {}?", kind.path("t"));
    proxy.fail(&write, Fault::Status(403, None));
    world.delete(&kind.path("t")).await;
    kind.says("t", "Terminating", "can't take its finalizer off")
        .await;
    world.gone(&world.core("configmaps", "t")).await;
    proxy.heal();
    kind.gone("t").await;
}
