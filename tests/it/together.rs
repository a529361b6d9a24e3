//! Two who work on one release at once are kept apart (R-149), by the claim on it and by the lock.

use std::time::{Duration, Instant};

use atc_tests::eventually;
use serde_json::{Value, json};

use crate::terminal::{Cli, State, stages, state_of};
use crate::world::{LIMIT, configmap, text};

const PAIRS: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn of_two_takeoffs_one_comes_after_the_other_r149() {
    let cli = Cli::new().await;
    for pair in 0..PAIRS {
        let names = [
            format!("both{pair} one{pair}"),
            format!("both{pair}, two{pair}"),
        ];
        let outputs = [stages(&names[0], "one"), stages(&names[1], "two")];
        let run = |output: &Value| cli.start(&cli.yoke, &["takeoff", "r"], output).end();
        let (one, two) = tokio::join!(run(&outputs[0]), run(&outputs[1]));
        let (one, two) = (one.unwrap(), two.unwrap());
        let what = format!("pair {pair}:\n{}\n{}", one.stderr, two.stderr);
        assert_eq!((one.code, two.code), (0, 0), "{what}");
        let (one, two) = (state_of(&names[0], "one"), state_of(&names[1], "two"));
        let last = if cli.state().await == one { one } else { two };
        cli.settled(&last, &State::new(), &what).await;
    }
    assert_eq!(cli.active().await.1, 10, "the history is capped");
    cli.ok(&["mayday", "r"], &Value::Null).await;
    cli.settled(&State::new(), &State::new(), "mayday").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_with_lock_one_is_refused_at_once_r149() {
    let cli = Cli::new().await;
    let mut refused = 0;
    for pair in 0..PAIRS {
        let names = [
            format!("both{pair} one{pair}"),
            format!("both{pair}, two{pair}"),
        ];
        let outputs = [stages(&names[0], "one"), stages(&names[1], "two")];
        let run = |output: &Value| {
            cli.start(&cli.yoke, &["takeoff", "-lock", "r"], output)
                .end()
        };
        let (one, two) = tokio::join!(run(&outputs[0]), run(&outputs[1]));
        let mut last = Vec::new();
        for (ended, names, value) in [(one, &names[0], "one"), (two, &names[1], "two")] {
            let ended = ended.unwrap();
            if ended.code == 0 {
                last.push(state_of(names, value));
                continue;
            }
            refused += 1;
            for words in ["is locked by yoke takeoff", "unlatch"] {
                assert!(ended.stderr.contains(words), "{}", ended.stderr);
            }
        }
        let state = cli.state().await;
        assert!(last.contains(&state), "pair {pair}: {state:?}");
        cli.settled(&state, &State::new(), "one of both").await;
    }
    assert!(refused > 0, "no two of them ever met");
    cli.ok(&["mayday", "r"], &Value::Null).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn takeoff_descent_and_mayday_take_turns_r149() {
    let cli = Cli::new().await;
    for pair in 0..PAIRS {
        cli.ok(&["takeoff", "r"], &stages("a b", "1")).await;
        cli.ok(&["takeoff", "r"], &stages("a, c", "2")).await;
        let output = stages("a d", "3");
        let takeoff = cli.start(&cli.yoke, &["takeoff", "r"], &output).end();
        let other: &[&str] = if pair % 2 == 0 {
            &["descent", "r", "1"]
        } else {
            &["mayday", "r"]
        };
        let other = cli.start(&cli.yoke, other, &Value::Null).end();
        let (takeoff, other) = tokio::join!(takeoff, other);
        let (takeoff, other) = (takeoff.unwrap(), other.unwrap());
        let what = format!("pair {pair}:\n{}\n{}", takeoff.stderr, other.stderr);
        assert_eq!((takeoff.code, other.code), (0, 0), "{what}");
        let after = if pair % 2 == 0 {
            state_of("a b", "1")
        } else {
            State::new()
        };
        let state = cli.state().await;
        assert!(
            state == after || state == state_of("a d", "3"),
            "{state:?} {what}"
        );
        cli.settled(&state, &State::new(), &what).await;
        cli.ok(&["mayday", "r"], &Value::Null).await;
    }
}

/// The intent of a release as somebody on another machine has it.
fn claimed(namespace: &str) -> (String, Value) {
    // The SHA-1 of "r".
    let name = "yoke-intent.4dc7c9ec434ed06502767136789763ec11d2c4b7";
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": name,
            "labels": { "atc.yoke.cd/kind": "intent" },
            "annotations": {
                "atc.yoke.cd/release-name": "r", "atc.yoke.cd/holder": "yoke takeoff of ann on another",
                "atc.yoke.cd/lock": "0123", "atc.yoke.cd/process": "other/boot/1/2",
                "atc.yoke.cd/held-since": "2026-01-01T00:00:00Z", "atc.yoke.cd/renewed-at": "0",
            },
        },
    });
    (
        format!("/api/v1/namespaces/{namespace}/secrets/{name}"),
        secret,
    )
}

