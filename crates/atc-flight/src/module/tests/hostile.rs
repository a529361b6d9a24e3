//! Guests that mean no good: each is a named error, in time, and the host goes on.

use bytes::Bytes;

use super::*;
use crate::FlightError;

mod bounds;
mod pointers;
mod time;

/// Runs it and compares the error with what it must say; the same runtime must serve a good guest afterwards.
async fn check(name: &str, wasm: &Bytes, bounds: Bounds, kind: FlightErrorKind, words: &[&str]) {
    let error = match run_in(wasm, bounds).await {
        Err(error) => error,
        Ok(outcome) => panic!("{name}: {outcome:?}"),
    };
    assert_eq!(error.kind(), kind, "{name}: {error}");
    for word in words {
        assert!(
            error.to_string().contains(word),
            "{name}: \"{word}\" is missing in: {error}"
        );
    }
    assert!(!error.to_string().contains('\n'), "{name}: {error}");
    assert_eq!(text(&run(&flight(SAY, "")).await.unwrap()), "[]\n");
}

#[tokio::test]
async fn traps_are_named_r141() {
    let nowhere =
        "(type $t (func)) (table 1 funcref) (func $inner unreachable) (func $outer (call $inner))";
    for (name, body, items, words) in [
        (
            "unreachable",
            "unreachable",
            "",
            &["unreachable", "main"][..],
        ),
        (
            "nested",
            "(call $outer)",
            nowhere,
            &["unreachable", "(in inner < outer < main)"],
        ),
        (
            "division",
            "(drop (i32.div_u (i32.const 1) (local.get $n)))",
            "",
            &["divide by zero"],
        ),
        (
            "load",
            "(drop (i32.load (i32.const 0x7fffffff)))",
            "",
            &["out of bounds memory access"],
        ),
        (
            "null call",
            "(call_indirect (type $t) (i32.const 0))",
            nowhere,
            &["uninitialized element"],
        ),
        (
            "conversion",
            "(drop (i32.trunc_f32_s (f32.const nan)))",
            "",
            &["conversion to integer"],
        ),
    ] {
        check(
            name,
            &flight(body, items),
            Bounds::default(),
            FlightErrorKind::Guest,
            words,
        )
        .await;
    }
}

#[tokio::test]
async fn a_trap_keeps_what_was_written() {
    let wasm = flight(
        &format!("{SAY} (call $cry (i32.const 64) (i32.const 2)) unreachable"),
        "",
    );
    let error = run(&wasm).await.unwrap_err();
    assert_eq!(
        (error.stderr(), &error.stdout().unwrap()[..]),
        ("[]", &b"[]\n"[..])
    );
}

#[tokio::test]
async fn recursion_ends_in_a_trap_and_deep_calls_work_r143() {
    let deep = "(func $deep (param i64) (result i64) (if (result i64) (i64.eqz (local.get 0)) (then (i64.const 0))
        (else (i64.add (call $deep (i64.sub (local.get 0) (i64.const 1))) (local.get 0)))))";
    assert_eq!(
        text(
            &run(&flight(
                &format!("(drop (call $deep (i64.const 10000))) {SAY}"),
                deep
            ))
            .await
            .unwrap()
        ),
        "[]\n"
    );
    let endless = flight("(drop (call $deep (i64.const -1)))", deep);
    check(
        "recursion",
        &endless,
        Bounds::default(),
        FlightErrorKind::Guest,
        &["call stack exhausted"],
    )
    .await;
    // At the edge of the stack the guest calls the host, which has room of its own.
    let malloc = format!(
        r#"(func (export "malloc") (param i32) (result i64) {})"#,
        packed(4096, 2)
    );
    let now_and_then = format!(
        "(func $f (param $n i32) (local $b i64)
            (if (i32.eqz (i32.and (local.get $n) (i32.const 255))) (then {}))
            (call $f (i32.add (local.get $n) (i32.const 1))))",
        look()
    );
    let at_the_edge = flight(
        "(call $f (i32.const 0))",
        &format!("{NAMES}{malloc}{now_and_then}"),
    );
    check(
        "host calls",
        &at_the_edge,
        Bounds {
            lookups: u32::MAX,
            ..Bounds::default()
        },
        FlightErrorKind::Guest,
        &["call stack exhausted"],
    )
    .await;
}

