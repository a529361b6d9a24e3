//! What the atc holds does not grow with what others store, nor with how often it has run.

use atc_tests::Atc;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use crate::{
    solo::Solo,
    world::{Kind, World, configmap, look},
};

const MIB: u64 = 1_024;
/// Secrets of others, and what each holds: 75 MiB, as the API server sends them 100 MiB.
const SECRETS: usize = 600;
const SIZE: usize = 128 << 10;

/// A ConfigMap with the value of the Secret `wanted`.
fn copier(world: &World) -> Value {
    json!({
        "look": [look("v", "Secret", &world.ns, "wanted", "data.v")],
        "objects": [configmap("copy", json!({ "v": "${v}" }))],
    })
}

/// Has each Secret of others written once.
async fn write_secrets(world: &World, round: usize) {
    let content = "x".repeat(SIZE);
    let writes = stream::iter(0..SECRETS).map(|at| {
        let name = format!("foreign-{at}");
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "labels": { "round": round.to_string() } },
            "stringData": { "content": content },
        });
        let path = world.core("secrets", &name);
        async move { world.cluster.api.apply(&path, &secret).await }
    });
    let written: Vec<Value> = writes.buffer_unordered(8).try_collect().await.unwrap();
    assert_eq!(written.len(), SECRETS);
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_others_are_not_held_r99() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    write_secrets(world, 0).await;
    let atc = solo.atc(&[]).await;
    let kind = solo.kind().await;
    kind.make("idle", json!({ "note": "1" })).await;
    world.put_secret("wanted", "one").await;
    let before = atc.memory_kib().unwrap();
    let grown = || atc.memory_kib().unwrap().saturating_sub(before) / MIB;
    // The watch of Secrets begins with a list of all of them, and then shows each change.
    kind.make("a", copier(world)).await;
    let listed = grown();
    write_secrets(world, 1).await;
    world.put_secret("wanted", "two").await;
    world.has("copy", json!({ "v": "dHdv" })).await;
    let (watched, bodies) = (grown(), (SECRETS * SIZE) >> 20);
    assert!(
        listed < 30 && watched < 30,
        "{listed} MiB, then {watched} MiB, of {bodies} MiB"
    );
    for name in ["a", "idle"] {
        kind.delete(name).await;
    }
}

/// What an atc has of what may leak: memory in KiB, open files and connections, threads.
fn held(atc: &Atc<'_>) -> (u64, usize, usize) {
    let id = atc.process().id();
    let count = |what: &str| {
        std::fs::read_dir(format!("/proc/{id}/{what}"))
            .unwrap()
            .count()
    };
    (atc.memory_kib().unwrap(), count("fd"), count("task"))
}

/// Evaluates each of these instances so many times, each time with another outcome.
async fn evaluate(kind: &Kind<'_>, names: &[&str], from: usize, times: usize) {
    let rounds = names.iter().map(|name| async move {
        for at in from..from + times {
            let spec = json!({ "spec": { "note": at.to_string() } });
            kind.world.merge(&kind.path(name), &spec).await;
            kind.world
                .has(name, json!({ "note": at.to_string() }))
                .await;
        }
    });
    futures::future::join_all(rounds).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_evaluations_leave_nothing_behind_r101() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let atc = solo.atc(&[]).await;
    let kind = solo.kind().await;
    let names = ["a", "b", "c", "d"];
    for name in names {
        kind.make(name, json!({})).await;
    }
    evaluate(&kind, &names, 0, 100).await;
    let (memory, files, threads) = held(&atc);
    evaluate(&kind, &names, 100, 400).await;
    let after = held(&atc);
    // 1,600 evaluations later: 10 % and what the allocator may keep.
    assert!(
        after.0 <= memory + memory / 10 + 4 * MIB,
        "{memory} KiB, then {} KiB",
        after.0
    );
    assert!(
        after.1 <= files + 16,
        "{files} open files, then {}",
        after.1
    );
    assert!(
        after.2 <= threads + 16,
        "{threads} threads, then {}",
        after.2
    );
    world.has_revisions(2 * names.len()).await;
    for name in names {
        kind.delete(name).await;
    }
}
