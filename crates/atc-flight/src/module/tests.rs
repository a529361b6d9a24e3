use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use atc_api::{HostFailure, LookupRequest, State};
use sha2::Digest as _;

use super::*;
use crate::testkit::*;
use crate::{Bounds, FlightErrorKind, NoCluster, StderrSink};

mod hostile;

fn text(outcome: &Outcome) -> &str {
    std::str::from_utf8(&outcome.stdout).unwrap()
}

#[tokio::test]
async fn prints_what_it_prints() {
    let outcome = run(&flight(SAY, "")).await.unwrap();
    assert_eq!(
        (text(&outcome), outcome.exit, outcome.stderr.as_str()),
        ("[]\n", 0, "")
    );
}

#[tokio::test]
async fn the_digest_is_of_the_bytes() {
    let wasm = flight(SAY, "");
    assert_eq!(
        module(&wasm).await.unwrap().digest(),
        hex::encode(sha2::Sha256::digest(&wasm))
    );
}

#[tokio::test]
async fn without_start_nothing_runs_but_the_start_section() {
    let none = assemble(
        r#"(module (memory (export "memory") 1) (func (export "_initialize") unreachable))"#,
    );
    assert_eq!(text(&run(&none).await.unwrap()), "");
    let section = flight(
        SAY,
        "(func $first (i32.store8 (i32.const 64) (i32.const 123))) (start $first)",
    );
    assert_eq!(text(&run(&section).await.unwrap()), "{]\n");
}

#[tokio::test]
async fn exit_codes_are_outcomes_and_keep_the_output_r141() {
    for code in [0, 1, 2, 125, 126, 137, 255, -1, i32::MIN] {
        let wasm = flight(
            &format!(
                "{SAY} (call $cry (i32.const 64) (i32.const 2)) (call $proc_exit (i32.const {code})) unreachable"
            ),
            "",
        );
        let outcome = run(&wasm).await.unwrap();
        assert_eq!(
            (outcome.exit, text(&outcome), outcome.stderr.as_str()),
            (code, "[]\n", "[]")
        );
    }
}

#[tokio::test]
async fn stdin_then_end_of_file() {
    // Reads pieces of 1000 bytes to 1024 and prints them until there are none.
    let cat = flight(
        "(i32.store (i32.const 20) (i32.const 1024)) (i32.store (i32.const 24) (i32.const 1000))
        (block $end (loop $more
            (br_if $end (call $fd_read (i32.const 0) (i32.const 20) (i32.const 1) (i32.const 28)))
            (br_if $end (i32.eqz (i32.load (i32.const 28))))
            (call $say (i32.const 1024) (i32.load (i32.const 28))) (br $more)))",
        "",
    );
    for stdin in [vec![], b"hi".to_vec(), b"\0\xff\r\n".repeat(100_000)] {
        let invocation = Invocation {
            stdin: stdin.clone().into(),
            ..Invocation::default()
        };
        let outcome = run_with(&cat, invocation, Arc::new(Cluster::new(Ok(""))))
            .await
            .unwrap();
        assert_eq!(outcome.stdout, stdin);
    }
}

#[tokio::test]
async fn only_the_given_arguments_and_environment() {
    let print = |kind: &str| {
        let body = format!(
            "(drop (call ${kind}_sizes_get (i32.const 32) (i32.const 36))) (drop (call ${kind}_get (i32.const 1024) (i32.const 4096)))
            (call $say (i32.const 4096) (i32.load (i32.const 36)))"
        );
        flight(&body, "")
    };
    let invocation = Invocation {
        args: ["rel", "a b", "", "-x", "é"].map(str::to_owned).to_vec(),
        env: vec![
            ("A".to_owned(), "1=2".to_owned()),
            ("B".to_owned(), String::new()),
        ],
        ..Invocation::default()
    };
    let cluster = || Arc::new(Cluster::new(Ok("")));
    assert_eq!(
        text(
            &run_with(&print("args"), invocation.clone(), cluster())
                .await
                .unwrap()
        ),
        "rel\0a b\0\0-x\0é\0"
    );
    assert_eq!(
        text(
            &run_with(&print("environ"), invocation, cluster())
                .await
                .unwrap()
        ),
        "A=1=2\0B=\0"
    );
    assert_eq!(text(&run(&print("environ")).await.unwrap()), "");
}

