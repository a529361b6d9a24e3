//! An account that may do what the existing tool's takeoff needs and nothing more: of Secrets `get`, `list`, `create` and
//! `delete`, of the release's resources `get`, `patch`, `create` and `delete`. What this program writes over elsewhere is
//! deleted and created by it.

use std::collections::BTreeSet;

use atc_tests::{Yoke, YokeOutput, eventually};
use serde_json::{Value, json};

use crate::accounts::Accounts;
use crate::terminal::{Cli, State, stages, state_of};
use crate::world::{LIMIT, configmap, deployment, text};

/// More renewals than fit the 15 s for which a claim counts that nobody renews.
const RENEWALS: usize = 4;

/// Somebody in a pipeline with these rights in the test's namespace, known to the API server.
async fn pipeline(cli: &Cli) -> Yoke {
    let world = &cli.world;
    let rules = json!([
        { "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "create", "delete"] },
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch", "create", "delete"] },
        { "apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "patch", "create", "delete"] },
    ]);
    let user = json!({ "kind": "User", "name": "user", "apiGroup": "rbac.authorization.k8s.io" });
    Accounts(world)
        .allow(&world.ns, "pipeline", rules, user)
        .await;
    let plane = world.cluster.plane();
    let yoke = Yoke::new(plane)
        .unwrap()
        .kubeconfig(plane.user_kubeconfig());
    eventually(LIMIT, "the rights are known", || async {
        let ran = cli.run_by(&yoke, &["mayday", "nothing"], "").await;
        Ok((ran.code == 0).then_some(()))
    })
    .await;
    yoke
}

async fn ok(cli: &Cli, yoke: &Yoke, arguments: &[&str], input: &Value) -> YokeOutput {
    let ran = cli.run_by(yoke, arguments, &input.to_string()).await;
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    ran
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rights_that_the_existing_tool_needs_are_enough() {
    let cli = Cli::new().await;
    let yoke = pipeline(&cli).await;
    let none = State::new();
    for (value, names) in [("1", "a b"), ("2", "a, c"), ("3", "a d, e")] {
        ok(&cli, &yoke, &["takeoff", "r"], &stages(names, value)).await;
        cli.settled(&state_of(names, value), &none, names).await;
    }
    // The record of an earlier revision becomes the active one, and keeps its number.
    ok(&cli, &yoke, &["descent", "r", "2"], &Value::Null).await;
    cli.settled(&state_of("a c", "2"), &none, "descent").await;
    assert_eq!(cli.active().await, (2, 3));
    let ran = ok(&cli, &yoke, &["blackbox", "r"], &Value::Null).await;
    assert!(ran.stdout.contains("│ 2 (current) "), "{}", ran.stdout);
    ok(&cli, &yoke, &["mayday", "r"], &Value::Null).await;
    cli.settled(&none, &none, "mayday").await;
    assert!(cli.world.revisions().await.is_empty());
}

/// One whose first stage is applied and whose second is refused: it leaves word of what it made, and no claim.
#[tokio::test(flavor = "multi_thread")]
async fn what_failed_with_few_rights_is_taken_up() {
    let cli = Cli::new().await;
    let yoke = pipeline(&cli).await;
    let none = State::new();
    let failing = json!([
        [configmap("x", json!({ "k": "1" }))],
        [configmap("y", json!({ "no key": "1" }))],
    ]);
    for next in [&["takeoff", "r"][..], &["mayday", "r"]] {
        let ran = cli
            .run_by(
                &yoke,
                &["takeoff", "-skip-dry-run", "r"],
                &failing.to_string(),
            )
            .await;
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        let intents = cli.intents().await;
        let claims = intents
            .iter()
            .map(|intent| &intent["metadata"]["annotations"]["atc.yoke.cd/lock"]);
        assert_eq!(claims.collect::<Vec<_>>(), [&Value::Null], "{}", ran.stderr);

        ok(&cli, &yoke, next, &stages("a", "2")).await;
        let wanted = if next[0] == "takeoff" { "a" } else { "" };
        cli.settled(&state_of(wanted, "2"), &none, next[0]).await;
    }
    assert!(cli.world.revisions().await.is_empty());
}

/// A claim is renewed by somebody who may not change it, and is lost when somebody ends it.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_renewed_with_few_rights() {
    let cli = Cli::new().await;
    let yoke = pipeline(&cli).await;
    let mut stuck = deployment("d", 1);
    stuck["spec"]["template"]["spec"]["nodeSelector"] = json!({ "no": "such" });
    let input = json!([[stuck], [configmap("late", json!({}))]]);
    let first = cli.start(&yoke, &["takeoff", "r"], &input);
    let claim = || async {
        let intents = cli.intents().await;
        let named = intents
            .first()
            .filter(|intent| text(&intent["data"]["inventory"]).len() > 60);
        named.map(|intent| intent["metadata"]["annotations"]["atc.yoke.cd/lock"].clone())
    };
    let held = eventually(LIMIT, "it is held", || async { Ok(claim().await) }).await;
    let second = cli.start(&cli.yoke, &["takeoff", "r"], &stages("a", "1"));

    let beats = format!(
        "/api/v1/namespaces/{}/secrets?labelSelector=atc.yoke.cd%2Fkind%3Dbeat",
        cli.world.ns
    );
    let mut seen = BTreeSet::new();
    while seen.len() < RENEWALS {
        let next = eventually(LIMIT, "it is renewed", || async {
            let beats = cli.world.cluster.api.list(&beats).await?;
            let renewed = beats.first().map(|beat| {
                text(&beat["metadata"]["annotations"]["atc.yoke.cd/renewed-at"]).to_owned()
            });
            Ok(renewed.filter(|renewed| !seen.contains(renewed)))
        })
        .await;
        seen.insert(next);
    }
    // Whoever waits has seen that it is alive.
    assert_eq!(claim().await, Some(held));
    cli.ok(&["unlatch", "r"], &Value::Null).await;
    let first = first.end().await.unwrap();
    assert_eq!(first.code, 1, "{}", first.stderr);
    let words = "ended by somebody else";
    assert!(first.stderr.contains(words), "{}", first.stderr);
    let second = second.end().await.unwrap();
    assert_eq!(second.code, 0, "{}", second.stderr);
    cli.settled(&state_of("a", "1"), &State::new(), "the second")
        .await;
}