#[tokio::test]
async fn a_start_of_another_type() {
    for (export, words) in [
        (
            r#"(func (export "_start") (param i32))"#,
            "a function (i32) -> ()",
        ),
        (
            r#"(global (export "_start") i32 (i32.const 0))"#,
            "a global",
        ),
    ] {
        let wasm = assemble(&format!("(module {export})"));
        check(
            "start",
            &wasm,
            Bounds::default(),
            FlightErrorKind::Guest,
            &["_start", words],
        )
        .await;
    }
}

/// A cluster whose code is broken ends the run, not the process.
#[tokio::test]
async fn a_panic_in_the_cluster_is_an_error() {
    struct Broken;
    impl HostCluster for Broken {
        fn lookup(&self, _: LookupRequest) -> atc_api::BoxFuture<'_, Result<Vec<u8>, HostFailure>> {
            Box::pin(async { panic!("broken on purpose") })
        }
        fn rest_mapping(
            &self,
            _: atc_api::RestMappingRequest,
        ) -> atc_api::BoxFuture<'_, Result<Vec<u8>, HostFailure>> {
            panic!("broken on purpose")
        }
    }
    for body in [
        look(),
        "(drop (call $mapping (i32.const 40) (i64.const 0) (i64.const 0)))".to_owned(),
    ] {
        let wasm = flight(&body, &format!("{NAMES}{MALLOC}"));
        let error = module(&wasm)
            .await
            .unwrap()
            .run(Invocation::default(), Arc::new(Broken))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), FlightErrorKind::Internal, "{error}");
    }
}

/// WASI calls with sizes and addresses meant to hurt the host.
#[tokio::test]
async fn wasi_calls_that_ask_for_too_much() {
    for body in [
        "(drop (call $random_get (i32.const 0) (i32.const -1)))",
        "(drop (call $random_get (i32.const -16) (i32.const 32)))",
        "(drop (call $poll_oneoff (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 0)))",
        "(drop (call $poll_oneoff (i32.const 0) (i32.const 0) (i32.const 0x7ffff) (i32.const 0)))",
        "(drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const -1) (i32.const 0)))",
        "(i32.store (i32.const 8) (i32.const -1)) (i32.store (i32.const 12) (i32.const -1))
            (drop (call $fd_write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const -1)))",
        "(drop (call $fd_read (i32.const 0) (i32.const -8) (i32.const 9) (i32.const 0)))",
        "(drop (call $args_get (i32.const -1) (i32.const -1)))",
        "(drop (call $clock_time_get (i32.const 99) (i64.const -1) (i32.const -1)))",
    ] {
        // An error number or a trap, never more.
        match run_in(
            &with_memory("1024", body, ""),
            within(Duration::from_secs(2)),
        )
        .await
        {
            Ok(_) | Err(FlightError::Trap(_)) => {}
            Err(error) => panic!("{body}: {error}"),
        }
    }
}

/// Every bound holds whichever compiler made the code.
#[test]
fn all_of_it_compiled_in_a_hurry() {
    crate::testkit::in_a_hurry(&[
        traps_are_named_r141,
        a_trap_keeps_what_was_written,
        recursion_ends_in_a_trap_and_deep_calls_work_r143,
        a_start_of_another_type,
        a_panic_in_the_cluster_is_an_error,
        wasi_calls_that_ask_for_too_much,
        bounds::memory_grows_to_the_limit_only_r135,
        bounds::a_declared_minimum_over_the_limit_is_an_error,
        bounds::tables_grow_to_the_limit_only,
        bounds::many_tables_are_refused,
        bounds::a_trap_after_a_refusal_names_the_limit,
        bounds::stdout_is_bounded,
        bounds::two_mebibytes_come_out_whole,
        bounds::stderr_is_cut_to_its_tail,
        pointers::bad_pointers_are_faults_r139,
        pointers::a_guest_without_memory,
        pointers::bad_mallocs_are_faults_r139,
        pointers::exits_in_malloc_are_exits,
        pointers::lookups_are_counted,
        time::the_time_limit_stops_everything_r131_r133,
        time::no_limit_is_no_limit,
        time::the_tail_of_stderr_comes_with_a_time_out,
        super::a_lookup_is_asked_and_answered,
        super::memory_may_grow_in_malloc,
        super::a_million_things_can_run_at_once,
        super::a_good_flight_among_endless_ones_r133,
        super::dropping_the_future_stops_the_run,
    ]);
}
