//! Modules of an atc, counted: how often they are downloaded and compiled.

use std::time::Duration;

use atc_tests::{AirwayBuilder, Atc, FileServer, eventually, is_ready};
use futures::future::join_all;
use serde_json::json;

use crate::solo::Solo;
use crate::world::{AIRWAYS, LIMIT, World, configmap, look, module, text};

/// Airways on one module.
const AIRWAYS_ON_ONE: usize = 100;
/// Modules of an atc that is started again.
const MODULES: usize = 50;
/// Instances with flights of their own, and how often each is edited.
const OVERRIDDEN: usize = 20;
const EDITS: usize = 8;

/// The flight that does as its instances say, and that no other test has: the same but for a section without meaning.
fn own_module(nonce: &str) -> Vec<u8> {
    let mut bytes = module();
    let content = [&[5][..], b"nonce", nonce.as_bytes()].concat();
    bytes.extend([0, u8::try_from(content.len()).unwrap()]);
    bytes.extend(content);
    bytes
}

/// A module that is compiled in no time, another one for each number.
fn small_module(number: usize) -> Vec<u8> {
    wat::parse_str(format!(
        r#"(module (memory (export "memory") 1) (func (export "_start") (drop (i32.const {number}))))"#
    ))
    .unwrap()
}

/// One of the numbers that an atc tells.
async fn number(atc: &Atc<'_>, name: &str) -> u64 {
    let (status, text) = atc.get("/metrics").await.unwrap();
    assert_eq!(status, 200, "{text}");
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    assert!(line.is_some(), "no {name} in:\n{text}");
    line.unwrap().parse().unwrap()
}

/// Creates Airways, and waits until all are ready.
async fn serve(world: &World, airways: &[AirwayBuilder]) {
    let api = &world.cluster.api;
    for some in airways.chunks(10) {
        let made = some
            .iter()
            .map(|airway| async { api.post(AIRWAYS, &airway.build()).await });
        for made in join_all(made).await {
            made.unwrap();
        }
    }
    ready(world, airways).await;
}

async fn ready(world: &World, airways: &[AirwayBuilder]) {
    eventually(Duration::from_mins(3), "all Airways are ready", || async {
        for airway in airways {
            let path = format!("{AIRWAYS}/{}", airway.name());
            if !world.get(&path).await?.as_ref().is_some_and(is_ready) {
                return Err(anyhow::anyhow!("{} is not", airway.name()));
            }
        }
        Ok(Some(()))
    })
    .await;
}

async fn remove(world: &World, airways: &[AirwayBuilder]) {
    let names = airways.iter().map(AirwayBuilder::name);
    remove_all(world, names.collect()).await;
}

/// Removes the Airways that other tests have left: their modules would be counted, too.
async fn remove_others(world: &World) {
    let others = world.cluster.api.list(AIRWAYS).await.unwrap();
    let names = others
        .iter()
        .map(|airway| text(&airway["metadata"]["name"]).to_owned());
    remove_all(world, names.collect()).await;
}

