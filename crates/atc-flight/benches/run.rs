//! A warm run, with and without a look-up, and the first load of a compiled module.
//!
//! `ATC_BENCH_GO_FLIGHT` and `ATC_BENCH_RUST_FLIGHT` are paths of flights to measure beside the small one written here;
//! stdin is `ATC_BENCH_STDIN` (a path too, default: empty). A flight that looks something up gets what
//! `ATC_BENCH_LOOKUP` holds (default: a Secret).

use std::hint::black_box;
use std::sync::Arc;

use atc_api::{BoxFuture, HostCluster, HostFailure, LookupRequest, RestMappingRequest};
use atc_flight::{Invocation, Module, Runtime, RuntimeOptions};
use bytes::Bytes;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

const SECRET: &str = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"db","namespace":"default"},"data":{"url":"cG9zdGdyZXM="}}"#;
const MAPPING: &str =
    r#"{"Group":"","Version":"v1","Kind":"Secret","Resource":"secrets","Namespaced":true}"#;

struct Cluster(Vec<u8>);

impl HostCluster for Cluster {
    fn lookup(&self, _: LookupRequest) -> BoxFuture<'_, Result<Vec<u8>, HostFailure>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }

    fn rest_mapping(&self, _: RestMappingRequest) -> BoxFuture<'_, Result<Vec<u8>, HostFailure>> {
        Box::pin(std::future::ready(Ok(MAPPING.into())))
    }
}

/// Prints an empty list; with `lookup`, asks for something first.
fn small(lookup: bool) -> Bytes {
    let ask = if lookup {
        "(drop (call $lookup (i32.const 40) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))"
    } else {
        ""
    };
    let text = format!(
        r#"(module
        (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
        (import "host" "k8s_lookup" (func $lookup (param i32 i64 i64 i64 i64) (result i64)))
        (memory (export "memory") 17)
        (data (i32.const 0) "\08\00\00\00\02\00\00\00[]")
        (func (export "malloc") (param i32) (result i64)
            (i64.or (i64.const 0x1000_0000_0000) (i64.extend_i32_u (local.get 0))))
        (func (export "_start") {ask} (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))))"#
    );
    wat::parse_str(text).unwrap_or_default().into()
}

fn named(variable: &str) -> Option<Bytes> {
    let path = std::env::var_os(variable)?;
    match std::fs::read(&path) {
        Ok(bytes) => Some(bytes.into()),
        Err(error) => {
            eprintln!("{variable}={}: {error}", path.display());
            None
        }
    }
}

fn flights() -> Vec<(&'static str, Bytes)> {
    let mut flights = vec![
        ("small", small(false)),
        ("small with a look-up", small(true)),
    ];
    for (name, variable) in [
        ("Go", "ATC_BENCH_GO_FLIGHT"),
        ("Go with a look-up", "ATC_BENCH_GO_LOOKUP_FLIGHT"),
        ("Rust", "ATC_BENCH_RUST_FLIGHT"),
        ("Rust with a look-up", "ATC_BENCH_RUST_LOOKUP_FLIGHT"),
    ] {
        flights.extend(named(variable).map(|wasm| (name, wasm)));
    }
    flights
}

fn warm_run(criterion: &mut Criterion) {
    let executor = executor();
    let Ok(runtime) = Runtime::new(RuntimeOptions::default()) else {
        return;
    };
    let stdin = named("ATC_BENCH_STDIN").unwrap_or_default();
    let lookup = named("ATC_BENCH_LOOKUP").map_or_else(|| SECRET.as_bytes().to_vec(), Into::into);
    let cluster = Arc::new(Cluster(lookup));
    for (name, wasm) in flights() {
        let module: Module = match executor.block_on(runtime.module(&wasm)) {
            Ok(module) => module,
            Err(error) => {
                eprintln!("{name}: {error}");
                continue;
            }
        };
        let invocation = Invocation {
            stdin: stdin.clone(),
            args: vec!["bench".to_owned()],
            env: [
                ("YOKE_RELEASE", "bench"),
                ("YOKE_NAMESPACE", "default"),
                ("NAMESPACE", "default"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
            ..Invocation::default()
        };
        match executor.block_on(module.run(invocation.clone(), cluster.clone())) {
            Ok(outcome) => eprintln!(
                "{name}: exit {}, {} bytes, {}",
                outcome.exit,
                outcome.stdout.len(),
                outcome.stderr
            ),
            Err(error) => eprintln!("{name}: {error}"),
        }
        criterion.bench_function(&format!("warm run: {name}"), |bencher| {
            bencher.to_async(&executor).iter(|| async {
                // As the engine does it: on a task of its own.
                let (module, invocation, cluster) =
                    (module.clone(), invocation.clone(), cluster.clone());
                black_box(tokio::spawn(async move { module.run(invocation, cluster).await }).await)
            });
        });
    }
}

fn first_load(criterion: &mut Criterion) {
    let executor = executor();
    let Ok(dir) = tempfile::tempdir() else { return };
    let options = RuntimeOptions {
        cache_dir: Some(dir.path().to_owned()),
        ..RuntimeOptions::default()
    };
    for (name, wasm) in flights() {
        let fresh = || Runtime::new(options.clone()).ok();
        if let Some(runtime) = fresh() {
            drop(executor.block_on(runtime.module(&wasm)));
        }
        criterion.bench_function(&format!("first load, digest included: {name}"), |bencher| {
            bencher.to_async(&executor).iter_batched(
                fresh,
                |runtime| {
                    let wasm = wasm.clone();
                    async move {
                        let loaded = match &runtime {
                            Some(runtime) => runtime.module(&wasm).await.ok(),
                            None => None,
                        };
                        (runtime, loaded)
                    }
                },
                BatchSize::PerIteration,
            );
        });
    }
}

fn executor() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build()
        .unwrap_or_else(|error| {
            eprintln!("no threads: {error}");
            std::process::exit(1)
        })
}

criterion_group!(benches, warm_run, first_load);
criterion_main!(benches);
