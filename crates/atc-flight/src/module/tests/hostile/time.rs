//! Guests that never end.

use super::*;

const LIMIT: Duration = Duration::from_millis(30);
/// How late the end may come.
const LATE: Duration = Duration::from_millis(200);

/// Endless in a loop, in a sleep, in the host: stopped at the limit, within 0.2 s.
#[tokio::test]
pub(super) async fn the_time_limit_stops_everything_r131_r133() {
    let sleep = |clock: u8, flags: u16, nanos: u64| {
        format!(
            "(i32.store8 (i32.const 520) (i32.const 0)) (i32.store (i32.const 528) (i32.const {clock}))
            (i64.store (i32.const 536) (i64.const {nanos})) (i32.store16 (i32.const 552) (i32.const {flags}))
            (drop (call $poll_oneoff (i32.const 512) (i32.const 600) (i32.const 1) (i32.const 700)))"
        )
    };
    let far = 4_000_000_000_000_000_000;
    let slow = Arc::new(Cluster {
        delay: Duration::from_mins(1),
        ..Cluster::new(Ok("{}"))
    });
    for (name, wasm) in [
        ("loop", flight("(loop br 0)", "")),
        (
            "start section",
            flight("", "(func $first (loop br 0)) (start $first)"),
        ),
        ("sleep", flight(&sleep(1, 0, 60_000_000_000), "")),
        ("sleep until far away", flight(&sleep(0, 1, far), "")),
        ("sleep long", flight(&sleep(1, 0, u64::MAX >> 1), "")),
        (
            "sleeps",
            flight(&format!("(loop $l {} (br $l))", sleep(1, 0, 1_000)), ""),
        ),
        ("host", flight(&look(), &format!("{NAMES}{MALLOC}"))),
        (
            "malloc",
            flight(
                &look(),
                &format!(
                    r#"{NAMES}(func (export "malloc") (param i32) (result i64) (loop br 0) (i64.const 0))"#
                ),
            ),
        ),
        (
            "calls",
            flight(
                "(loop $l (drop (call $fd_prestat_get (i32.const 3) (i32.const 200))) (br $l))",
                "",
            ),
        ),
        (
            "stderr",
            flight(
                "(loop $l (call $cry (i32.const 0) (i32.const 65536)) (br $l))",
                "",
            ),
        ),
        (
            "memory",
            with_memory(
                "1024",
                "(loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x4000000)) (br $l))",
                "",
            ),
        ),
    ] {
        let module = module(&wasm).await.unwrap();
        let cluster = if name == "malloc" {
            Arc::new(Cluster::new(Ok("{}")))
        } else {
            slow.clone()
        };
        let mut late = Vec::new();
        let error = loop {
            let invocation = Invocation {
                bounds: within(LIMIT),
                ..Invocation::default()
            };
            let started = Instant::now();
            let error = module
                .run(invocation, cluster.clone())
                .await
                .expect_err(name);
            let took = started.elapsed();
            assert!(took >= LIMIT, "{name}: {took:?}");
            if took < LIMIT + LATE {
                break error;
            }
            // A busy machine may be late, but not each time.
            late.push(took);
            assert!(late.len() < 10, "{name}: {late:?}");
        };
        assert_eq!(error.kind(), FlightErrorKind::Time, "{name}: {error}");
        assert!(
            error.to_string().contains("time limit of 30ms"),
            "{name}: {error}"
        );
    }
}

#[tokio::test]
pub(super) async fn no_limit_is_no_limit() {
    let body = format!(
        "(i32.store (i32.const 528) (i32.const 1)) (i64.store (i32.const 536) (i64.const 300000000))
        (drop (call $poll_oneoff (i32.const 512) (i32.const 600) (i32.const 1) (i32.const 700))) {SAY}"
    );
    let started = Instant::now();
    let outcome = run_in(
        &flight(&body, ""),
        Bounds {
            time: None,
            ..Bounds::default()
        },
    )
    .await
    .unwrap();
    assert_eq!(text(&outcome), "[]\n");
    assert!(started.elapsed() >= Duration::from_millis(300));
    assert!(
        run_in(&flight(SAY, ""), within(Duration::MAX))
            .await
            .is_ok()
    );
    assert_eq!(
        run_in(&flight("(loop br 0)", ""), within(Duration::ZERO))
            .await
            .unwrap_err()
            .kind(),
        FlightErrorKind::Time
    );
}

#[tokio::test]
pub(super) async fn the_tail_of_stderr_comes_with_a_time_out() {
    let wasm = flight("(call $cry (i32.const 64) (i32.const 2)) (loop br 0)", "");
    assert_eq!(
        run_in(&wasm, within(Duration::from_millis(50)))
            .await
            .unwrap_err()
            .stderr(),
        "[]"
    );
}
