//! Two instances that print the same object, and one that is at odds with itself: what they say, and how often they run.

use std::time::Duration;

use atc_tests::{condition, eventually, is_ready, never};
use serde_json::{Value, json};

use crate::world::{Kind, LIMIT, World, configmap, look, text};

/// How long nothing may happen where nothing shall.
const QUIET: Duration = Duration::from_secs(3);
/// What an instance says that is evaluated at a pace of its own.
const PACED: &str = "all resources are ready; evaluated at most every 30 s";

fn says(object: &Value, wanted: impl Fn(&str) -> bool) -> bool {
    is_ready(object)
        && condition(object, "Ready").is_some_and(|ready| wanted(text(&ready["message"])))
}

fn is_paced(object: &Value) -> bool {
    says(object, |message| message.starts_with(PACED))
}

fn is_settled(object: &Value) -> bool {
    says(object, |message| message == "all resources are ready")
}

fn prints(name: &str, value: &str) -> Value {
    json!({ "objects": [configmap(name, json!({ "k": value }))] })
}

/// In which versions the two are stored.
async fn versions(kind: &Kind<'_>) -> [Value; 2] {
    let both = [kind.instance("a").await, kind.instance("b").await];
    both.map(|one| one["metadata"]["resourceVersion"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_has_taken_is_said_until_it_is_back() {
    let world = World::new().await;
    let kind = world.basic().await;
    kind.make("a", prints("x", "a")).await;
    kind.make("b", prints("x", "b")).await;
    let taken_by = |name: &str| {
        let owner = format!("{}/{}", world.ns, kind.release(name));
        format!("0 of 1 ready: ConfigMap/x: it was taken by release \"{owner}\"")
    };
    kind.says("a", "InProgress", &taken_by("b")).await;
    let before = versions(&kind).await;
    never(QUIET, "a status is written again", || async {
        let now = versions(&kind).await;
        Ok((now != before).then_some(now))
    })
    .await;
    assert!(is_settled(&kind.instance("b").await));
    // An evaluation takes it back.
    let mut spec = prints("x", "a");
    spec["other"] = 1.into();
    kind.edit("a", spec).await;
    assert!(is_settled(&kind.ready("a").await));
    kind.says("b", "InProgress", &taken_by("a")).await;
    // What is gone is nobody's.
    world.delete(&world.core("configmaps", "x")).await;
    for name in ["a", "b"] {
        let words = "0 of 1 ready: ConfigMap/x: it is not there";
        kind.says(name, "InProgress", words).await;
    }
    for name in ["a", "b"] {
        kind.delete(name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flight_at_odds_with_itself_slows_down_and_says_so_r09() {
    let world = World::new().await;
    let kind = world.live().await;
    let mut own = look("n", "ConfigMap", &world.ns, "dice", "data.now");
    own["default"] = "0".into();
    let spec = json!({ "look": [own], "objects": [configmap("dice", json!({ "now": "${now}" }))] });
    kind.create("dice", &spec).await.unwrap();
    let before = kind.until("dice", "tells its pace", is_paced).await;
    let runs = world.runs(&kind, "dice");
    assert!(runs <= 20, "{runs} runs until it slowed down");
    // It goes on, and the status is not written for it.
    eventually(LIMIT, "another run", || async {
        Ok((world.runs(&kind, "dice") > runs).then_some(()))
    })
    .await;
    let now = kind.instance("dice").await;
    assert_eq!(
        now["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    // An edit does not wait, and ends it.
    kind.edit("dice", prints("dice", "1")).await;
    kind.until("dice", "is settled", is_settled).await;
    world.has("dice", json!({ "k": "1" })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_print_the_same_slow_down_until_one_gives_in_r09() {
    let world = World::new().await;
    let kind = world.live().await;
    kind.create("a", &prints("x", "a")).await.unwrap();
    kind.create("b", &prints("x", "b")).await.unwrap();
    for name in ["a", "b"] {
        kind.until(name, "tells its pace", is_paced).await;
    }
    kind.edit("b", prints("y", "b")).await;
    kind.until("b", "is settled", is_settled).await;
    // Nobody tells the other that it is over.
    kind.until("a", "is settled", is_settled).await;
    world.has("x", json!({ "k": "a" })).await;
    world.has("y", json!({ "k": "b" })).await;
}
