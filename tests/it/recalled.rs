//! Flights that run for ever, of Airways without a time limit: what is edited or deleted does not wait for them.

use atc_tests::{AirwayBuilder, condition};
use serde_json::{Value, json};

use crate::world::{Kind, World, configmap, puppet, text};

/// A day: nobody waits for the end of this.
const FOR_EVER_MS: u64 = 24 * 3_600 * 1_000;

fn endless(kind: &str, flight: &str) -> AirwayBuilder {
    AirwayBuilder::new(kind, flight)
        .set("timeout", "-1s")
        .set("skipAdmissionWebhook", true)
}

/// Creates an instance and waits until it is taken up: its finalizer comes right before its first run.
async fn begin(kind: &Kind<'_>, name: &str, spec: Value) {
    kind.create(name, &spec).await.unwrap();
    kind.until(name, "is taken up", |object| {
        object["metadata"]["finalizers"].is_array()
    })
    .await;
}

fn sleeping() -> Value {
    json!({ "sleepMs": FOR_EVER_MS })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_whose_flight_never_ends_can_be_deleted() {
    let world = World::new().await;
    let kind = world.kind(endless("Sleepless", &puppet())).await;
    // What an earlier run made goes as well.
    kind.make(
        "a",
        json!({ "objects": [configmap("a", json!({ "k": "v" }))] }),
    )
    .await;
    kind.edit("a", sleeping()).await;
    begin(&kind, "b", sleeping()).await;
    for name in ["a", "b"] {
        kind.delete(name).await;
    }
    assert!(world.configmap("a").await.is_none());
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_whose_flight_loops_can_be_deleted() {
    let world = World::new().await;
    let text = r#"(module (memory (export "memory") 1) (func (export "_start") (loop br 0)))"#;
    let files = atc_tests::FileServer::start().unwrap();
    files.put("loop.wasm", wat::parse_str(text).unwrap());
    let kind = world
        .kind(endless("Looping", &files.url("loop.wasm")))
        .await;
    begin(&kind, "a", json!({})).await;
    kind.delete("a").await;
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_ends_a_flight_that_runs_for_long() {
    let world = World::new().await;
    let kind = world.kind(endless("Mended", &puppet())).await;
    begin(&kind, "a", sleeping()).await;
    let good = json!({ "objects": [configmap("a", json!({ "k": "v" }))] });
    kind.edit("a", good).await;
    kind.ready("a").await;
    world.has("a", json!({ "k": "v" })).await;
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_limit_that_comes_ends_a_flight_that_runs_for_long() {
    let world = World::new().await;
    let kind = world.kind(endless("Limited", &puppet())).await;
    begin(&kind, "a", sleeping()).await;
    kind.update(json!({ "timeout": "2s" })).await;
    kind.says("a", "Error", "2s").await;
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flight_that_takes_long_is_told_of() {
    let world = World::new().await;
    let kind = world.kind(endless("Told", &puppet())).await;
    begin(&kind, "a", sleeping()).await;
    let words = "the flight runs, or waits for its turn, since ";
    let said = kind.says("a", "InProgress", words).await;
    world.settle().await;
    let now = kind.instance("a").await;
    let ready = condition(&now, "Ready").unwrap();
    assert_eq!(text(&ready["message"]), said, "it is said once");
    kind.finish().await;
}
