//! Back to an earlier revision.

use anyhow::anyhow;
use atc_tests::{Yoke, eventually};
use serde_json::{Value, json};

use crate::accounts::Accounts;
use crate::terminal::{Cli, State, stages, state_of};
use crate::world::{CRDS, LIMIT, configmap, deployment, free_crd, job};

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

/// The way back does not depend on what is broken.
#[tokio::test(flavor = "multi_thread")]
async fn a_stage_is_waited_for_only_if_that_is_asked_for() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let staged = json!([[job("first")], [configmap("last", json!({ "k": "1" }))]]);
    cli.ok(&["takeoff", "r"], &staged).await;
    cli.ok(&["takeoff", "r"], &stages("other", "2")).await;
    let path = format!("/apis/batch/v1/namespaces/{}/jobs/first", world.ns);
    world.gone(&path).await;
    // Nothing runs here any more, so that the first stage is never ready again.
    let quota = json!({ "metadata": { "name": "none" }, "spec": { "hard": { "pods": "0" } } });
    let quotas = world.core("resourcequotas", "none");
    world.post(quotas.trim_end_matches("/none"), &quota).await;
    eventually(LIMIT, "the quota is known", || async {
        let quota = world.get(&quotas).await?.unwrap_or_default();
        Ok((quota["status"]["hard"]["pods"] == "0").then_some(()))
    })
    .await;

    let words = ["stage 1 of 2 is not ready", "within 1s"];
    let input = staged.to_string();
    cli.fails(&["takeoff", "-wait", "1s", "r"], &input, &words)
        .await;
    cli.fails(&["descent", "-wait", "1s", "r", "1"], "", &words)
        .await;
    cli.ok(&["descent", "r", "1"], &Value::Null).await;
    world.has("last", json!({ "k": "1" })).await;
    cli.ok(&["mayday", "r"], &Value::Null).await;
}

/// A workload is mended though a Service before it has no Pod that is ready.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_in_a_stage_before_holds_up_no_mending() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "d" },
        "spec": { "selector": { "app": "d" }, "ports": [{ "port": 80 }] },
    });
    let staged = |selector: Value| {
        let mut work = deployment("d", 1);
        work["spec"]["template"]["metadata"]["labels"] = json!({ "app": "d" });
        work["spec"]["selector"] = json!({ "matchLabels": { "app": "d" } });
        work["spec"]["template"]["spec"]["nodeSelector"] = selector;
        json!([[service.clone()], [work]])
    };
    let broken = staged(json!({ "no": "such" }));
    cli.ok(&["takeoff", "r"], &broken).await;
    let slices = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices",
        world.ns
    );
    eventually(LIMIT, "its Pod is known, and not ready", || async {
        let all = world.cluster.api.list(&slices).await?;
        let pods = format!("/api/v1/namespaces/{}/pods", world.ns);
        let pods = world.cluster.api.list(&pods).await?;
        Ok((!all.is_empty() && !pods.is_empty()).then_some(()))
    })
    .await;
    let mended = staged(Value::Null);
    cli.ok(&["takeoff", "-wait", "60s", "r"], &mended).await;
    cli.ok(&["mayday", "r"], &Value::Null).await;
}

/// The rights that the existing tool needs are enough: it updates a record, and has no need to patch one.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_update_secrets_need_not_patch_them() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let plane = world.cluster.plane();
    let name = format!("limited-{}", world.ns);
    let verbs = ["get", "list", "create", "update", "delete"];
    let rules = json!([
        { "apiGroups": [""], "resources": ["secrets"], "verbs": verbs },
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create", "patch", "delete"] },
    ]);
    let subject = json!({ "kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io" });
    Accounts(world)
        .allow(&world.ns, "limited", rules, subject)
        .await;
    let file = std::fs::read_to_string(plane.kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_str(&file).unwrap();
    config["users"][0]["user"]["as"] = name.into();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, config.to_string()).unwrap();
    let yoke = Yoke::new(plane).unwrap().kubeconfig(path);
    let run = async |arguments: &[&str], input: &Value| {
        let ran = cli.run_by(&yoke, arguments, &input.to_string()).await;
        (ran.code == 0)
            .then_some(())
            .ok_or_else(|| anyhow!("{}", ran.stderr))
    };
    let first = stages("a", "1");
    eventually(LIMIT, "it has its rights", || async {
        run(&["takeoff", "r"], &first).await.map(Some)
    })
    .await;
    run(&["takeoff", "r"], &stages("a", "2")).await.unwrap();
    run(&["descent", "r", "1"], &Value::Null).await.unwrap();
    cli.settled(&state_of("a", "1"), &State::new(), "at 1")
        .await;
    assert_eq!(cli.active().await, (1, 2));
    run(&["mayday", "r"], &Value::Null).await.unwrap();
}

/// As in the existing tool, a takeoff that changes nothing takes nothing of the history, whatever the cap.
#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_release_keeps_its_history() {
    let cli = Cli::new().await;
    for number in 0..4 {
        let more = json!([configmap("a", json!({ "k": number.to_string() }))]);
        cli.ok(&["takeoff", "-history-cap", "0", "r"], &more).await;
    }
    let before = cli.world.revision_names().await;
    assert_eq!(before.len(), 4);
    let same = json!([configmap("a", json!({ "k": "3" }))]);
    cli.ok(&["takeoff", "-history-cap", "2", "r"], &same).await;
    assert_eq!(cli.world.revision_names().await, before);
    // Nor one that only puts right what was disturbed.
    cli.world.delete(&cli.world.core("configmaps", "a")).await;
    cli.ok(&["takeoff", "-history-cap", "2", "r"], &same).await;
    assert_eq!(cli.world.revision_names().await, before);
    let other = json!([configmap("a", json!({ "k": "4" }))]);
    cli.ok(&["takeoff", "-history-cap", "2", "r"], &other).await;
    assert_eq!(cli.world.revision_names().await.len(), 2);
}
