//! Back to an earlier revision.

use atc_tests::eventually;
use serde_json::{Value, json};

use crate::terminal::{Cli, State, stages, state_of};
use crate::world::{CRDS, LIMIT, configmap, free_crd};

#[tokio::test(flavor = "multi_thread")]
async fn a_descent_restores_prunes_and_makes_no_revision() {
    let cli = Cli::new().await;
    cli.fails(&["descent", "r", "1"], "", &["no release \"r\""])
        .await;
    cli.ok(&["takeoff", "r"], &stages("a b", "1")).await;
    cli.ok(&["takeoff", "r"], &stages("a, d", "2")).await;
    let before = cli.world.revision_names().await;
    let ran = cli.ok(&["descent", "r", "1"], &Value::Null).await;
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("revision 1"), "{}", ran.stderr);
    cli.settled(&state_of("a b", "1"), &State::new(), "at 1")
        .await;
    assert_eq!(cli.world.revision_names().await, before);
    // Numbers are by creation: the second is still the second.
    cli.ok(&["down", "r", "2"], &Value::Null).await;
    cli.settled(&state_of("a, d", "2"), &State::new(), "at 2")
        .await;
    cli.fails(&["descent", "r", "2"], "", &["active one already"])
        .await;
    cli.fails(&["descent", "r", "3"], "", &["no revision", "1 to 2"])
        .await;
    assert!(cli.intents().await.is_empty());
    // What a revision has is put right, whoever took it away.
    cli.world.delete(&cli.world.core("configmaps", "a")).await;
    cli.ok(&["restore", "r", "1"], &Value::Null).await;
    cli.settled(&state_of("a b", "1"), &State::new(), "restored")
        .await;
    cli.ok(&["takeoff", "r"], &stages("a", "3")).await;
    cli.settled(&state_of("a", "3"), &State::new(), "at 3")
        .await;
    assert_eq!(cli.active().await, (1, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_descent_that_is_refused_writes_nothing() {
    let cli = Cli::new().await;
    let world = &cli.world;
    cli.ok(&["takeoff", "r"], &stages("a b, c", "1")).await;
    cli.ok(&["takeoff", "r"], &stages("a, d", "2")).await;
    let before = (cli.state().await, world.revisions().await);
    let unchanged = async |what: &str| {
        assert_eq!(cli.state().await, before.0, "{what}");
        assert_eq!(world.revisions().await, before.1, "{what}");
        assert!(cli.intents().await.is_empty(), "{what}");
    };
    // Somebody has a field of it.
    let field = configmap("a", json!({ "k": "2" }));
    let path = world.core("configmaps", "a");
    world.cluster.api.apply(&path, &field).await.unwrap();
    cli.fails(&["descent", "r", "1"], "", &["\"someone\"", "data.k"])
        .await;
    unchanged("a conflict").await;
    // Somebody has an object of it.
    let by_hand = configmap("b", json!({ "by": "hand" }));
    let path = format!("/api/v1/namespaces/{}/configmaps", world.ns);
    world.post(&path, &by_hand).await;
    cli.fails(&["descent", "r", "1"], "", &["owned by no release"])
        .await;
    assert_eq!(world.data("b").await, json!({ "by": "hand" }));
    world.delete(&world.core("configmaps", "b")).await;
    unchanged("an owner").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_no_longer_served_ends_it_before_any_write_r69() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let crd = format!("{CRDS}/relics.made.dev");
    world.post(CRDS, &free_crd("Relic")).await;
    let relics = format!("/apis/made.dev/v1/namespaces/{}/relics", world.ns);
    eventually(LIMIT, "relics are served", || async {
        world.get(&relics).await
    })
    .await;
    let relic =
        json!({ "apiVersion": "made.dev/v1", "kind": "Relic", "metadata": { "name": "x" } });
    let a = |value: &str| configmap("a", json!({ "k": value }));
    cli.ok(&["takeoff", "r"], &json!([relic, a("1")])).await;
    cli.ok(&["takeoff", "r"], &json!([a("2")])).await;
    world.delete(&crd).await;
    world.gone(&crd).await;
    cli.fails(&["descent", "r", "1"], "", &["Relic"]).await;
    cli.settled(&state_of("a", "2"), &State::new(), "refused")
        .await;
    cli.ok(&["mayday", "r"], &Value::Null).await;
    cli.settled(&State::new(), &State::new(), "mayday").await;
}

/// The active revision may be gone back to when what came after it did not end well.
#[tokio::test(flavor = "multi_thread")]
async fn the_active_revision_is_restored_after_a_failed_takeoff() {
    let cli = Cli::new().await;
    cli.ok(&["takeoff", "r"], &stages("a b", "1")).await;
    let mut stuck = crate::world::job("fails");
    stuck["spec"]["activeDeadlineSeconds"] = 1.into();
    stuck["spec"]["template"]["spec"]["nodeSelector"] = json!({ "no": "such" });
    let next = json!([
        [configmap("a", json!({ "k": "2" })), stuck],
        [configmap("c", json!({}))]
    ]);
    cli.fails(&["takeoff", "r"], &next.to_string(), &["fails"])
        .await;
    assert_eq!(cli.world.data("a").await, json!({ "k": "2" }));
    cli.ok(&["descent", "r", "1"], &Value::Null).await;
    cli.settled(&state_of("a b", "1"), &State::new(), "restored")
        .await;
    let jobs = format!("/apis/batch/v1/namespaces/{}/jobs/fails", cli.world.ns);
    assert!(cli.world.get(&jobs).await.unwrap().is_none());
    cli.fails(&["descent", "r", "1"], "", &["active one already"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foundations_that_a_revision_lacks_are_let_go_unless_asked_r171() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let name = format!("made-{}", world.ns);
    let path = format!("/api/v1/namespaces/{name}");
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let a = |value: &str| configmap("a", json!({ "k": value }));
    cli.ok(&["takeoff", "r"], &json!([a("1")])).await;
    cli.ok(&["takeoff", "r"], &json!([a("2"), namespace])).await;
    let ran = cli.ok(&["descent", "r", "1"], &Value::Null).await;
    assert!(ran.stderr.contains(&name), "{}", ran.stderr);
    let left = world.get(&path).await.unwrap().unwrap();
    assert!(left["metadata"]["deletionTimestamp"].is_null());
    // It is nobody's now, so it is not taken back by itself.
    cli.fails(&["descent", "r", "2"], "", &["owned by no release"])
        .await;
    let taken = json!([a("3"), namespace]);
    cli.ok(&["takeoff", "-force-ownership", "r"], &taken).await;
    cli.ok(&["descent", "-remove-namespaces", "r", "1"], &Value::Null)
        .await;
    world.gone(&path).await;
}
