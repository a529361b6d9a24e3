//! Edits of an instance's labels and annotations alone: which pass, whatever its flight does.

use atc_tests::AirwayBuilder;
use serde_json::{Value, json};

use crate::world::{World, configmap, puppet};

fn edit(map: &str, key: &str, value: &str) -> Value {
    json!({ "metadata": { (map): { (key): value } } })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_whose_flight_hangs_can_be_labelled_r111() {
    let world = World::new().await;
    let kind = world.kind(AirwayBuilder::new("Hung", &puppet())).await;
    let hanging = |note: &str| json!({ "note": note, "inner": { "sleepMs": 60_000 } });
    kind.make("a", hanging("n")).await;
    kind.update(json!({ "objectPath": ["spec", "inner"] }))
        .await;
    kind.says("a", "Error", "time limit").await;

    let path = kind.path("a");
    world.merge(&path, &edit("labels", "team", "x")).await;
    world.merge(&path, &edit("annotations", "note", "y")).await;
    // What it says is reviewed all the same.
    let said = kind.try_edit("a", hanging("m")).await.unwrap_err();
    let said = said.to_string();
    assert!(
        said.contains("denied the request") && said.contains("8.5s"),
        "{said}"
    );
    let objects = json!([configmap("mended", json!({ "k": "v" }))]);
    kind.edit("a", json!({ "inner": { "objects": objects } }))
        .await;
    world.has("mended", json!({ "k": "v" })).await;
    kind.ready("a").await;
    kind.finish().await;
}
