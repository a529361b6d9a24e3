//! Edits of an instance's labels and annotations alone: which pass, whatever its flight does.

use atc_tests::{AirwayBuilder, eventually};
use serde_json::{Value, json};

use crate::world::{LIMIT, World, configmap, puppet};

fn edit(map: &str, key: &str, value: &str) -> Value {
    json!({ "metadata": { (map): { (key): value } } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_breaks_a_good_instance_is_refused_r111() {
    let world = World::new().await;
    let kind = world.basic().await;
    let spec = json!({
        "objects": [configmap("of-${labels.team}", json!({ "note": "${annotations.note}" }))],
        "exitIf": { "labels.team": "broken", "annotations.note": "too bad" },
    });
    let mut body = kind.airway.instance("labelled", &spec);
    body["metadata"]["labels"] = json!({ "team": "blue" });
    body["metadata"]["annotations"] = json!({ "note": "first" });
    world.post(&kind.airway.path(&world.ns), &body).await;
    let made = kind.ready("labelled").await;
    world.has("of-blue", json!({ "note": "first" })).await;

    // Its flight fails by it, or prints what nobody takes.
    let path = kind.path("labelled");
    for (bad, words) in [
        (edit("labels", "team", "broken"), "labels.team is broken"),
        (edit("labels", "team", "No_Name"), "of-no_name"),
        (
            edit("annotations", "note", "too bad"),
            "annotations.note is too bad",
        ),
    ] {
        let said = world.cluster.api.merge(&path, &bad).await.unwrap_err();
        let said = said.to_string().to_lowercase();
        assert!(said.contains(words), "{said}");
        assert!(said.contains(&kind.airway.name()), "{said}");
    }
    let kept = kind.instance("labelled").await;
    for map in ["labels", "annotations"] {
        assert_eq!(kept["metadata"][map], made["metadata"][map]);
    }

    world.merge(&path, &edit("labels", "team", "red")).await;
    world.has("of-red", json!({ "note": "first" })).await;
    world
        .merge(&path, &edit("annotations", "note", "last"))
        .await;
    world.has("of-red", json!({ "note": "last" })).await;
    world.gone(&world.core("configmaps", "of-blue")).await;
    kind.delete("labelled").await;
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
    for edit in [
        edit("labels", "team", "x"),
        edit("annotations", "note", "y"),
    ] {
        // On a busy machine the API server's own limit, a second later, may come first.
        eventually(LIMIT, "the edit is taken", || async {
            world.cluster.api.merge(&path, &edit).await.map(Some)
        })
        .await;
    }
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