/// A holder on another machine, who renews or is dead: nobody here can look at its process.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_who_lives_is_named_and_one_who_is_dead_runs_out_r149() {
    let (alive, dead) = (Cli::new().await, Cli::new().await);
    for cli in [&alive, &dead] {
        let secrets = format!("/api/v1/namespaces/{}/secrets", cli.world.ns);
        cli.world.post(&secrets, &claimed(&cli.world.ns).1).await;
    }
    let taken_over = async {
        let started = Instant::now();
        dead.ok(&["takeoff", "r"], &stages("a", "1")).await;
        let took = started.elapsed();
        assert!(took > Duration::from_secs(14), "{took:?}");
        dead.settled(&state_of("a", "1"), &State::new(), "taken over")
            .await;
    };
    let refused = async {
        let (path, _) = claimed(&alive.world.ns);
        let input = stages("a", "1");
        let run = alive.start(&alive.yoke, &["takeoff", "r"], &input).end();
        tokio::pin!(run);
        let mut renewals = 0;
        let ended = loop {
            tokio::select! {
                ended = &mut run => break ended.unwrap(),
                () = tokio::time::sleep(Duration::from_secs(3)) => {
                    renewals += 1;
                    let renewed = json!({ "metadata": { "annotations": {
                        "atc.yoke.cd/renewed-at": renewals.to_string(),
                    } } });
                    alive.world.merge(&path, &renewed).await;
                }
            }
        };
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        for words in ["\"r\"", "yoke takeoff of ann on another", "30s", "unlatch"] {
            assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
        }
        assert!(alive.state().await.is_empty());
        assert_eq!(
            alive.world.get(&path).await.unwrap().unwrap()["metadata"]["annotations"]["atc.yoke.cd/lock"],
            "0123"
        );
        // Whoever knows that it is dead says so.
        let ran = alive.ok(&["unlatch", "r"], &Value::Null).await;
        assert!(ran.stderr.contains("ann on another"), "{}", ran.stderr);
        alive.ok(&["takeoff", "r"], &stages("a", "2")).await;
        alive
            .settled(&state_of("a", "2"), &State::new(), "unlatched")
            .await;
    };
    tokio::join!(taken_over, refused);
}

/// Who has lost its claim writes nothing more.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_who_is_unlatched_stops() {
    let cli = Cli::new().await;
    let mut stuck = crate::world::deployment("d", 1);
    stuck["spec"]["template"]["spec"]["nodeSelector"] = json!({ "no": "such" });
    let input = json!([[stuck], [configmap("late", json!({}))]]);
    let run = cli.start(&cli.yoke, &["takeoff", "r"], &input);
    eventually(LIMIT, "it is held", || async {
        let intents = cli.intents().await;
        Ok(intents
            .first()
            .filter(|intent| text(&intent["data"]["inventory"]).len() > 60)
            .map(|_| ()))
    })
    .await;
    cli.ok(&["unlatch", "r"], &Value::Null).await;
    let ended = run.end().await.unwrap();
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("ended by somebody else"),
        "{}",
        ended.stderr
    );
    assert!(cli.state().await.is_empty());
    assert!(cli.world.revisions().await.is_empty());
    // What it made is known.
    cli.ok(&["mayday", "r"], &Value::Null).await;
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/d", cli.world.ns);
    assert!(cli.world.get(&path).await.unwrap().is_none());
    assert!(cli.intents().await.is_empty());
}

/// A lock breaks no reader, and stops those only who want it.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_a_sign_for_those_who_look() {
    let cli = Cli::new().await;
    let world = &cli.world;
    cli.ok(&["takeoff", "r"], &stages("a", "1")).await;
    cli.ok(&["takeoff", "r"], &stages("a", "2")).await;
    // As the existing tool writes it: for ever.
    let name = "yoke.4dc7c9ec434ed06502767136789763ec11d2c4b7";
    let secrets = format!("/api/v1/namespaces/{}/secrets", world.ns);
    let lock = json!({ "metadata": {
        "name": name, "labels": { "internal.yoke/kind": "lock", "internal.yoke/release": "r" },
    } });
    world.post(&secrets, &lock).await;
    let input = stages("a", "3").to_string();
    for command in [
        &["takeoff", "-lock", "r"][..],
        &["descent", "-lock", "r", "1"],
    ] {
        cli.fails(
            command,
            &input,
            &["\"r\" is locked by another process", "unlatch"],
        )
        .await;
    }
    assert_eq!(cli.state().await, state_of("a", "2"));
    let diff = cli
        .ok(&["takeoff", "-diff-only", "r"], &stages("a", "2"))
        .await;
    assert_eq!(diff.stdout, "");
    cli.ok(&["takeoff", "r"], &stages("a", "3")).await;
    let ran = cli.ok(&["unlock", "r"], &Value::Null).await;
    assert_eq!(ran.stdout, "");
    let ran = cli.ok(&["unlatch", "r"], &Value::Null).await;
    assert!(ran.stderr.starts_with("warning: "), "{}", ran.stderr);
    // One of ours whose holder has not renewed it for long is void.
    let mut old = lock.clone();
    old["metadata"]["annotations"] = json!({ "atc.yoke.cd/renewed-at": "2026-01-01T00:00:00Z" });
    world.post(&secrets, &old).await;
    cli.ok(&["takeoff", "-lock", "r"], &stages("a", "4")).await;
    assert!(
        world
            .get(&world.core("secrets", name))
            .await
            .unwrap()
            .is_none()
    );
    cli.settled(&state_of("a", "4"), &State::new(), "unlocked")
        .await;
}
