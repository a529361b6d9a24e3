//! Airways from their creation to their deletion: what is made, refused, followed and removed.

use std::time::Duration;

use atc_tests::{AirwayBuilder, FileServer, condition, eventually, is_ready, never};
use serde_json::{Value, json};

use crate::world::{
    AIRWAYS, CRDS, HOOKS, LIMIT, World, configmap, deployment, module, puppet, text,
};
use crate::writers::asked;

/// How long a run takes during which the Airway is touched, in milliseconds.
const RUN_MS: u64 = 4_000;

#[tokio::test(flavor = "multi_thread")]
async fn deletion_takes_everything_with_it_r39() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Dangler", &puppet()).set("skipAdmissionWebhook", true);
    let kind = world.kind(airway).await;
    let names: Vec<String> = (0..8).map(|number| format!("d{number}")).collect();
    for name in &names {
        kind.create(name, &json!({})).await.unwrap();
    }
    for name in &names {
        kind.ready(name).await;
    }
    for name in names.iter().step_by(3) {
        kind.edit(name, json!({ "fail": "no way" })).await;
    }
    for name in names.iter().step_by(3) {
        kind.says(name, "Error", "no way").await;
    }
    assert_eq!(world.configmaps(&world.ns).await.len(), names.len());
    let name = kind.airway.name();
    kind.remove().await;
    for path in [format!("{CRDS}/{name}"), format!("{HOOKS}/{name}")] {
        assert!(world.get(&path).await.unwrap().is_none(), "{path}");
    }
    assert!(world.configmaps(&world.ns).await.is_empty());
    assert!(world.revisions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_deletion_holds_nobody_up_r47() {
    let world = World::new().await;
    let kind = world.kind(AirwayBuilder::new("Sticky", &puppet())).await;
    kind.make("a", json!({})).await;
    let finalizers =
        json!({ "metadata": { "finalizers": ["yoke.cd/mayday.flight", "tests.atc.dev/hold"] } });
    world.merge(&kind.path("a"), &finalizers).await;
    world.delete(&kind.airway_path()).await;
    kind.until("a", "waits for a foreign finalizer", |object| {
        object["metadata"]["finalizers"] == json!(["tests.atc.dev/hold"])
    })
    .await;
    eventually(LIMIT, "the Airway says that it goes", || async {
        let airway = world.get(&kind.airway_path()).await?.unwrap_or_default();
        let reason = condition(&airway, "Ready").map(|ready| ready["reason"].clone());
        Ok((reason == Some("Terminating".into())).then_some(()))
    })
    .await;
    // Another one comes to be, and goes, meanwhile.
    let nimble = world.kind(AirwayBuilder::new("Nimble", &puppet())).await;
    nimble.make("b", json!({})).await;
    nimble.finish().await;
    assert!(world.get(&kind.airway_path()).await.unwrap().is_some());
    world
        .merge(
            &kind.path("a"),
            &json!({ "metadata": { "finalizers": null } }),
        )
        .await;
    kind.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_airway_is_refused_with_words() {
    let world = World::new().await;
    let files = FileServer::start().unwrap();
    files.put("puppet.wasm", module());
    let good = files.url("puppet.wasm");
    let of = |path: &str, value: Value| {
        let mut airway = AirwayBuilder::new("Refused", &good).build();
        *airway.pointer_mut(path).unwrap() = value;
        airway
    };
    let ours = |plural: &str| {
        let mut airway = of("/metadata/name", json!(format!("{plural}.yoke.cd")));
        airway["spec"]["template"]["group"] = "yoke.cd".into();
        airway["spec"]["template"]["names"]["plural"] = plural.into();
        airway
    };
    let status = "/spec/template/versions/0/schema/openAPIV3Schema/properties/status";
    let version = "/spec/template/versions/0";
    // What is wrong; whether the schema refuses it already, before we are asked; the words.
    let table: Vec<(Value, bool, &str)> = vec![
        (of("/spec/mode", json!("loud")), true, "mode"),
        (of("/spec/wasmUrls", json!({})), true, "wasmUrls.flight"),
        (
            AirwayBuilder::new("Refused", &good)
                .set("maxMemoryMib", -1)
                .build(),
            true,
            "maxMemoryMib",
        ),
        (
            of("/metadata/name", json!("others.tests.atc.dev")),
            false,
            "must be \"refuseds.tests.atc.dev\"",
        ),
        (ours("airways"), false, "something of the atc's own"),
        (ours("flight-accounts"), false, "something of the atc's own"),
        (
            of(&format!("{version}/storage"), json!(false)),
            false,
            "0 versions with storage: true",
        ),
        (
            of(status, json!({ "type": "string" })),
            false,
            "properties.status.type is \"string\" but must be \"object\"",
        ),
        (
            of(
                status,
                json!({ "type": "object", "properties": { "conditions": { "type": "object" } } }),
            ),
            false,
            "conditions.type must be \"array\"",
        ),
        (
            of(
                &format!("{version}/schema/openAPIV3Schema/properties/spec"),
                json!({ "type": "nonsense" }),
            ),
            false,
            "nonsense",
        ),
        (
            of("/spec/wasmUrls/flight", json!(files.url("none.wasm"))),
            false,
            "404",
        ),
        (
            of(
                "/spec/wasmUrls/flight",
                json!(files.put("text.wasm", "<html>")),
            ),
            false,
            "text.wasm",
        ),
        (
            of(
                "/spec/wasmUrls",
                json!({ "flight": good, "flightChecksum": "ab".repeat(32) }),
            ),
            false,
            &"ab".repeat(32),
        ),
    ]
    .into_iter()
    .map(|(airway, schema, words)| (airway, schema, String::from(words).leak() as &str))
    .collect();
    for (airway, schema, words) in table {
        let error = world.cluster.api.post(AIRWAYS, &airway).await.unwrap_err();
        let error = error.to_string();
        assert!(error.contains(words), "{words:?} in {error}");
        assert_eq!(
            error.contains("airways.yoke.cd\" denied"),
            !schema,
            "{error}"
        );
        let path = format!("{AIRWAYS}/{}", text(&airway["metadata"]["name"]));
        assert!(world.get(&path).await.unwrap().is_none(), "{words}");
    }
    let crds = world.cluster.api.list(CRDS).await.unwrap();
    assert!(
        !crds
            .iter()
            .any(|crd| text(&crd["metadata"]["name"]).starts_with("refused"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_reaches_all_instances_and_a_touch_none_r19_w15() {
    let world = World::new().await;
    let kind = world.kind(AirwayBuilder::new("Turned", &puppet())).await;
    let objects = |name: &str| json!([configmap(name, json!({ "from": "spec" }))]);
    let inner = |name: &str| json!({ "objects": [configmap(name, json!({ "from": "inner" }))] });
    let names = ["a", "b", "c"];
    for name in names {
        kind.make(
            name,
            json!({ "objects": objects(name), "inner": inner(name) }),
        )
        .await;
    }
    world.settle().await;
    let runs = |world: &World| names.map(|name| world.runs(&kind, name));
    let before = runs(&world);
    let touch = json!({ "metadata": { "annotations": { "touched": "yes" } } });
    world.merge(&kind.airway_path(), &touch).await;
    kind.settled().await;
    world.settle().await;
    assert_eq!(runs(&world), before);
    kind.update(json!({ "objectPath": ["spec", "inner"] }))
        .await;
    for name in names {
        world.has(name, json!({ "from": "inner" })).await;
    }
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_touch_during_a_run_makes_no_other_r19() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Tapped", &puppet()).set("skipAdmissionWebhook", true);
    let kind = world.kind(airway).await;
    let spec = json!({ "sleepMs": RUN_MS, "objects": [] });
    kind.create("a", &spec).await.unwrap();
    // Its finalizer comes right before its first run.
    kind.until("a", "is taken up", |object| {
        object["metadata"]["finalizers"].is_array()
    })
    .await;
    let touch = json!({ "metadata": { "annotations": { "touched": "yes" } } });
    world.merge(&kind.airway_path(), &touch).await;
    assert_eq!(world.runs(&kind, "a"), 0, "it runs still");
    kind.ready("a").await;
    never(
        Duration::from_millis(2 * RUN_MS),
        "it ran again",
        || async {
            let runs = world.runs(&kind, "a");
            Ok((runs > 1).then_some(runs))
        },
    )
    .await;
    assert_eq!(world.runs(&kind, "a"), 1);
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_writes_are_not_reviewed_r111_w10() {
    let world = World::new().await;
    let kind = world.kind(AirwayBuilder::new("Grown", &puppet())).await;
    let spec = json!({ "inner": { "fail": "fails now" }, "objects": [deployment("d", 1)] });
    kind.make("a", spec).await;
    world.settle().await;
    // The creation; not our finalizer, our owner reference, our status.
    let reviews = asked(&world).await.get(&kind.airway.name()).copied();
    assert_eq!(reviews, Some(1.0));
    kind.update(json!({ "objectPath": ["spec", "inner"] }))
        .await;
    kind.says("a", "Error", "fails now").await;
    let error = kind
        .try_edit("a", json!({ "inner": { "fail": "refused" } }))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("refused") && error.contains(&kind.airway.name()),
        "{error}"
    );
    let path = kind.path("a");
    let labels =
        json!({ "metadata": { "labels": { "team": "x" }, "annotations": { "note": "y" } } });
    world.merge(&path, &labels).await;
    world
        .merge(
            &format!("{path}/status"),
            &json!({ "status": { "seen": true } }),
        )
        .await;
    let finalizers =
        json!({ "metadata": { "finalizers": ["yoke.cd/mayday.flight", "tests.atc.dev/x"] } });
    world.merge(&path, &finalizers).await;
    let finalizers = json!({ "metadata": { "finalizers": ["yoke.cd/mayday.flight"] } });
    world.merge(&path, &finalizers).await;
    kind.delete("a").await;
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn airways_that_come_and_go_all_at_once_end_as_they_should_w14() {
    let world = World::new().await;
    let (world, api) = (&world, &world.cluster.api);
    let run = |number: usize| async move {
        let airway = AirwayBuilder::new(&format!("Storm{number}"), &puppet());
        let path = format!("{AIRWAYS}/{}", airway.name());
        // Gone again before it has begun, as soon as it has, and when it serves.
        for round in 0..3 {
            eventually(LIMIT, "the next one is taken", || async {
                api.post(AIRWAYS, &airway.build()).await.map(Some)
            })
            .await;
            if round > 0 {
                eventually(LIMIT, "it is as far as that", || async {
                    let found = world.get(&path).await?.unwrap_or_default();
                    let begun = found["metadata"]["finalizers"].is_array();
                    Ok((if round == 1 { begun } else { is_ready(&found) }).then_some(()))
                })
                .await;
            }
            world.delete(&path).await;
            world.gone(&path).await;
        }
        let kind = world.kind(airway).await;
        kind.make(&format!("storm{number}"), json!({ "note": "stays" }))
            .await;
        if number % 2 == 1 {
            kind.remove().await;
            return None;
        }
        Some(kind)
    };
    let kinds = futures::future::join_all((0..6).map(run)).await;
    assert_eq!(
        world.configmaps(&world.ns).await,
        ["storm0", "storm2", "storm4"]
    );
    for (number, kind) in kinds.into_iter().enumerate() {
        let airway = AirwayBuilder::new(&format!("Storm{number}"), &puppet());
        for path in [CRDS, HOOKS, AIRWAYS] {
            let found = world
                .get(&format!("{path}/{}", airway.name()))
                .await
                .unwrap();
            assert_eq!(found.is_some(), kind.is_some(), "{path} of {number}");
        }
        let Some(kind) = kind else { continue };
        let name = format!("storm{number}");
        kind.edit(&name, json!({ "note": "served on" })).await;
        world.has(&name, json!({ "note": "served on" })).await;
        kind.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_airway_takes_what_one_of_its_name_left() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Heir", &puppet());
    let kind = world.kind(airway.clone()).await;
    kind.make("a", json!({})).await;
    let finalizers = |list: Value| json!({ "metadata": { "finalizers": list } });
    let held = json!(["yoke.cd/mayday.flight", "tests.atc.dev/hold"]);
    world.merge(&kind.path("a"), &finalizers(held)).await;
    world.delete(&kind.airway_path()).await;
    kind.until("a", "waits for a foreign finalizer", |object| {
        object["metadata"]["finalizers"] == json!(["tests.atc.dev/hold"])
    })
    .await;
    // Somebody loses patience with the Airway: its CRD and an instance stay behind, on their way out.
    let path = kind.airway_path();
    world.merge(&path, &finalizers(Value::Null)).await;
    world.gone(&path).await;
    let heir = airway.build();
    world.post(AIRWAYS, &heir).await;
    world.merge(&kind.path("a"), &finalizers(Value::Null)).await;
    kind.gone("a").await;
    eventually(LIMIT, "the kind is served anew", || async {
        match kind.create("b", &json!({ "note": "new" })).await {
            Ok(_) => Ok(Some(())),
            Err(error) => Err(error),
        }
    })
    .await;
    kind.ready("b").await;
    kind.finish().await;
}
