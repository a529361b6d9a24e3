//! Guests that mean no good: each is a named error, in time, and the host goes on.

use proptest::prelude::*;

use super::*;
use crate::{AbiFault, FlightError};

/// Runs it and compares the error with what it must say; the same runtime must serve a good guest afterwards.
async fn check(name: &str, wasm: &Bytes, bounds: Bounds, kind: FlightErrorKind, words: &[&str]) {
    let error = match run_in(wasm, bounds).await {
        Err(error) => error,
        Ok(outcome) => panic!("{name}: {outcome:?}"),
    };
    assert_eq!(error.kind(), kind, "{name}: {error}");
    for word in words {
        assert!(error.to_string().contains(word), "{name}: \"{word}\" is missing in: {error}");
    }
    assert!(!error.to_string().contains('\n'), "{name}: {error}");
    assert_eq!(text(&run(&flight(SAY, "")).await.unwrap()), "[]\n");
}

use bytes::Bytes;

/// Endless in a loop, in a sleep, in the host: stopped at the limit, within 0.2 s.
#[tokio::test]
async fn the_time_limit_stops_everything() {
    let sleep = |clock: u8, flags: u16, nanos: u64| {
        format!(
            "(i32.store8 (i32.const 520) (i32.const 0)) (i32.store (i32.const 528) (i32.const {clock}))
            (i64.store (i32.const 536) (i64.const {nanos})) (i32.store16 (i32.const 552) (i32.const {flags}))
            (drop (call $poll_oneoff (i32.const 512) (i32.const 600) (i32.const 1) (i32.const 700)))"
        )
    };
    let far = 4_000_000_000_000_000_000;
    let slow = Arc::new(Cluster { delay: Duration::from_secs(60), ..Cluster::new(Ok("{}")) });
    for (name, wasm) in [
        ("loop", flight("(loop br 0)", "")),
        ("start section", flight("", "(func $first (loop br 0)) (start $first)")),
        ("sleep", flight(&sleep(1, 0, 60_000_000_000), "")),
        ("sleep until far away", flight(&sleep(0, 1, far), "")),
        ("sleep long", flight(&sleep(1, 0, u64::MAX >> 1), "")),
        ("sleeps", flight(&format!("(loop $l {} (br $l))", sleep(1, 0, 1_000)), "")),
        ("host", flight(&look(), &format!("{NAMES}{MALLOC}"))),
        ("malloc", flight(&look(), &format!(r#"{NAMES}(func (export "malloc") (param i32) (result i64) (loop br 0) (i64.const 0))"#))),
        ("calls", flight("(loop $l (drop (call $fd_prestat_get (i32.const 3) (i32.const 200))) (br $l))", "")),
        ("stderr", flight("(loop $l (call $cry (i32.const 0) (i32.const 65536)) (br $l))", "")),
        ("memory", with_memory("1024", "(loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x4000000)) (br $l))", "")),
    ] {
        let module = module(&wasm).await.unwrap();
        let cluster = if name == "malloc" { Arc::new(Cluster::new(Ok("{}"))) } else { slow.clone() };
        let started = Instant::now();
        let invocation = Invocation { bounds: within(Duration::from_millis(30)), ..Invocation::default() };
        let error = module.run(invocation, cluster).await.expect_err(name);
        let took = started.elapsed();
        assert!(took >= Duration::from_millis(30) && took < Duration::from_millis(230), "{name}: {took:?}");
        assert_eq!(error.kind(), FlightErrorKind::Time, "{name}: {error}");
        assert!(error.to_string().contains("time limit of 30ms"), "{name}: {error}");
    }
}

#[tokio::test]
async fn no_limit_is_no_limit() {
    let body = format!(
        "(i32.store (i32.const 528) (i32.const 1)) (i64.store (i32.const 536) (i64.const 300000000))
        (drop (call $poll_oneoff (i32.const 512) (i32.const 600) (i32.const 1) (i32.const 700))) {SAY}"
    );
    let started = Instant::now();
    let outcome = run_in(&flight(&body, ""), Bounds { time: None, ..Bounds::default() }).await.unwrap();
    assert_eq!(text(&outcome), "[]\n");
    assert!(started.elapsed() >= Duration::from_millis(300));
    assert!(run_in(&flight(SAY, ""), within(Duration::MAX)).await.is_ok());
    assert_eq!(run_in(&flight("(loop br 0)", ""), within(Duration::ZERO)).await.unwrap_err().kind(), FlightErrorKind::Time);
}

#[tokio::test]
async fn the_tail_of_stderr_comes_with_a_time_out() {
    let wasm = flight("(call $cry (i32.const 64) (i32.const 2)) (loop br 0)", "");
    assert_eq!(run_in(&wasm, within(Duration::from_millis(50))).await.unwrap_err().stderr(), "[]");
}

#[tokio::test]
async fn traps_are_named() {
    let nowhere = r#"(type $t (func)) (table 1 funcref) (func $inner unreachable) (func $outer (call $inner))"#;
    for (name, body, items, words) in [
        ("unreachable", "unreachable", "", &["unreachable", "main"][..]),
        ("nested", "(call $outer)", nowhere, &["unreachable", "(in inner < outer < main)"]),
        ("division", "(drop (i32.div_u (i32.const 1) (local.get $n)))", "", &["divide by zero"]),
        ("load", "(drop (i32.load (i32.const 0x7fffffff)))", "", &["out of bounds memory access"]),
        ("null call", "(call_indirect (type $t) (i32.const 0))", nowhere, &["uninitialized element"]),
        ("conversion", "(drop (i32.trunc_f32_s (f32.const nan)))", "", &["conversion to integer"]),
    ] {
        check(name, &flight(body, items), Bounds::default(), FlightErrorKind::Guest, words).await;
    }
}

#[tokio::test]
async fn a_trap_keeps_what_was_written() {
    let wasm = flight(&format!("{SAY} (call $cry (i32.const 64) (i32.const 2)) unreachable"), "");
    let error = run(&wasm).await.unwrap_err();
    assert_eq!((error.stderr(), &error.stdout().unwrap()[..]), ("[]", &b"[]\n"[..]));
}

#[tokio::test]
async fn recursion_ends_in_a_trap_and_deep_calls_work() {
    let deep = "(func $deep (param i64) (result i64) (if (result i64) (i64.eqz (local.get 0)) (then (i64.const 0))
        (else (i64.add (call $deep (i64.sub (local.get 0) (i64.const 1))) (local.get 0)))))";
    assert_eq!(text(&run(&flight(&format!("(drop (call $deep (i64.const 10000))) {SAY}"), deep)).await.unwrap()), "[]\n");
    let endless = flight("(drop (call $deep (i64.const -1)))", deep);
    check("recursion", &endless, Bounds::default(), FlightErrorKind::Guest, &["call stack exhausted"]).await;
    // At the edge of the stack the guest calls the host, which has room of its own.
    let malloc = format!(r#"(func (export "malloc") (param i32) (result i64) {})"#, packed(4096, 2));
    let at_the_edge =
        flight("(call $f)", &format!("{NAMES}{malloc}(func $f (local $b i64) {} (call $f))", look()));
    check("host calls", &at_the_edge, Bounds { lookups: u32::MAX, ..Bounds::default() }, FlightErrorKind::Guest, &["call stack exhausted"]).await;
}

#[tokio::test]
async fn memory_grows_to_the_limit_only() {
    let grow = |pages: u32| {
        let body = format!("(if (i32.eq (memory.grow (i32.const {})) (i32.const -1)) (then (call $say (i32.const 64) (i32.const 1))) (else {SAY}))", pages - 1);
        flight(&body, "")
    };
    let mib = |n: u64| Bounds { memory: n << 20, ..Bounds::default() };
    for (pages, bounds, expect) in [
        (32, mib(2), "[]\n"),
        (33, mib(2), "["),
        (2048, mib(128), "[]\n"),
        (2049, mib(128), "["),
        (8192, mib(0), "[]\n"),
        (65_536, Bounds { memory: u64::MAX, ..Bounds::default() }, "[]\n"),
        (65_537, mib(0), "["),
        (1, Bounds { memory: 65_536, ..Bounds::default() }, "[]\n"),
    ] {
        assert_eq!(text(&run_in(&grow(pages), bounds).await.unwrap()), expect, "{pages} pages");
    }
    let refused = run_in(&grow(33), mib(2)).await.unwrap().refused.unwrap();
    assert!(refused.to_string().contains("memory limit of 2 MiB"), "{refused}");
}

#[tokio::test]
async fn a_declared_minimum_over_the_limit_is_an_error() {
    let declares = |pages: &str| with_memory(pages, SAY, "");
    let bounds = Bounds { memory: 2 << 20, ..Bounds::default() };
    check("declared", &declares("33"), bounds.clone(), FlightErrorKind::Bounds, &["memory", "2 MiB", "2112 KiB"]).await;
    assert_eq!(text(&run_in(&declares("32 70"), bounds).await.unwrap()), "[]\n");
    let table = flight(SAY, "(table 11 funcref)");
    let bounds = Bounds { table_elements: 10, ..Bounds::default() };
    check("table", &table, bounds, FlightErrorKind::Bounds, &["11 table elements", "limit of 10"]).await;
}

#[tokio::test]
async fn tables_grow_to_the_limit_only() {
    let wasm = flight(
        "(loop $l (br_if $l (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))))
        (if (i32.gt_u (table.size $t) (i32.const 10000)) (then unreachable))
        (if (i32.ne (table.grow $u (ref.null func) (i32.const 1000)) (i32.const -1)) (then unreachable))",
        "(table $t 1 funcref) (table $u 1 funcref)",
    );
    let outcome = run_in(&wasm, Bounds { table_elements: 10_000, ..Bounds::default() }).await.unwrap();
    assert!(outcome.refused.unwrap().to_string().contains("limit of 10000"));
}

#[tokio::test]
async fn many_tables_are_refused() {
    let wasm = flight(SAY, &"(table 1 funcref)".repeat(50));
    let error = run(&wasm).await.unwrap_err();
    assert!(error.to_string().contains("table"), "{error}");
}

#[tokio::test]
async fn a_trap_after_a_refusal_names_the_limit() {
    let wasm = flight("(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable", "");
    let bounds = Bounds { memory: 1 << 20, ..Bounds::default() };
    check("hog", &wasm, bounds, FlightErrorKind::Guest, &["unreachable", "out of memory", "memory limit of 1 MiB"]).await;
}

#[tokio::test]
async fn stdout_is_bounded() {
    let flood = with_memory("17", "(loop $l (call $say (i32.const 0) (i32.const 0x100000)) (br $l))", "");
    check("flood", &flood, Bounds::default(), FlightErrorKind::Bounds, &["output too large", "64 MiB", "stdout"]).await;
    let bounds = |stdout| Bounds { stdout, ..Bounds::default() };
    assert_eq!(text(&run_in(&flight(SAY, ""), bounds(3)).await.unwrap()), "[]\n");
    check("one more", &flight(SAY, ""), bounds(2), FlightErrorKind::Bounds, &["2 bytes"]).await;
}

#[tokio::test]
async fn two_mebibytes_come_out_whole() {
    let wasm = with_memory("33", "(memory.fill (i32.const 128) (i32.const 120) (i32.const 0x200000)) (call $say (i32.const 128) (i32.const 0x200000))", "");
    assert_eq!(run(&wasm).await.unwrap().stdout, vec![b'x'; 2 << 20]);
}

#[tokio::test]
async fn stderr_is_cut_to_its_tail() {
    let wasm = with_memory(
        "17",
        "(memory.fill (i32.const 128) (i32.const 120) (i32.const 0x100000))
        (loop $l (call $cry (i32.const 128) (i32.const 0x100000)) (local.set $n (i32.add (local.get $n) (i32.const 1)))
            (br_if $l (i32.lt_u (local.get $n) (i32.const 100))))
        (call $cry (i32.const 64) (i32.const 2))",
        "",
    );
    let outcome = run(&wasm).await.unwrap();
    assert_eq!(outcome.stderr.len(), 64 << 10);
    assert!(outcome.stderr.ends_with("xx[]"));
}

#[tokio::test]
async fn bad_pointers_are_faults() {
    let (name, kind, version) = (packed(100, 4), packed(104, 9), packed(113, 2));
    let call = |state: u64, name: &str| format!("(drop (call $lookup (i32.const {state}) {name} (i64.const 0) {kind} {version}))");
    for (case, body, words) in [
        ("past the end", call(40, &packed(65_536, 1)), &["the name", "out of bounds", "0x10000"][..]),
        ("over the end", call(40, &packed(65_530, 7)), &["the name", "out of bounds"]),
        ("overflow", call(40, &packed(0xffff_ffff, 0xffff)), &["the name", "out of bounds"]),
        ("too long", call(40, &packed(100, 0x0100_0000)), &["the name", "over the limit of 65536"]),
        ("all", call(40, &packed(0xffff_ffff, 0xffff_ffff)), &["the name", "over the limit"]),
        ("state past the end", call(65_536, &name), &["the state", "out of bounds"]),
        ("state over the end", call(65_533, &name), &["the state", "out of bounds"]),
        ("state overflow", call(0xffff_ffff, &name), &["the state", "out of bounds"]),
    ] {
        check(case, &flight(&body, &format!("{NAMES}{MALLOC}")), Bounds::default(), FlightErrorKind::Guest, words).await;
    }
    assert!(run(&flight(&call(65_532, &packed(65_535, 1)), &format!("{NAMES}{MALLOC}"))).await.is_ok(), "the last bytes");
}

#[tokio::test]
async fn a_guest_without_memory() {
    let wasm = assemble(
        r#"(module (import "host" "k8s_lookup" (func $lookup (param i32 i64 i64 i64 i64) (result i64)))
        (func (export "_start") (drop (call $lookup (i32.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))))"#,
    );
    check("no memory", &wasm, Bounds::default(), FlightErrorKind::Guest, &["memory"]).await;
    let wasm = assemble(
        r#"(module (import "wasi_snapshot_preview1" "fd_write" (func $w (param i32 i32 i32 i32) (result i32)))
        (func (export "_start") (drop (call $w (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))))"#,
    );
    check("no memory for WASI", &wasm, Bounds::default(), FlightErrorKind::Guest, &["memory"]).await;
}

#[tokio::test]
async fn bad_mallocs_are_faults() {
    let call = "(call $lookup (i32.const 40) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0))";
    let malloc = |body: &str| format!(r#"(func $malloc (export "malloc") (param i32) (result i64) {body})"#);
    for (case, items, words) in [
        ("missing", String::new(), &["no function \"malloc\""][..]),
        ("type", r#"(func (export "malloc") (param i64) (result i32) (i32.const 0))"#.into(), &["malloc", "(i64) -> (i32)"]),
        ("arity", r#"(func (export "malloc") (result i64) (i64.const 0))"#.into(), &["malloc", "() -> (i64)"]),
        ("global", r#"(global (export "malloc") i32 (i32.const 0))"#.into(), &["malloc", "a global"]),
        ("zero", malloc("(i64.const 0)"), &["malloc", "0 bytes", "2 bytes of memory"]),
        ("address zero", malloc("(i64.const 2)"), &["malloc", "address 0x0"]),
        ("short", malloc(&packed(4096, 1)), &["malloc", "1 bytes", "2 bytes of memory"]),
        ("past the end", malloc(&packed(65_536, 2)), &["malloc", "out of bounds"]),
        ("over the end", malloc(&packed(65_535, 2)), &["malloc", "out of bounds"]),
        ("overflow", malloc(&packed(0xffff_ffff, 0xffff_ffff)), &["malloc", "out of bounds"]),
        ("traps", malloc("unreachable"), &["unreachable", "malloc"]),
        ("calls the host", malloc(call), &["k8s_lookup", "malloc", "nested"]),
        ("calls the host twice", malloc(&format!("(drop {call}) {call}")), &["malloc", "nested"]),
        (
            "maps in malloc",
            malloc("(call $mapping (i32.const 40) (i64.const 0) (i64.const 0))"),
            &["k8s_rest_mapping", "malloc", "nested"],
        ),
        ("recursion", malloc("(call $malloc (local.get 0))"), &["call stack exhausted"]),
    ] {
        let wasm = flight(&look(), &format!("{NAMES}{items}"));
        check(case, &wasm, Bounds::default(), FlightErrorKind::Guest, words).await;
    }
    // More than asked for is fine: the answer is what was asked for.
    let wasm = flight(&look(), &format!("{NAMES}{}", malloc(&packed(4096, 100))));
    assert_eq!(text(&run(&wasm).await.unwrap()), "{}");
}

#[tokio::test]
async fn exits_in_malloc_are_exits() {
    let items = r#"(func (export "malloc") (param i32) (result i64) (call $proc_exit (i32.const 3)) unreachable)"#;
    assert_eq!(run(&flight(&look(), &format!("{NAMES}{items}"))).await.unwrap().exit, 3);
}

#[tokio::test]
async fn lookups_are_counted() {
    let wasm = flight(&format!("(loop $l {} (br $l))", look().replace("(call $say", "(call $drop2")), &format!("{NAMES}(func $drop2 (param i32 i32)){}", MALLOC.replace("(global.set $next (i32.add (global.get $next) (local.get 0)))", "")));
    let bounds = Bounds { lookups: 3, ..Bounds::default() };
    let cluster = Arc::new(Cluster::new(Ok("{}")));
    let invocation = Invocation { bounds, ..Invocation::default() };
    let error = run_with(&wasm, invocation, cluster.clone()).await.unwrap_err();
    assert_eq!(error.kind(), FlightErrorKind::Bounds);
    assert!(error.to_string().contains("more than 3 times"), "{error}");
    assert_eq!(cluster.lookups.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_start_of_another_type() {
    for (export, words) in [
        (r#"(func (export "_start") (param i32))"#, "a function (i32) -> ()"),
        (r#"(global (export "_start") i32 (i32.const 0))"#, "a global"),
    ] {
        let wasm = assemble(&format!("(module {export})"));
        check("start", &wasm, Bounds::default(), FlightErrorKind::Guest, &["_start", words]).await;
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
        fn rest_mapping(&self, _: atc_api::RestMappingRequest) -> atc_api::BoxFuture<'_, Result<Vec<u8>, HostFailure>> {
            panic!("broken on purpose")
        }
    }
    for body in [look(), "(drop (call $mapping (i32.const 40) (i64.const 0) (i64.const 0)))".to_owned()] {
        let wasm = flight(&body, &format!("{NAMES}{MALLOC}"));
        let error = module(&wasm).await.unwrap().run(Invocation::default(), Arc::new(Broken)).await.unwrap_err();
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
        match run_in(&with_memory("1024", body, ""), within(Duration::from_secs(2))).await {
            Ok(_) | Err(FlightError::Trap(_)) => {}
            Err(error) => panic!("{body}: {error}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever a guest packs, it is answered, or a fault of the ABI.
    #[test]
    fn any_pointers_never_panic(state: u32, packed: [u64; 4], given: u64) {
        let [a, b, c, d] = packed.map(|packed| format!("(i64.const {packed:#x})"));
        let wasm = flight(
            &format!("(drop (call $lookup (i32.const {state:#x}) {a} {b} {c} {d}))"),
            &format!(r#"(func (export "malloc") (param i32) (result i64) (i64.const {given:#x}))"#),
        );
        let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        match executor.block_on(run(&wasm)) {
            Ok(_) | Err(FlightError::Abi { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// The same near the edges, where the mistakes are.
    #[test]
    fn pointers_at_the_edges_never_panic(
        state in 65_530_u32..65_540,
        address in 65_530_u64..65_540,
        length in 0_u64..10,
        room in 65_530_u64..65_540,
        given in 0_u64..5,
    ) {
        let name = packed(address, length);
        let wasm = flight(
            &format!("(drop (call $lookup (i32.const {state}) {name} (i64.const 0) (i64.const 0) (i64.const 0)))"),
            &format!(r#"(func (export "malloc") (param i32) (result i64) {})"#, packed(room, given)),
        );
        let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let sound = state + 4 <= 65_536 && (length == 0 || address + length <= 65_536) && given >= 2 && room + 2 <= 65_536;
        match executor.block_on(run(&wasm)) {
            Ok(_) => prop_assert!(sound),
            Err(FlightError::Abi { fault, .. }) => prop_assert!(!sound || matches!(fault, AbiFault::MallocShort { .. }), "{}", fault),
            Err(error) => panic!("{error}"),
        }
    }
}
