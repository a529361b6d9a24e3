//! Guests that lie about their memory.

use proptest::prelude::*;

use super::*;
use crate::AbiFault;

#[tokio::test]
pub(super) async fn bad_pointers_are_faults_r139() {
    let (name, kind, version) = (packed(100, 4), packed(104, 9), packed(113, 2));
    let call = |state: u64, name: &str| {
        format!("(drop (call $lookup (i32.const {state}) {name} (i64.const 0) {kind} {version}))")
    };
    for (case, body, words) in [
        (
            "past the end",
            call(40, &packed(65_536, 1)),
            &["the name", "out of bounds", "0x10000"][..],
        ),
        (
            "over the end",
            call(40, &packed(65_530, 7)),
            &["the name", "out of bounds"],
        ),
        (
            "overflow",
            call(40, &packed(0xffff_ffff, 0xffff)),
            &["the name", "out of bounds"],
        ),
        (
            "too long",
            call(40, &packed(100, 0x0100_0000)),
            &["the name", "over the limit of 65536"],
        ),
        (
            "all",
            call(40, &packed(0xffff_ffff, 0xffff_ffff)),
            &["the name", "over the limit"],
        ),
        (
            "state past the end",
            call(65_536, &name),
            &["the state", "out of bounds"],
        ),
        (
            "state over the end",
            call(65_533, &name),
            &["the state", "out of bounds"],
        ),
        (
            "state overflow",
            call(0xffff_ffff, &name),
            &["the state", "out of bounds"],
        ),
    ] {
        check(
            case,
            &flight(&body, &format!("{NAMES}{MALLOC}")),
            Bounds::default(),
            FlightErrorKind::Guest,
            words,
        )
        .await;
    }
    assert!(
        run(&flight(
            &call(65_532, &packed(65_535, 1)),
            &format!("{NAMES}{MALLOC}")
        ))
        .await
        .is_ok(),
        "the last bytes"
    );
}

#[tokio::test]
pub(super) async fn a_guest_without_memory() {
    let wasm = assemble(
        r#"(module (import "host" "k8s_lookup" (func $lookup (param i32 i64 i64 i64 i64) (result i64)))
        (func (export "_start") (drop (call $lookup (i32.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))))"#,
    );
    check(
        "no memory",
        &wasm,
        Bounds::default(),
        FlightErrorKind::Guest,
        &["memory"],
    )
    .await;
    let wasm = assemble(
        r#"(module (import "wasi_snapshot_preview1" "fd_write" (func $w (param i32 i32 i32 i32) (result i32)))
        (func (export "_start") (drop (call $w (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))))"#,
    );
    check(
        "no memory for WASI",
        &wasm,
        Bounds::default(),
        FlightErrorKind::Guest,
        &["memory"],
    )
    .await;
}

#[tokio::test]
pub(super) async fn bad_mallocs_are_faults_r139() {
    let call =
        "(call $lookup (i32.const 40) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0))";
    let malloc =
        |body: &str| format!(r#"(func $malloc (export "malloc") (param i32) (result i64) {body})"#);
    for (case, items, words) in [
        ("missing", String::new(), &["no function \"malloc\""][..]),
        (
            "type",
            r#"(func (export "malloc") (param i64) (result i32) (i32.const 0))"#.into(),
            &["malloc", "(i64) -> (i32)"],
        ),
        (
            "arity",
            r#"(func (export "malloc") (result i64) (i64.const 0))"#.into(),
            &["malloc", "() -> (i64)"],
        ),
        (
            "global",
            r#"(global (export "malloc") i32 (i32.const 0))"#.into(),
            &["malloc", "a global"],
        ),
        (
            "zero",
            malloc("(i64.const 0)"),
            &["malloc", "0 bytes", "2 bytes of memory"],
        ),
        (
            "address zero",
            malloc("(i64.const 2)"),
            &["malloc", "address 0x0"],
        ),
        (
            "short",
            malloc(&packed(4096, 1)),
            &["malloc", "1 bytes", "2 bytes of memory"],
        ),
        (
            "past the end",
            malloc(&packed(65_536, 2)),
            &["malloc", "out of bounds"],
        ),
        (
            "over the end",
            malloc(&packed(65_535, 2)),
            &["malloc", "out of bounds"],
        ),
        (
            "overflow",
            malloc(&packed(0xffff_ffff, 0xffff_ffff)),
            &["malloc", "out of bounds"],
        ),
        ("traps", malloc("unreachable"), &["unreachable", "malloc"]),
        (
            "calls the host",
            malloc(call),
            &["k8s_lookup", "malloc", "nested"],
        ),
        (
            "calls the host twice",
            malloc(&format!("(drop {call}) {call}")),
            &["malloc", "nested"],
        ),
        (
            "maps in malloc",
            malloc("(call $mapping (i32.const 40) (i64.const 0) (i64.const 0))"),
            &["k8s_rest_mapping", "malloc", "nested"],
        ),
        (
            "recursion",
            malloc("(call $malloc (local.get 0))"),
            &["call stack exhausted"],
        ),
    ] {
        let wasm = flight(&look(), &format!("{NAMES}{items}"));
        check(
            case,
            &wasm,
            Bounds::default(),
            FlightErrorKind::Guest,
            words,
        )
        .await;
    }
    // More than asked for is fine: the answer is what was asked for.
    let wasm = flight(&look(), &format!("{NAMES}{}", malloc(&packed(4096, 100))));
    assert_eq!(text(&run(&wasm).await.unwrap()), "{}");
}

#[tokio::test]
pub(super) async fn exits_in_malloc_are_exits() {
    let items = r#"(func (export "malloc") (param i32) (result i64) (call $proc_exit (i32.const 3)) unreachable)"#;
    assert_eq!(
        run(&flight(&look(), &format!("{NAMES}{items}")))
            .await
            .unwrap()
            .exit,
        3
    );
}

#[tokio::test]
pub(super) async fn lookups_are_counted() {
    let wasm = flight(
        &format!(
            "(loop $l {} (br $l))",
            look().replace("(call $say", "(call $drop2")
        ),
        &format!(
            "{NAMES}(func $drop2 (param i32 i32)){}",
            MALLOC.replace(
                "(global.set $next (i32.add (global.get $next) (local.get 0)))",
                ""
            )
        ),
    );
    let bounds = Bounds {
        lookups: 3,
        ..Bounds::default()
    };
    let cluster = Arc::new(Cluster::new(Ok("{}")));
    let invocation = Invocation {
        bounds,
        ..Invocation::default()
    };
    let error = run_with(&wasm, invocation, cluster.clone())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), FlightErrorKind::Bounds);
    assert!(error.to_string().contains("more than 3 times"), "{error}");
    assert_eq!(cluster.lookups.lock().unwrap().len(), 3);
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
