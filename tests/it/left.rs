//! What is left over: records and children of instances that went while nobody was there, records that somebody deleted.

use anyhow::anyhow;
use atc_tests::{AirwayBuilder, Yoke, eventually};
use serde_json::{Value, json};

use crate::{
    flights::{Flights, flight},
    solo::{Solo, plane},
    world::{LIMIT, World, configmap, puppet, text},
};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// An object without a namespace.
fn role(name: &str) -> Value {
    json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name }, "rules": [] })
}

/// Deletes what nobody is there to remove, and takes all finalizers off it.
pub(crate) async fn force_away(world: &World, path: &str) {
    world.delete(path).await;
    let none = json!({ "metadata": { "finalizers": null } });
    world.merge(path, &none).await;
    world.gone(path).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_release_of_an_instance_that_was_forced_away_is_removed_r41() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let mut atc = solo.atc(&[]).await;
    let kind = solo.kind().await;
    let name = |what: &str| format!("{}-{what}", world.ns);
    for which in ["forced", "kept"] {
        let objects = json!([configmap(which, json!({})), role(&name(which))]);
        kind.make(which, json!({ "objects": objects })).await;
    }
    atc.kill();
    force_away(world, &kind.path("forced")).await;
    // Somebody else's release that is called like one of ours.
    let other = kind.release("other");
    let yoke = Yoke::new(plane()).unwrap();
    let input = configmap("others", json!({ "k": "v" })).to_string();
    let made = yoke
        .with_input(
            &["takeoff", "-namespace", &world.ns, &other],
            input.as_str(),
        )
        .await
        .unwrap();
    assert_eq!(made.code, 0, "{made:?}");
    assert_eq!(world.revisions().await.len(), 3);

    atc.restart().await.unwrap();
    world.gone(&format!("{ROLES}/{}", name("forced"))).await;
    world.gone(&world.core("configmaps", "forced")).await;
    world.has_revisions(2).await;
    eventually(LIMIT, "the other one is passed over", || async {
        let log = atc.log();
        let left_alone = |line: &Value| {
            line["release"] == other.as_str()
                && line["message"]
                    .as_str()
                    .is_some_and(|text| text.contains("left alone"))
        };
        Ok(log.iter().any(left_alone).then_some(()))
    })
    .await;
    world.has("others", json!({ "k": "v" })).await;
    kind.ready("kept").await;
    let kept = format!("{ROLES}/{}", name("kept"));
    assert!(world.get(&kept).await.unwrap().is_some());
    kind.delete("kept").await;
    world.gone(&kept).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_deleted_can_be_let_go_while_no_atc_runs_r105_w12() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let mut atc = solo.atc(&[]).await;
    let kind = world.kind(AirwayBuilder::new("Freed", &puppet())).await;
    for name in ["forced", "kept"] {
        kind.make(name, json!({ "note": name })).await;
    }
    let other = world
        .kind(AirwayBuilder::new("Stripped", &puppet()))
        .await
        .airway_path();
    let flights = Flights(world);
    let body = flight("flown", &json!({ "note": "f" }), &json!({}));
    flights.create(&body).await.unwrap();
    flights.ready("flown").await;
    atc.kill();

    // What lives is not written to unseen, not even its finalizers.
    let finalizers = json!({ "metadata": { "finalizers": null } });
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    let living = [kind.path("kept"), flights.path("flown"), other.clone()];
    for path in &living {
        for edit in [&finalizers, &label] {
            let said = world.cluster.api.merge(path, edit).await.unwrap_err();
            assert!(
                said.to_string().contains("failed calling webhook"),
                "{said}"
            );
        }
    }
    for path in [kind.path("forced"), flights.path("flown"), other] {
        force_away(world, &path).await;
    }

    atc.restart().await.unwrap();
    world.gone(&world.core("configmaps", "forced")).await;
    world.gone(&world.core("configmaps", "flown")).await;
    eventually(
        LIMIT,
        "the record of the other instance is left",
        || async {
            let left = world.revisions().await.len();
            Ok((left == 1).then_some(()))
        },
    )
    .await;
    world.has("kept", json!({ "note": "kept" })).await;
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_is_deleted_meanwhile_leaves_nothing_r41() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let mut atc = solo.atc(&[]).await;
    let kind = solo.kind().await;
    let ns = world.namespace().await;
    let (mine, others) = (format!("{ROLES}/{ns}-mine"), format!("{ROLES}/{ns}-others"));
    let path = kind.airway.path(&ns);
    let objects = json!([configmap("c", json!({})), role(&format!("{ns}-mine"))]);
    let body = kind.airway.instance("a", &json!({ "objects": objects }));
    world.post(&path, &body).await;
    eventually(LIMIT, "all is there", || async {
        let found = world.get(&format!("{path}/a")).await?.unwrap_or_default();
        let ready = atc_tests::is_ready(&found) && world.get(&mine).await?.is_some();
        Ok(ready.then_some(()))
    })
    .await;
    kind.make("b", json!({ "objects": [role(&format!("{ns}-others"))] }))
        .await;
    atc.kill();

    world.delete(&format!("/api/v1/namespaces/{ns}")).await;
    let secrets = format!("/api/v1/namespaces/{ns}/secrets");
    eventually(LIMIT, "the record is gone with it", || async {
        let secrets = world.cluster.api.list(&secrets).await?;
        let waits = world.get(&format!("{path}/a")).await?.unwrap_or_default();
        let waits = waits["metadata"]["deletionTimestamp"].is_string();
        if secrets.is_empty() && waits {
            return Ok(Some(()));
        }
        Err(anyhow!("{} Secrets", secrets.len()))
    })
    .await;
    assert!(world.get(&mine).await.unwrap().is_some());
    atc.restart().await.unwrap();
    world.gone(&format!("{path}/a")).await;
    assert_eq!(world.get(&mine).await.unwrap(), None);
    world.gone(&format!("/api/v1/namespaces/{ns}")).await;
    assert!(world.get(&others).await.unwrap().is_some());
    kind.delete("b").await;
    world.gone(&others).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_was_deleted_is_written_again() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Recorded", &puppet())
        .dynamic()
        .set("fixDriftInterval", "1s");
    let kind = world.kind(airway).await;
    kind.make("a", json!({ "note": "1" })).await;
    let before = world.revision_names().await;
    assert_eq!(before.len(), 1);
    world.delete(&world.core("secrets", &before[0])).await;
    let after = eventually(LIMIT, "there is a record again", || async {
        let names = world.revision_names().await;
        Ok((names.len() == 1 && names != before).then_some(names))
    })
    .await;
    let record = world.revisions().await.remove(0);
    let release = &record["metadata"]["annotations"]["internal.yoke/release-name"];
    assert_eq!(text(release), kind.release("a"));
    // Evaluated again and again, it stays the one.
    let mut audit = world.cluster.audit();
    let runs = world.runs(&kind, "a");
    eventually(LIMIT, "it was evaluated three times more", || async {
        Ok((world.runs(&kind, "a") >= runs + 3).then_some(()))
    })
    .await;
    let calls = audit.calls().await.unwrap();
    let written: Vec<_> = calls
        .iter()
        .filter(|call| world.is_mine(call) && call.writes())
        .collect();
    assert!(written.is_empty(), "{written:?}");
    assert_eq!(world.revision_names().await, after);
    kind.delete("a").await;
    assert!(world.revisions().await.is_empty());
    kind.finish().await;
}

/// Nothing is removed while it is not known what there is; the status says what to do.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_is_named_when_its_instance_is_deleted() {
    let world = World::new().await;
    let kind = world.basic().await;
    let breaks = [
        // "garbage" in base64.
        json!({ "data": { "resources": "Z2FyYmFnZQ==" } }),
        json!({ "data": null }),
        json!({ "metadata": { "annotations": { "internal.yoke/created-at": "yesterday" } } }),
    ];
    for (at, edit) in breaks.iter().enumerate() {
        let name = format!("r{at}");
        let objects = json!([configmap(&name, json!({ "k": "v" }))]);
        kind.make(&name, json!({ "objects": objects })).await;
        let names = world.revision_names().await;
        assert_eq!(names.len(), 1, "{names:?}");
        let secret = world.core("secrets", &names[0]);
        world.merge(&secret, edit).await;
        world.delete(&kind.path(&name)).await;
        let words = format!("mend Secret {}/{}, or delete it", world.ns, names[0]);
        kind.says(&name, "Terminating", &words).await;
        world.has(&name, json!({ "k": "v" })).await;
        world.delete(&secret).await;
        kind.gone(&name).await;
        // It has the instance as its owner.
        world.gone(&world.core("configmaps", &name)).await;
    }
}
