use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::testkit::{SAY, assemble, flight, run, runtime};
use crate::{FlightErrorKind, Invocation};

async fn refused(wasm: impl Into<Bytes>) -> FlightError {
    let started = Instant::now();
    let error = runtime().module(&wasm.into()).await.unwrap_err();
    assert_eq!(error.kind(), FlightErrorKind::Module, "{error}");
    assert!(started.elapsed() < Duration::from_secs(1));
    assert!(!error.to_string().contains('\n'), "{error}");
    error
}

/// What the ABI has no use for is refused, with words about it.
#[tokio::test]
async fn features_that_are_off() {
    for (text, word) in [
        (r#"(module (memory (export "memory") i64 1))"#, "memory"),
        (
            r#"(module (memory (export "memory") 1 1 shared))"#,
            "shared",
        ),
        (r"(module (memory 1) (memory 1))", "memor"),
        (r"(module (type (struct)))", "gc"),
        (r"(module (tag))", "exceptions"),
        (
            r"(module (memory 1) (func (drop (i32.atomic.load (i32.const 0)))))",
            "threads",
        ),
        (r"(module (func (return_call 0)))", "tail calls"),
    ] {
        let error = refused(assemble(text)).await;
        assert!(error.to_string().contains(word), "{text}: {error}");
    }
}

/// What compilers for wasip1 emit is accepted.
#[tokio::test]
async fn features_that_are_on() {
    for text in [
        r"(module (func (param f64) (result i32) (i32.trunc_sat_f64_s (local.get 0))))",
        r"(module (func (param i32) (result i32) (i32.extend8_s (local.get 0))))",
        r"(module (func (result i32 i32) (i32.const 1) (i32.const 2)))",
        r"(module (memory 1) (func (memory.copy (i32.const 0) (i32.const 1) (i32.const 2))))",
        r"(module (table 1 funcref) (table 1 funcref) (type $t (func)) (func (call_indirect 1 (type $t) (i32.const 0))))",
        r"(module (global (mut i32) (i32.const 1)))",
        r"(module (func (result v128) (v128.const i32x4 1 2 3 4)))",
        r"(module (global i32 (i32.add (i32.const 1) (i32.const 2))))",
    ] {
        assert!(runtime().module(&assemble(text)).await.is_ok(), "{text}");
    }
}

#[tokio::test]
async fn wrong_types_of_imports_are_named() {
    for (module, name) in [
        ("host", "k8s_lookup"),
        ("wasi_snapshot_preview1", "fd_write"),
    ] {
        let error = refused(assemble(&format!(
            r#"(module (import "{module}" "{name}" (func (param i32))))"#
        )))
        .await;
        assert!(
            error.to_string().contains(module) && error.to_string().contains(name),
            "{error}"
        );
    }
}

#[tokio::test]
async fn broken_in_the_middle() {
    let error = refused(assemble(
        r#"(module (func (export "_start") (drop (i32.add (i64.const 1) (i32.const 1)))))"#,
    ))
    .await;
    assert!(error.to_string().contains("type mismatch"), "{error}");
    let runtime = Runtime::new(RuntimeOptions {
        module_max_bytes: 10,
        ..RuntimeOptions::default()
    })
    .unwrap();
    let error = runtime.module(&flight(SAY, "")).await.unwrap_err();
    assert!(
        error.to_string().contains("over the limit of 10"),
        "{error}"
    );
}

/// A module cut anywhere is refused, or (cut between sections) runs as what is left of it.
#[tokio::test]
async fn truncated_anywhere_r137() {
    let whole = flight(SAY, "(table 3 funcref) (elem (i32.const 0) $say $cry)");
    for cut in 0..whole.len() {
        match runtime().module(&whole.slice(..cut)).await {
            Ok(_) => assert!(cut >= 8),
            Err(error) => assert_eq!(error.kind(), FlightErrorKind::Module, "{cut}: {error}"),
        }
    }
}

#[tokio::test]
async fn one_compile_however_many_ask() {
    let runtime = Runtime::new(RuntimeOptions::default()).unwrap();
    let wasm = flight(SAY, "(func (drop (i32.const 4711)))");
    let asked: Vec<_> = (0..50)
        .map(|_| {
            let (runtime, wasm) = (runtime.clone(), wasm.clone());
            tokio::spawn(async move { runtime.module(&wasm).await })
        })
        .collect();
    let mut images = HashSet::new();
    for module in asked {
        images.insert(module.await.unwrap().unwrap().image());
    }
    assert_eq!(images.len(), 1);
    let figures = runtime.figures();
    assert_eq!((figures.compiles, figures.failures), (1, 0));
    runtime.module(&wasm).await.unwrap();
    assert_eq!(runtime.figures().memory_hits, figures.memory_hits + 1);
}

/// Whoever asked first and went away does not leave the others waiting.
#[tokio::test]
async fn a_compile_outlives_whoever_asked_for_it() {
    let runtime = Runtime::new(RuntimeOptions::default()).unwrap();
    let wasm = flight(SAY, "(func (drop (i32.const 4712)))");
    for _ in 0..20 {
        let (runtime, wasm) = (runtime.clone(), wasm.clone());
        let asked = tokio::spawn(async move { runtime.module(&wasm).await });
        tokio::task::yield_now().await;
        asked.abort();
    }
    assert!(runtime.module(&wasm).await.is_ok());
}

#[tokio::test]
async fn failures_are_not_remembered() {
    let runtime = Runtime::new(RuntimeOptions {
        compile_time: Duration::ZERO,
        ..RuntimeOptions::default()
    })
    .unwrap();
    let wasm = flight(SAY, "(func (drop (i32.const 4713)))");
    let error = runtime.module(&wasm).await.unwrap_err();
    assert!(error.to_string().contains("longer than 0s"), "{error}");
    for _ in 0..500 {
        if runtime.module(&wasm).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the compile went on and was kept");
}

/// Many different modules do not pile up; one that is in use stays, and is found again.
#[tokio::test]
async fn modules_in_memory_are_bounded() {
    let options = RuntimeOptions {
        loaded_modules: 3,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(options).unwrap();
    let nth = |n: u32| flight(&format!("(drop (i32.const {n})) {SAY}"), "");
    let first = runtime.module(&nth(0)).await.unwrap();
    for n in 1..10 {
        runtime.module(&nth(n)).await.unwrap();
    }
    let known = |n: u32| runtime.loaded(Sha256::digest(nth(n)).into()).is_some();
    assert_eq!(
        (1..10).map(known).collect::<Vec<_>>(),
        [[false; 6].as_slice(), &[true; 3]].concat()
    );
    let again = runtime.module(&nth(0)).await.unwrap();
    assert_eq!(first.image(), again.image());
    drop((first, again));
    assert!(known(0) && !known(7), "it is the most recent now");
    let none = Runtime::new(RuntimeOptions {
        loaded_max_bytes: 0,
        ..RuntimeOptions::default()
    })
    .unwrap();
    let module = none.module(&nth(0)).await.unwrap();
    assert_eq!(
        module
            .run(Invocation::default(), Arc::new(NoCluster))
            .await
            .unwrap()
            .exit,
        0
    );
}

/// With its last owner a runtime is gone: engine, ticker, threads, kept modules.
#[tokio::test]
async fn a_runtime_ends_with_its_last_owner() {
    let runtime = Runtime::new(RuntimeOptions::default()).unwrap();
    let module = runtime.module(&flight(SAY, "")).await.unwrap();
    let weak = Arc::downgrade(&runtime.0);
    drop(runtime);
    assert_eq!(
        module
            .run(Invocation::default(), Arc::new(NoCluster))
            .await
            .unwrap()
            .exit,
        0
    );
    drop(module);
    for _ in 0..500 {
        if weak.strong_count() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("somebody still holds the runtime");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), head: bool) {
        let bytes = if head { [b"\0asm\x01\0\0\0".as_slice(), &bytes].concat() } else { bytes };
        let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        if let Err(error) = executor.block_on(runtime().module(&bytes.into())) {
            prop_assert_eq!(error.kind(), FlightErrorKind::Module);
            prop_assert!(!error.to_string().contains("compiler failed"), "{}", error);
        }
    }

    /// A sound module with some bytes changed; where it still is one, it runs to some end.
    #[test]
    fn changed_bytes_never_panic(changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = flight(SAY, "(table 3 funcref) (elem (i32.const 0) $say $cry)").to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        if let Err(error) = executor.block_on(run(&bytes.into())) {
            prop_assert!(error.kind() != FlightErrorKind::Internal, "{}", error);
            prop_assert!(!error.to_string().contains("compiler failed"), "{}", error);
        }
    }
}