#[tokio::test]
async fn no_files_and_no_sockets() {
    let body = format!(
        "(if (i32.eqz (call $fd_prestat_get (i32.const 3) (i32.const 200))) (then unreachable))
        (if (i32.eqz (call $sock_accept (i32.const 3) (i32.const 0) (i32.const 200))) (then unreachable))
        (if (i32.eqz (call $path_open (i32.const 3) (i32.const 0) (i32.const 80) (i32.const 11) (i32.const 0) (i64.const 2)
            (i64.const 2) (i32.const 0) (i32.const 200))) (then unreachable)) {SAY}"
    );
    let wasm = flight(&body, r#"(data (i32.const 80) "/etc/passwd")"#);
    assert_eq!(text(&run(&wasm).await.unwrap()), "[]\n");
}

#[tokio::test]
async fn clocks_and_randomness_are_real() {
    let wall = flight(
        "(drop (call $clock_time_get (i32.const 0) (i64.const 0) (i32.const 64))) (call $say (i32.const 64) (i32.const 8))
        (drop (call $random_get (i32.const 64) (i32.const 8))) (call $say (i32.const 64) (i32.const 8))",
        "",
    );
    let parts = |outcome: Outcome| {
        let (time, random) = outcome.stdout.split_at(8);
        (
            u64::from_le_bytes(time.try_into().unwrap()),
            random.to_vec(),
        )
    };
    let (one, other) = (
        parts(run(&wall).await.unwrap()),
        parts(run(&wall).await.unwrap()),
    );
    let now = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap()
        .as_nanos();
    assert!(now.abs_diff(u128::from(one.0)) < 60_000_000_000 && one.0 < other.0);
    assert_ne!(one.1, other.1);
}

#[tokio::test]
async fn stderr_is_streamed_and_its_tail_kept() {
    let got = Arc::new(Mutex::new(Vec::new()));
    let sink = got.clone();
    let wasm = flight(
        &format!(
            "(call $cry (i32.const 64) (i32.const 3)) (call $cry (i32.const 64) (i32.const 2)) {SAY}"
        ),
        "",
    );
    let invocation = Invocation {
        stderr: StderrSink::Stream(Arc::new(move |bytes| {
            sink.lock().unwrap().extend_from_slice(bytes);
        })),
        bounds: Bounds {
            stderr_tail: 4,
            ..Bounds::default()
        },
        ..Invocation::default()
    };
    let outcome = run_with(&wasm, invocation, Arc::new(Cluster::new(Ok(""))))
        .await
        .unwrap();
    assert_eq!(
        (got.lock().unwrap().as_slice(), outcome.stderr.as_str()),
        (&b"[]\n[]"[..], "]\n[]")
    );
}

#[tokio::test]
async fn a_lookup_is_asked_and_answered() {
    let cluster = Arc::new(Cluster::new(Ok(r#"{"a":1}"#)));
    let wasm = flight(
        &format!("(i32.store (i32.const 40) (i32.const 0)) {}", look()),
        &format!("{NAMES}{MALLOC}"),
    );
    let outcome = run_with(&wasm, Invocation::default(), cluster.clone())
        .await
        .unwrap();
    assert_eq!(text(&outcome), r#"{"a":1}"#);
    let asked = LookupRequest {
        name: "name".into(),
        namespace: String::new(),
        kind: "ConfigMap".into(),
        api_version: "v1".into(),
    };
    assert_eq!(*cluster.lookups.lock().unwrap(), [asked]);
}

#[tokio::test]
async fn a_mapping_is_asked_and_answered() {
    let cluster = Arc::new(Cluster::new(Ok("{}")));
    let body = format!(
        "(drop (call $mapping (i32.const 40) {} {}))",
        packed(113, 2),
        packed(104, 9)
    );
    run_with(
        &flight(&body, &format!("{NAMES}{MALLOC}")),
        Invocation::default(),
        cluster.clone(),
    )
    .await
    .unwrap();
    let asked = cluster.mappings.lock().unwrap().clone();
    assert_eq!(
        (asked[0].api_version.as_str(), asked[0].kind.as_str()),
        ("v1", "ConfigMap")
    );
}

/// The state's number, little endian, touches nothing around it, and comes with the text.
#[tokio::test]
async fn failures_have_a_state_and_a_text() {
    let body = format!(
        "(i32.store8 (i32.const 39) (i32.const 90)) (i32.store8 (i32.const 44) (i32.const 91)) {} (call $say (i32.const 39) (i32.const 6))",
        look()
    );
    let wasm = flight(&body, &format!("{NAMES}{MALLOC}"));
    for (state, number) in [
        (State::FeatureNotGranted, 1),
        (State::Error, 2),
        (State::NotFound, 3),
        (State::Unauthenticated, 4),
        (State::Forbidden, 5),
        (State::Ok, 2),
    ] {
        let cluster = Arc::new(Cluster::new(Err(HostFailure::new(state, "why"))));
        let outcome = run_with(&wasm, Invocation::default(), cluster)
            .await
            .unwrap();
        assert_eq!(
            outcome.stdout,
            [b"whyZ".as_slice(), &[number, 0, 0, 0], b"["].concat()
        );
    }
    let denied = module(&wasm)
        .await
        .unwrap()
        .run(Invocation::default(), Arc::new(NoCluster))
        .await
        .unwrap();
    assert!(String::from_utf8_lossy(&denied.stdout).contains("not granted"));
}

#[tokio::test]
async fn a_success_leaves_the_state_alone() {
    let body = format!(
        "(i32.store (i32.const 40) (i32.const 7)) {} (call $say (i32.const 40) (i32.const 4))",
        look()
    );
    let outcome = run(&flight(&body, &format!("{NAMES}{MALLOC}")))
        .await
        .unwrap();
    assert_eq!(outcome.stdout, b"{}\x07\0\0\0".as_slice());
}

#[tokio::test]
async fn the_state_is_written_before_malloc_is_called() {
    let seen = MALLOC.replace(
        "(local.set $at (global.get $next))",
        "(local.set $at (global.get $next)) (i32.store8 (i32.const 64) (i32.add (i32.const 48) (i32.load (i32.const 40))))",
    );
    let wasm = flight(
        &format!("{} (call $say (i32.const 64) (i32.const 1))", look()),
        &format!("{NAMES}{seen}"),
    );
    let cluster = Arc::new(Cluster::new(Err(HostFailure::new(State::Forbidden, "no"))));
    assert_eq!(
        text(
            &run_with(&wasm, Invocation::default(), cluster)
                .await
                .unwrap()
        ),
        "no5"
    );
}

#[tokio::test]
async fn memory_may_grow_in_malloc() {
    let grow = r#"(func (export "malloc") (param i32) (result i64)
        (i64.or (i64.shl (i64.extend_i32_u (i32.mul (memory.grow (i32.const 40)) (i32.const 65536))) (i64.const 32))
            (i64.extend_i32_u (local.get 0))))"#;
    assert_eq!(
        text(
            &run(&flight(&look(), &format!("{NAMES}{grow}")))
                .await
                .unwrap()
        ),
        "{}"
    );
}

#[tokio::test]
async fn an_empty_answer_needs_no_malloc() {
    let wasm = flight(&format!("{} {SAY}", look()), NAMES);
    let outcome = run_with(&wasm, Invocation::default(), Arc::new(Cluster::new(Ok(""))))
        .await
        .unwrap();
    assert_eq!(text(&outcome), "[]\n");
    assert_eq!(
        text(&run(&flight(SAY, "")).await.unwrap()),
        "[]\n",
        "and so does a guest that asks nothing"
    );
}

#[tokio::test]
async fn strings_that_are_no_text_are_an_answer() {
    let body = format!(
        "(i32.store16 (i32.const 100) (i32.const 0xfffe)) {} (call $say (i32.const 40) (i32.const 1))",
        look()
    );
    let cluster = Arc::new(Cluster::new(Ok("{}")));
    let outcome = run_with(
        &flight(&body, &format!("{NAMES}{MALLOC}")),
        Invocation::default(),
        cluster.clone(),
    )
    .await
    .unwrap();
    assert_eq!(text(&outcome), "the name is not UTF-8\x02");
    assert!(cluster.lookups.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_million_things_can_run_at_once() {
    let wasm = flight(SAY, "");
    let module = module(&wasm).await.unwrap();
    let runs: Vec<_> = (0..200)
        .map(|_| {
            let module = module.clone();
            tokio::spawn(
                async move { module.run(Invocation::default(), Arc::new(NoCluster)).await },
            )
        })
        .collect();
    for run in runs {
        assert_eq!(text(&run.await.unwrap().unwrap()), "[]\n");
    }
}

/// Thirty-two flights that never end, on however few threads: a good one and the limits come through.
#[tokio::test]
async fn a_good_flight_among_endless_ones_r133() {
    let endless = module(&flight("(loop br 0)", "")).await.unwrap();
    let limit = Duration::from_secs(3);
    let started = Instant::now();
    let loops: Vec<_> = (0..32)
        .map(|_| {
            let endless = endless.clone();
            let invocation = Invocation {
                bounds: within(limit),
                ..Invocation::default()
            };
            tokio::spawn(async move {
                let error = endless
                    .run(invocation, Arc::new(NoCluster))
                    .await
                    .unwrap_err();
                assert_eq!(error.kind(), FlightErrorKind::Time);
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let good = Instant::now();
    assert_eq!(
        text(
            &run(&flight(&look(), &format!("{NAMES}{MALLOC}")))
                .await
                .unwrap()
        ),
        "{}"
    );
    assert!(
        good.elapsed() < Duration::from_secs(2),
        "{:?}",
        good.elapsed()
    );
    for run in loops {
        run.await.unwrap();
    }
    assert!(
        started.elapsed() < limit + Duration::from_secs(1),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn dropping_the_future_stops_the_run() {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    // The sink lives as long as the run.
    let sender = Mutex::new(sender);
    let invocation = Invocation {
        bounds: Bounds {
            time: None,
            ..Bounds::default()
        },
        stderr: StderrSink::Stream(Arc::new(move |_| {
            let _ = sender.lock().unwrap().send(());
        })),
        ..Invocation::default()
    };
    let endless = flight("(call $cry (i32.const 64) (i32.const 1)) (loop br 0)", "");
    let run = tokio::spawn(async move {
        run_with(&endless, invocation, Arc::new(Cluster::new(Ok("")))).await
    });
    let receiver = tokio::task::spawn_blocking(move || {
        receiver.recv().unwrap();
        receiver
    });
    let receiver = receiver.await.unwrap();
    run.abort();
    let gone = tokio::task::spawn_blocking(move || receiver.recv_timeout(Duration::from_secs(5)));
    assert_eq!(
        gone.await.unwrap(),
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected)
    );
}

#[tokio::test]
async fn secrets_do_not_show_in_debug_output() {
    let invocation = Invocation {
        stdin: "hunter2".into(),
        env: vec![("PASSWORD".to_owned(), "hunter2".to_owned())],
        args: vec!["hunter2".to_owned()],
        ..Invocation::default()
    };
    assert!(!format!("{invocation:?}").contains("hunter2"));
    let outcome = Outcome {
        stdout: "hunter2".into(),
        stderr: String::new(),
        exit: 0,
        refused: None,
    };
    assert!(!format!("{outcome:?}").contains("hunter2"));
}
