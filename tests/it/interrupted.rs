//! Commands that end in the middle: killed at each write and at random, cut off, refused, told to stop (R-147). Whatever
//! comes next reaches its state, leaves nothing behind and touches nothing of others.

use std::time::{Duration, SystemTime};

use atc_tests::{Fault, Proxy, Yoke, YokeOutput, YokeRun, eventually};
use serde_json::{Value, json};

use crate::killed::Random;
use crate::terminal::{Cli, State, stages, state_of};
use crate::world::{LIMIT, configmap, deployment, text};

/// More writes than any of these commands makes.
const WRITES: u32 = 40;
/// The longest that a random kill waits.
const KILL_MS: u64 = 400;
const ROUNDS: u64 = 20;

/// What stands before a command is interrupted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Before {
    Nothing,
    /// Two revisions.
    Running,
    /// The same, and a third takeoff that failed half-way.
    Failed,
}

impl Before {
    async fn make(self, cli: &Cli) {
        if self == Self::Nothing {
            return;
        }
        cli.ok(&["takeoff", "r"], &stages("a b, c", "1")).await;
        cli.ok(&["takeoff", "r"], &stages("a g, h", "2")).await;
        if self == Self::Failed {
            let proxy = Proxy::start(cli.world.cluster.plane()).await.unwrap();
            let yoke = Yoke::through(cli.world.cluster.plane(), &proxy).unwrap();
            proxy.fail("configmaps/y?", Fault::Status(403, None));
            let failing = stages("a x, y", "3").to_string();
            let ran = cli
                .run_by(&yoke, &["takeoff", "-skip-dry-run", "r"], &failing)
                .await;
            assert_eq!(ran.code, 1, "{}", ran.stderr);
            assert!(cli.state().await.contains_key("x"), "{}", ran.stderr);
        }
    }
}

/// The run's end, or nothing when the write came at which it is killed.
async fn end_or_kill(run: YokeRun, proxy: &Proxy) -> Option<YokeOutput> {
    let signals = run.signals();
    let end = run.end();
    tokio::pin!(end);
    tokio::select! {
        ended = &mut end => Some(ended.unwrap()),
        () = proxy.ended() => {
            signals("KILL");
            end.await.unwrap();
            None
        }
    }
}

/// Kills a command at each of its writes, by turns before the server does it and after, and lets another come after it.
async fn killed_at_each_write(before: Before, command: &[&str], at_least: u32) {
    let new = stages("a d, e", "4");
    for writes in 0.. {
        assert!(writes < WRITES, "{command:?} goes on");
        let fault = if writes % 2 == 0 {
            Fault::Cut
        } else {
            Fault::LoseAnswer
        };
        let what = format!("{before:?} {command:?} {fault:?} after {writes}");
        let cli = Cli::new().await;
        let theirs = strangers(&cli).await;
        before.make(&cli).await;
        let proxy = Proxy::start(cli.world.cluster.plane()).await.unwrap();
        let yoke = Yoke::through(cli.world.cluster.plane(), &proxy).unwrap();
        proxy.end_after(writes, fault);
        let run = cli.start(&yoke, command, &new);
        if let Some(ended) = end_or_kill(run, &proxy).await {
            assert_eq!(ended.code, 0, "{what}: {}", ended.stderr);
            assert!(writes >= at_least, "{what}: done");
            assert!(cli.intents().await.is_empty(), "{what}");
            return;
        }
        next(&cli, writes, &theirs, &what).await;
    }
}

/// Objects that look like the release's, and are not.
async fn strangers(cli: &Cli) -> State {
    let world = &cli.world;
    let path = format!("/api/v1/namespaces/{}/configmaps", world.ns);
    let mut copied = configmap("copied", json!({ "by": "hand" }));
    copied["metadata"]["labels"] = json!({ "app.kubernetes.io/managed-by": "yoke" });
    copied["metadata"]["annotations"] = json!({
        "instance.atc.yoke.cd/release": "r", "instance.atc.yoke.cd/namespace": world.ns,
    });
    world.post(&path, &copied).await;
    State::from([("copied".to_owned(), json!({ "by": "hand" }))])
}

