//! Guests that take and print without end.

use super::*;

#[tokio::test]
pub(super) async fn memory_grows_to_the_limit_only_r135() {
    let grow = |pages: u32| {
        let body = format!(
            "(if (i32.eq (memory.grow (i32.const {})) (i32.const -1)) (then (call $say (i32.const 64) (i32.const 1))) (else {SAY}))",
            pages - 1
        );
        flight(&body, "")
    };
    let mib = |n: u64| Bounds {
        memory: n << 20,
        ..Bounds::default()
    };
    for (pages, bounds, expect) in [
        (32, mib(2), "[]\n"),
        (33, mib(2), "["),
        (2048, mib(128), "[]\n"),
        (2049, mib(128), "["),
        (8192, mib(0), "[]\n"),
        (
            65_536,
            Bounds {
                memory: u64::MAX,
                ..Bounds::default()
            },
            "[]\n",
        ),
        (65_537, mib(0), "["),
        (
            1,
            Bounds {
                memory: 65_536,
                ..Bounds::default()
            },
            "[]\n",
        ),
    ] {
        assert_eq!(
            text(&run_in(&grow(pages), bounds).await.unwrap()),
            expect,
            "{pages} pages"
        );
    }
    let refused = run_in(&grow(33), mib(2)).await.unwrap().refused.unwrap();
    assert!(
        refused.to_string().contains("memory limit of 2 MiB"),
        "{refused}"
    );
}

#[tokio::test]
pub(super) async fn a_declared_minimum_over_the_limit_is_an_error() {
    let declares = |pages: &str| with_memory(pages, SAY, "");
    let bounds = Bounds {
        memory: 2 << 20,
        ..Bounds::default()
    };
    check(
        "declared",
        &declares("33"),
        bounds.clone(),
        FlightErrorKind::Bounds,
        &["memory", "2 MiB", "2112 KiB"],
    )
    .await;
    assert_eq!(
        text(&run_in(&declares("32 70"), bounds).await.unwrap()),
        "[]\n"
    );
    let table = flight(SAY, "(table 11 funcref)");
    let bounds = Bounds {
        table_elements: 10,
        ..Bounds::default()
    };
    check(
        "table",
        &table,
        bounds,
        FlightErrorKind::Bounds,
        &["11 table elements", "limit of 10"],
    )
    .await;
}

#[tokio::test]
pub(super) async fn tables_grow_to_the_limit_only() {
    let wasm = flight(
        "(loop $l (br_if $l (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))))
        (if (i32.gt_u (table.size $t) (i32.const 10000)) (then unreachable))
        (if (i32.ne (table.grow $u (ref.null func) (i32.const 1000)) (i32.const -1)) (then unreachable))",
        "(table $t 1 funcref) (table $u 1 funcref)",
    );
    let outcome = run_in(
        &wasm,
        Bounds {
            table_elements: 10_000,
            ..Bounds::default()
        },
    )
    .await
    .unwrap();
    assert!(
        outcome
            .refused
            .unwrap()
            .to_string()
            .contains("limit of 10000")
    );
}

#[tokio::test]
pub(super) async fn many_tables_are_refused() {
    let wasm = flight(SAY, &"(table 1 funcref)".repeat(50));
    let error = run(&wasm).await.unwrap_err();
    assert!(error.to_string().contains("table"), "{error}");
}

#[tokio::test]
pub(super) async fn a_trap_after_a_refusal_names_the_limit() {
    let wasm = flight(
        "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable",
        "",
    );
    let bounds = Bounds {
        memory: 1 << 20,
        ..Bounds::default()
    };
    check(
        "hog",
        &wasm,
        bounds,
        FlightErrorKind::Guest,
        &["unreachable", "out of memory", "memory limit of 1 MiB"],
    )
    .await;
}

#[tokio::test]
pub(super) async fn stdout_is_bounded() {
    let flood = with_memory(
        "17",
        "(loop $l (call $say (i32.const 0) (i32.const 0x100000)) (br $l))",
        "",
    );
    check(
        "flood",
        &flood,
        Bounds::default(),
        FlightErrorKind::Bounds,
        &["output too large", "64 MiB", "stdout"],
    )
    .await;
    let bounds = |stdout| Bounds {
        stdout,
        ..Bounds::default()
    };
    assert_eq!(
        text(&run_in(&flight(SAY, ""), bounds(3)).await.unwrap()),
        "[]\n"
    );
    check(
        "one more",
        &flight(SAY, ""),
        bounds(2),
        FlightErrorKind::Bounds,
        &["2 bytes"],
    )
    .await;
}

#[tokio::test]
pub(super) async fn two_mebibytes_come_out_whole() {
    let wasm = with_memory(
        "33",
        "(memory.fill (i32.const 128) (i32.const 120) (i32.const 0x200000)) (call $say (i32.const 128) (i32.const 0x200000))",
        "",
    );
    assert_eq!(run(&wasm).await.unwrap().stdout, vec![b'x'; 2 << 20]);
}

#[tokio::test]
pub(super) async fn stderr_is_cut_to_its_tail() {
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