async fn remove_all(world: &World, names: Vec<String>) {
    let paths: Vec<String> = names
        .iter()
        .map(|name| format!("{AIRWAYS}/{name}"))
        .collect();
    for path in &paths {
        world.delete(path).await;
    }
    for path in &paths {
        world.gone(path).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_airways_on_one_module_are_one_download_and_one_compile() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let files = FileServer::start().unwrap();
    let url = files.put("one.wasm", own_module(&world.ns));
    let sum = atc_engine::artifact::sha256_hex(&own_module(&world.ns));
    let atc = solo.atc(&[]).await;
    remove_others(world).await;
    let before = (
        number(&atc, "atc_module_downloads_total").await,
        number(&atc, "atc_compiles_total").await,
    );
    let airways: Vec<AirwayBuilder> = (0..AIRWAYS_ON_ONE)
        .map(|nth| {
            let urls = json!({ "flight": url, "flightChecksum": sum });
            AirwayBuilder::new(&format!("Hundred{nth}"), &url).set("wasmUrls", urls)
        })
        .collect();
    serve(world, &airways).await;
    let after = (
        number(&atc, "atc_module_downloads_total").await,
        number(&atc, "atc_compiles_total").await,
    );
    assert_eq!(after, (before.0 + 1, before.1 + 1));
    assert_eq!(files.hits("one.wasm"), 1);
    remove(world, &airways).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_atc_that_is_started_again_compiles_nothing() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let files = FileServer::start().unwrap();
    let mut atc = solo.atc(&[]).await;
    let airways: Vec<AirwayBuilder> = (0..MODULES)
        .map(|nth| {
            AirwayBuilder::new(
                &format!("Again{nth}"),
                &files.put(&format!("{nth}.wasm"), small_module(nth)),
            )
        })
        .collect();
    serve(world, &airways).await;
    let begin = std::time::Instant::now();
    atc.restart().await.unwrap();
    eprintln!("ready again after {:?}", begin.elapsed());
    eventually(LIMIT, "all modules are there again", || async {
        let hits = number(&atc, "atc_compiled_disk_hits_total").await;
        Ok((hits >= MODULES as u64).then_some(()))
    })
    .await;
    eprintln!("all modules are there after {:?}", begin.elapsed());
    assert_eq!(number(&atc, "atc_compiles_total").await, 0);
    assert_eq!(number(&atc, "atc_compile_failures_total").await, 0);
    remove(world, &airways).await;
}

/// 200 instances each with a flight of its own, edited over and over: here a tenth of them.
#[tokio::test(flavor = "multi_thread")]
async fn flights_of_single_instances_are_fetched_and_compiled_once_r103_w33() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let files = FileServer::start().unwrap();
    let atc = solo.atc(&[]).await;
    let kind = world
        .kind(AirwayBuilder::new(
            "Single",
            &files.put("base.wasm", own_module(&world.ns)),
        ))
        .await;
    let compiles = number(&atc, "atc_compiles_total").await;
    let name = |nth: usize| format!("i{nth}");
    for nth in 0..OVERRIDDEN {
        let url = files.put(
            &format!("{nth}.wasm"),
            own_module(&format!("{}{nth}", world.ns)),
        );
        let mut body = kind.airway.instance(&name(nth), &json!({ "note": "0" }));
        body["metadata"]["annotations"] = json!({ "overrides.yoke.cd/flight": url });
        world.post(&kind.airway.path(&world.ns), &body).await;
    }
    let round = async |note: String| {
        let (kind, text) = (&kind, note.as_str());
        let edits = (0..OVERRIDDEN)
            .map(|nth| async move { kind.edit(&format!("i{nth}"), json!({ "note": text })).await });
        join_all(edits).await;
        for nth in 0..OVERRIDDEN {
            world.has(&name(nth), json!({ "note": note })).await;
        }
    };
    round("first".to_owned()).await;
    let memory = atc.memory_kib().unwrap();
    for edit in 1..=EDITS {
        round(edit.to_string()).await;
    }
    assert_eq!(
        number(&atc, "atc_compiles_total").await,
        compiles + OVERRIDDEN as u64
    );
    for nth in 0..OVERRIDDEN {
        // When the instance names it, and perhaps once more when that is longer ago than what counts as current.
        let hits = files.hits(&format!("{nth}.wasm"));
        assert!(hits <= 2 + EDITS as u64 / 4, "{hits} downloads");
    }
    // What a run takes is given back: all rounds together cost less than half a MiB an instance.
    let grown = atc.memory_kib().unwrap().saturating_sub(memory);
    assert!(grown < OVERRIDDEN as u64 * 512, "grown by {grown} KiB");
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_was_a_converter_first_looks_things_up_as_a_flight_w24() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let files = FileServer::start().unwrap();
    let url = files.put("both.wasm", own_module(&world.ns));
    let atc = solo.atc(&[]).await;
    let compiles = number(&atc, "atc_compiles_total").await;
    let urls =
        json!({ "flight": files.put("small.wasm", small_module(1_000_000)), "converter": url });
    let first = AirwayBuilder::new("Converted", "").set("wasmUrls", urls);
    let first = world.kind(first).await;
    eventually(LIMIT, "the converter is compiled", || async {
        Ok((number(&atc, "atc_compiles_total").await > compiles).then_some(()))
    })
    .await;
    let second = world
        .kind(AirwayBuilder::new("Looking", &url).access(&["*"]))
        .await;
    world.put_secret("source", "one").await;
    let spec = json!({
        "look": [look("x", "Secret", &world.ns, "source", "data.v")],
        "objects": [configmap("copy", json!({ "x": "${x}" }))],
    });
    second.make("c", spec).await;
    world.has("copy", json!({ "x": "b25l" })).await;
    second.finish().await;
    first.finish().await;
}

/// `docs/metrics.md` names what is told, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_those_that_the_documentation_names() {
    let world = World::new().await;
    let kind = world.basic().await;
    kind.make("counted", json!({ "note": "x" })).await;
    let atc = Atc::shared(&world.cluster).await.unwrap();
    let told = eventually(LIMIT, "the evaluation is counted", || async {
        let (_, text) = atc.get("/metrics").await?;
        let line = format!(
            r#"atc_evaluations_total{{airway="{}",result="ok"}}"#,
            kind.airway.name()
        );
        Ok(text.contains(&line).then_some(text))
    })
    .await;
    assert!(told.ends_with("# EOF\n"), "{told}");
    assert!(!told.contains("counted\""), "no instance is named");
    let mut names: Vec<String> = told
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(|line| match line.split_once(' ') {
            Some((name, "counter")) => format!("{name}_total"),
            Some((name, _)) => name.to_owned(),
            None => panic!("{line}"),
        })
        .collect();
    names.sort();
    let documented = include_str!("../../docs/metrics.md");
    let mut rows: Vec<&str> = documented
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    rows.sort_unstable();
    assert_eq!(rows, names);
}