/// What comes after the kill: one of all commands, and then the end of the release.
async fn next(cli: &Cli, turn: u32, theirs: &State, what: &str) {
    let mut theirs = theirs.clone();
    // Somebody makes by hand what was not made any more, and it is theirs.
    let path = format!("/api/v1/namespaces/{}/configmaps", cli.world.ns);
    if turn.is_multiple_of(2) && cli.world.configmap("e").await.is_none() {
        let by_hand = configmap("e", json!({ "by": "hand" }));
        cli.world.post(&path, &by_hand).await;
        theirs.insert("e".to_owned(), json!({ "by": "hand" }));
    }
    match turn % 3 {
        0 => {
            cli.ok(&["takeoff", "r"], &stages("a f", "5")).await;
            cli.settled(&state_of("a f", "5"), &theirs, what).await;
        }
        1 => {
            cli.ok(&["takeoff", "r"], &stages("f, c", "5")).await;
            cli.settled(&state_of("f c", "5"), &theirs, what).await;
            if cli.active().await.1 > 1 {
                cli.ok(&["takeoff", "r"], &json!([])).await;
                cli.settled(&State::new(), &theirs, what).await;
            }
        }
        _ => {}
    }
    cli.ok(&["mayday", "r"], &Value::Null).await;
    cli.settled(&State::new(), &theirs, what).await;
    assert!(cli.world.revisions().await.is_empty(), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_takeoff_killed_at_each_write_r147() {
    // Claim, inventory, three objects, revision, end of the claim.
    killed_at_each_write(Before::Nothing, &["takeoff", "r"], 7).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pruning_takeoff_killed_at_each_write_r147() {
    // And two removals.
    killed_at_each_write(Before::Running, &["takeoff", "r"], 9).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_takeoff_after_a_failed_one_killed_at_each_write_r147() {
    killed_at_each_write(Before::Failed, &["takeoff", "r"], 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_descent_killed_at_each_write_r147() {
    // Claim, three objects, the revision becomes active, three removals, end of the claim.
    killed_at_each_write(Before::Failed, &["descent", "r", "1"], 9).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mayday_killed_at_each_write_r147() {
    // Claim, four objects, two revisions, end of the claim.
    killed_at_each_write(Before::Failed, &["mayday", "r"], 8).await;
}

/// Commands of all sorts on one release, each killed at some moment, each followed by one that is not.
async fn killed_at_random(before: Before) {
    let seed = SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
    let mut random = Random(u64::from(seed));
    let cli = Cli::new().await;
    let theirs = strangers(&cli).await;
    before.make(&cli).await;
    let pool = ["a", "b", "c", "d", "e", "f"];
    let some = |random: &mut Random| {
        let mut stages = [String::new(), String::new()];
        for name in pool {
            let stage = usize::try_from(random.below(4)).unwrap();
            if let Some(stage) = stages.get_mut(stage) {
                stage.push_str(name);
                stage.push(' ');
            }
        }
        stages.join(",")
    };
    for round in 0..ROUNDS {
        let killed = stages(&some(&mut random), &format!("killed {round}"));
        let revision = format!("{}", 1 + random.below(3));
        let command: &[&str] = match random.below(5) {
            0 => &["mayday", "r"],
            1 => &["descent", "r", &revision],
            2 => &["takeoff", "-lock", "r"],
            _ => &["takeoff", "-force-conflicts", "r"],
        };
        let what = format!("{before:?}, seed {seed}, round {round}, {command:?}");
        let run = cli.start(&cli.yoke, command, &killed);
        let signals = run.signals();
        let after = Duration::from_millis(random.below(KILL_MS));
        let kill = async {
            tokio::time::sleep(after).await;
            signals("KILL");
        };
        let (ended, ()) = tokio::join!(run.end(), kill);
        ended.unwrap();
        // What a lock is for: somebody must say that it is void.
        cli.ok(&["unlatch", "r"], &Value::Null).await;
        let (names, value) = (some(&mut random), format!("kept {round}"));
        cli.ok(&["takeoff", "r"], &stages(&names, &value)).await;
        cli.settled(&state_of(&names, &value), &theirs, &what).await;
    }
    cli.ok(&["mayday", "r"], &Value::Null).await;
    cli.settled(&State::new(), &theirs, "mayday").await;
    assert!(cli.world.revisions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_random_from_nothing_r147() {
    killed_at_random(Before::Nothing).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_random_while_running_r147() {
    killed_at_random(Before::Running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_random_after_a_failure_r147() {
    killed_at_random(Before::Failed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_once_leaves_no_half_record_r145() {
    let cli = Cli::new().await;
    let proxy = Proxy::start(cli.world.cluster.plane()).await.unwrap();
    let yoke = Yoke::through(cli.world.cluster.plane(), &proxy).unwrap();
    let faults = [
        Fault::Status(429, Some(1)),
        Fault::Status(500, None),
        Fault::Status(503, None),
        Fault::Cut,
        Fault::LoseAnswer,
    ];
    let mut round = 0;
    for fault in faults {
        for request in ["POST ", "PUT ", "PATCH ", "DELETE ", "GET "] {
            round += 1;
            let what = format!("{fault:?} of one {request}");
            let (one, two) = (format!("a b{round}, c{round}"), format!("a, d{round}"));
            cli.ok(&["takeoff", "r"], &stages(&one, "one")).await;
            proxy.fail_times(request, fault.clone(), 1);
            let input = stages(&two, &what).to_string();
            let ran = cli
                .run_by(&yoke, &["takeoff", "-skip-dry-run", "r"], &input)
                .await;
            proxy.heal();
            match ran.code {
                0 => {}
                1 => {
                    assert!(ran.stderr.starts_with("error: "), "{what}: {}", ran.stderr);
                    assert_eq!(ran.stdout, "", "{what}");
                    cli.ok(&["takeoff", "r"], &stages(&two, &what)).await;
                }
                code => panic!("{what}: {code}: {}", ran.stderr),
            }
            cli.settled(&state_of(&two, &what), &State::new(), &what)
                .await;
            if !matches!(fault, Fault::Status(500, _)) {
                assert_eq!(ran.code, 0, "{what}: {}", ran.stderr);
            }
        }
    }
    cli.ok(&["mayday", "r"], &Value::Null).await;
    cli.settled(&State::new(), &State::new(), "mayday").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_leaves_no_lock_and_nobody_who_holds() {
    for signal in ["INT", "TERM"] {
        let cli = Cli::new().await;
        cli.ok(&["takeoff", "r"], &stages("a", "1")).await;
        let mut stuck = deployment("d", 1);
        stuck["spec"]["template"]["spec"]["nodeSelector"] = json!({ "no": "such" });
        let input = json!([
            [configmap("b", json!({})), stuck],
            [configmap("c", json!({}))]
        ]);
        let run = cli.start(&cli.yoke, &["takeoff", "-lock", "r"], &input);
        let deployments = format!("/apis/apps/v1/namespaces/{}/deployments/d", cli.world.ns);
        eventually(LIMIT, "the first stage is applied", || async {
            cli.world.get(&deployments).await
        })
        .await;
        run.signals()(signal);
        let ended = run.end().await.unwrap();
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
        assert!(ended.stderr.contains("interrupted"), "{}", ended.stderr);
        let locks = format!(
            "/api/v1/namespaces/{}/secrets?labelSelector=internal.yoke%2Fkind%3Dlock",
            cli.world.ns
        );
        assert!(cli.world.cluster.api.list(&locks).await.unwrap().is_empty());
        // What was made is still known, and nobody is at it.
        let intent = cli.intents().await.remove(0);
        let annotations = &intent["metadata"]["annotations"];
        assert_eq!(*annotations, json!({ "atc.yoke.cd/release-name": "r" }));
        assert!(text(&intent["data"]["inventory"]).len() > 20);
        cli.ok(&["takeoff", "-lock", "r"], &stages("a", "2")).await;
        cli.settled(&state_of("a", "2"), &State::new(), signal)
            .await;
        assert!(cli.world.get(&deployments).await.unwrap().is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_goes_meanwhile_is_no_trap() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let (home, other) = (world.namespace().await, world.namespace().await);
    let there = |name: &str| {
        let mut object = configmap(name, json!({ "k": "v" }));
        object["metadata"]["namespace"] = other.as_str().into();
        object
    };
    let run = async |arguments: &[&str], input: Value| {
        let mut all = vec![arguments[0], "-namespace", &home];
        all.extend(&arguments[1..]);
        cli.yoke.with_input(&all, &input.to_string()).await.unwrap()
    };
    let all = json!([configmap("here", json!({})), there("there")]);
    let ran = run(&["takeoff", "-cross-namespace", "r"], all).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // It is held up by something in it, and so are its revisions.
    let secrets = format!("/api/v1/namespaces/{home}/secrets");
    let path = format!("/api/v1/namespaces/{home}");
    for secret in world.cluster.api.list(&secrets).await.unwrap() {
        let name = text(&secret["metadata"]["name"]);
        let hold = json!({ "metadata": { "finalizers": ["tests.atc.dev/hold"] } });
        world.merge(&format!("{secrets}/{name}"), &hold).await;
    }
    world.delete(&path).await;
    let ran = run(&["takeoff", "-cross-namespace", "r"], json!([there("new")])).await;
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("terminat"), "{}", ran.stderr);
    let ran = run(&["mayday", "r"], Value::Null).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(world.configmaps(&other).await.is_empty());
    for secret in world.cluster.api.list(&secrets).await.unwrap() {
        let name = text(&secret["metadata"]["name"]);
        let free = json!({ "metadata": { "finalizers": null } });
        world.merge(&format!("{secrets}/{name}"), &free).await;
    }
    world.gone(&path).await;
}
