//! For tests: small modules as text, a runtime for all of them, a cluster with one answer.

use std::cell::Cell;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use atc_api::{BoxFuture, HostCluster, HostFailure, LookupRequest, RestMappingRequest};
use bytes::Bytes;

use crate::{Bounds, Compiler, FlightError, Invocation, Module, Outcome, Runtime, RuntimeOptions};

thread_local! {
    static COMPILER: Cell<Compiler> = const { Cell::new(Compiler::Fast) };
}

/// The runtime of all tests that need none of their own.
pub(crate) fn runtime() -> &'static Runtime {
    static FAST: OnceLock<Runtime> = OnceLock::new();
    static QUICK: OnceLock<Runtime> = OnceLock::new();
    let compiler = COMPILER.get();
    let runtime = match compiler {
        Compiler::Fast => &FAST,
        Compiler::Quick => &QUICK,
    };
    runtime.get_or_init(|| {
        Runtime::new(RuntimeOptions {
            compiler,
            ..RuntimeOptions::default()
        })
        .unwrap()
    })
}

/// Runs tests on code of the other compiler.
pub(crate) fn in_a_hurry(tests: &[fn()]) {
    COMPILER.set(Compiler::Quick);
    for test in tests {
        test();
    }
}

/// A module whose `_start` is `body`. In it `$say` and `$cry` (address, length) write to stdout and stderr; both host
/// functions and some of WASI are there under their names with a `$`. Addresses below 64 are scratch. At 64 lies `[]`.
pub(crate) fn flight(body: &str, items: &str) -> Bytes {
    with_memory("1", body, items)
}

pub(crate) fn with_memory(memory: &str, body: &str, items: &str) -> Bytes {
    let text = format!(
        r#"(module
        (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_prestat_get" (func $fd_prestat_get (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "path_open"
            (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "sock_accept" (func $sock_accept (param i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes_get (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "environ_get" (func $environ_get (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
        (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
        (import "host" "k8s_lookup" (func $lookup (param i32 i64 i64 i64 i64) (result i64)))
        (import "host" "k8s_rest_mapping" (func $mapping (param i32 i64 i64) (result i64)))
        (memory (export "memory") {memory})
        (data (i32.const 64) "[]\n")
        (func $write (param $fd i32) (param $at i32) (param $length i32)
            (i32.store (i32.const 8) (local.get $at)) (i32.store (i32.const 12) (local.get $length))
            (drop (call $fd_write (local.get $fd) (i32.const 8) (i32.const 1) (i32.const 16))))
        (func $say (param i32 i32) (call $write (i32.const 1) (local.get 0) (local.get 1)))
        (func $cry (param i32 i32) (call $write (i32.const 2) (local.get 0) (local.get 1)))
        {items}
        (func $main (export "_start") (local $b i64) (local $n i32) {body}))"#
    );
    assemble(&text)
}

pub(crate) fn assemble(text: &str) -> Bytes {
    wat::parse_str(text)
        .unwrap_or_else(|error| panic!("{error}"))
        .into()
}

/// Prints `[]`.
pub(crate) const SAY: &str = "(call $say (i32.const 64) (i32.const 3))";

/// A `malloc` that takes one block after the other from 4096 on.
pub(crate) const MALLOC: &str = r#"(global $next (mut i32) (i32.const 4096))
    (func (export "malloc") (param i32) (result i64) (local $at i32)
        (local.set $at (global.get $next)) (global.set $next (i32.add (global.get $next) (local.get 0)))
        (i64.or (i64.shl (i64.extend_i32_u (local.get $at)) (i64.const 32)) (i64.extend_i32_u (local.get 0))))"#;

/// An address and a length as one WAT constant.
pub(crate) fn packed(address: u64, length: u64) -> String {
    format!("(i64.const {:#x})", address << 32 | length)
}

/// Looks `name` (at 100) of a `ConfigMap` (104) `v1` (113) up, its namespace empty at an odd address, the state at 40;
/// then prints the answer.
pub(crate) fn look() -> String {
    let [name, namespace, kind, version] = [
        packed(100, 4),
        packed(0x55, 0),
        packed(104, 9),
        packed(113, 2),
    ];
    format!(
        "(local.set $b (call $lookup (i32.const 40) {name} {namespace} {kind} {version}))
        (call $say (i32.wrap_i64 (i64.shr_u (local.get $b) (i64.const 32))) (i32.wrap_i64 (local.get $b)))"
    )
}

pub(crate) const NAMES: &str = r#"(data (i32.const 100) "nameConfigMapv1garbage")"#;

/// A cluster that gives the same answer to everything, after a while, and notes what it was asked.
pub(crate) struct Cluster {
    pub(crate) answer: Result<Vec<u8>, HostFailure>,
    pub(crate) delay: Duration,
    pub(crate) lookups: Mutex<Vec<LookupRequest>>,
    pub(crate) mappings: Mutex<Vec<RestMappingRequest>>,
}

impl Cluster {
    pub(crate) fn new(answer: Result<&str, HostFailure>) -> Self {
        Self {
            answer: answer.map(|answer| answer.as_bytes().to_vec()),
            delay: Duration::ZERO,
            lookups: Mutex::default(),
            mappings: Mutex::default(),
        }
    }

    fn reply(&self) -> BoxFuture<'_, Result<Vec<u8>, HostFailure>> {
        Box::pin(async {
            if !self.delay.is_zero() {
                tokio::time::sleep(self.delay).await;
            }
            self.answer.clone()
        })
    }
}

impl HostCluster for Cluster {
    fn lookup(&self, request: LookupRequest) -> BoxFuture<'_, Result<Vec<u8>, HostFailure>> {
        self.lookups.lock().unwrap().push(request);
        self.reply()
    }

    fn rest_mapping(
        &self,
        request: RestMappingRequest,
    ) -> BoxFuture<'_, Result<Vec<u8>, HostFailure>> {
        self.mappings.lock().unwrap().push(request);
        self.reply()
    }
}

pub(crate) async fn module(wasm: &Bytes) -> Result<Module, FlightError> {
    runtime().module(wasm).await
}

pub(crate) async fn run_with(
    wasm: &Bytes,
    invocation: Invocation,
    cluster: Arc<Cluster>,
) -> Result<Outcome, FlightError> {
    module(wasm).await?.run(invocation, cluster).await
}

/// Runs it with a cluster that finds `{}`.
pub(crate) async fn run(wasm: &Bytes) -> Result<Outcome, FlightError> {
    run_with(
        wasm,
        Invocation::default(),
        Arc::new(Cluster::new(Ok("{}"))),
    )
    .await
}

pub(crate) async fn run_in(wasm: &Bytes, bounds: Bounds) -> Result<Outcome, FlightError> {
    let invocation = Invocation {
        bounds,
        ..Invocation::default()
    };
    run_with(wasm, invocation, Arc::new(Cluster::new(Ok("{}")))).await
}

/// Bounds with this time limit.
pub(crate) fn within(time: Duration) -> Bounds {
    Bounds {
        time: Some(time),
        ..Bounds::default()
    }
}
