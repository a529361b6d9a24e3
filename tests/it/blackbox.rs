//! `yoke blackbox`: releases, revisions, what they hold, how they differ; whatever else lies beside the record.

use atc_tests::Yoke;
use serde_json::{Value, json};

use crate::terminal::{Cli, objects};
use crate::world::{World, configmap};

const RELEASE: &str = "internal.yoke/release";

/// Secrets of the test's namespace: what a look must leave as it is.
async fn secrets(world: &World) -> Vec<Value> {
    let path = format!("/api/v1/namespaces/{}/secrets", world.ns);
    world.cluster.api.list(&path).await.unwrap()
}

async fn secret(world: &World, name: &str, labels: Value, annotations: Value) {
    let path = format!("/api/v1/namespaces/{}/secrets", world.ns);
    let body = json!({ "metadata": { "name": name, "labels": labels, "annotations": annotations },
        "data": { "resources": "bnVsbA==" } });
    world.post(&path, &body).await;
}

/// The cells of a table, line by line.
fn cells(table: &str) -> Vec<Vec<&str>> {
    let lines = table.lines().filter_map(|line| line.strip_prefix('│'));
    lines
        .map(|line| {
            line.trim_end_matches('│')
                .split('│')
                .map(str::trim)
                .collect()
        })
        .collect()
}

fn yaml_lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_prints_and_compares() {
    let cli = Cli::new().await;
    let ns = &cli.world.ns;
    let ran = cli.ok(&["blackbox"], &Value::Null).await;
    assert_eq!(ran.stdout, "");
    assert!(
        ran.stderr.contains("no releases in namespace"),
        "{}",
        ran.stderr
    );
    let ran = cli.ok(&["blackbox", "-o", "json"], &Value::Null).await;
    assert_eq!(ran.stdout, "[]\n");

    let one = |k: &str| json!([configmap("a", json!({ "k": k, "same": "x" }))]);
    cli.ok(&["takeoff", "one"], &one("1")).await;
    cli.ok(&["takeoff", "one"], &one("2")).await;
    cli.ok(&["takeoff", "two"], &objects(&["b", "c"])).await;
    let before = secrets(&cli.world).await;

    let list = cli.ok(&["blackbox"], &Value::Null).await.stdout;
    assert!(list.starts_with('╭'), "{list}");
    let wanted = [
        ["release", "namespace", "revision id"],
        ["one", ns, "2"],
        ["two", ns, "1"],
    ];
    assert_eq!(cells(&list), wanted);
    let everywhere = cli.yoke.run(&["blackbox"]).await.unwrap();
    assert!(everywhere.stdout.contains(ns), "{}", everywhere.stderr);
    let ran = cli.ok(&["blackbox", "-o", "json"], &Value::Null).await;
    let list: Value = serde_json::from_str(&ran.stdout).unwrap();
    let of = |release: &str, revision: u8| json!({ "release": release, "namespace": ns, "revision": revision, "revisions": revision });
    assert_eq!(list, json!([of("one", 2), of("two", 1)]));

    let ran = cli.ok(&["inspect", "one"], &Value::Null).await;
    let (newest, oldest) = (ran.stdout.find("│ 2 (current) "), ran.stdout.find("│ 1 "));
    assert!(newest.unwrap() < oldest.unwrap(), "{}", ran.stdout);
    // The release is found in whichever namespace it is.
    let anywhere = cli
        .yoke
        .run(&["blackbox", "two", "-o", "yaml"])
        .await
        .unwrap();
    assert!(
        yaml_lines(&anywhere.stdout).contains(&"current: true"),
        "{}",
        anywhere.stdout
    );

    let ran = cli.ok(&["blackbox", "one", "1"], &Value::Null).await;
    assert!(
        ran.stdout
            .starts_with(&format!("{ns}/core/v1/configmap/a:\n")),
        "{}",
        ran.stdout
    );
    assert!(
        yaml_lines(&ran.stdout).contains(&"k: \"1\""),
        "{}",
        ran.stdout
    );
    let ran = cli
        .ok(&["blackbox", "one", "2", "-o", "json"], &Value::Null)
        .await;
    let held: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(held[format!("{ns}/core/v1/configmap/a")]["data"]["k"], "2");

    let ran = cli
        .ok(
            &["blackbox", "-context", "0", "one", "1", "2"],
            &Value::Null,
        )
        .await;
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[..2], ["--- revision 1", "+++ revision 2"]);
    assert_eq!(lines[3..], ["-    k: \"1\"", "+    k: \"2\""]);
    let ran = cli
        .ok(&["blackbox", "-color", "one", "1", "2"], &Value::Null)
        .await;
    assert!(
        ran.stdout.contains("\x1b[32m-    k: \"1\"\x1b[0m"),
        "{}",
        ran.stdout
    );
    let ran = cli.ok(&["blackbox", "one", "2", "2"], &Value::Null).await;
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("are the same"), "{}", ran.stderr);

    for (arguments, words) in [
        (&["nobody"][..], "\"nobody\""),
        (&["one", "7"], "no revision 7"),
        (&["one", "1", "9"], "no revision 9"),
        (&["one", "x"], "\"x\""),
        (&["one", "0"], "\"0\""),
        (&["one", "1", "-o", "table"], "yaml or json"),
        (&["one", "1", "2", "-o", "json"], "as text"),
    ] {
        cli.fails(&[&["blackbox"], arguments].concat(), "", &[words])
            .await;
    }
    assert_eq!(secrets(&cli.world).await, before, "nothing is written");

    // The same name in a second namespace is another release.
    let other = cli.world.namespace().await;
    let arguments = ["takeoff", "-namespace", &other, "two"];
    let input = objects(&["b"]).to_string();
    assert_eq!(
        cli.yoke.with_input(&arguments, &input).await.unwrap().code,
        0
    );
    let both = cli.yoke.run(&["blackbox", "two"]).await.unwrap();
    assert_eq!((both.code, both.stdout.as_str()), (1, ""));
    for words in [ns, &other, "hint: -namespace"] {
        assert!(both.stderr.contains(words), "{}", both.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_hidden_in_comparisons() {
    let cli = Cli::new().await;
    let secret = |value: &str| json!([{ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" }, "stringData": { "k": value } }]);
    cli.ok(&["takeoff", "r"], &secret("hunter2")).await;
    let ran = cli
        .ok(&["takeoff", "-diff-only", "r"], &secret("hunter3"))
        .await;
    assert!(
        ran.stdout.contains("+    k: (hidden, differs)"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("hunter"), "{}", ran.stdout);
    cli.ok(&["takeoff", "r"], &secret("hunter3")).await;
    let ran = cli.ok(&["blackbox", "r", "1", "2"], &Value::Null).await;
    assert!(ran.stdout.contains("-    k: (hidden)"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("hunter"), "{}", ran.stdout);
    // One revision is printed as it is: it is asked for, and can be applied again.
    let ran = cli.ok(&["blackbox", "r", "1"], &Value::Null).await;
    assert!(ran.stdout.contains("hunter2"), "{}", ran.stdout);
}

/// Locks, Secrets that only look like records, takeoffs that did not finish, and labels of the old form.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_lies_beside_the_record() {
    let cli = Cli::new().await;
    let world = &cli.world;
    cli.ok(&["takeoff", "r"], &objects(&["a"])).await;
    let label = world.revisions().await[0]["metadata"]["labels"][RELEASE].clone();
    let revision = |release: &str| json!({ "internal.yoke/kind": "revision", RELEASE: release });
    secret(
        world,
        "yoke.lock",
        json!({ "internal.yoke/kind": "lock", RELEASE: "r" }),
        json!({}),
    )
    .await;
    secret(
        world,
        "yoke.bare",
        json!({ "internal.yoke/kind": "revision" }),
        json!({}),
    )
    .await;
    let bad_time =
        json!({ "internal.yoke/created-at": "yesterday", "internal.yoke/release-name": "r" });
    secret(
        world,
        "yoke.when",
        revision(label.as_str().unwrap()),
        bad_time,
    )
    .await;
    let unfinished = json!({ "internal.yoke/created-at": "2026-01-01T00:00:00Z", "internal.yoke/active-at": "1970-01-01T00:00:00Z",
        "internal.yoke/release-name": "r", "internal.yoke/resources": "3", "internal.yoke/source-url": "https://u:hunter2@h/a.wasm" });
    secret(
        world,
        "yoke.unfinished",
        revision(label.as_str().unwrap()),
        unfinished,
    )
    .await;
    let old = json!({ "internal.yoke/created-at": "2026-01-01T00:00:00Z" });
    secret(world, "yoke.old", revision("old"), old).await;
    let steering = json!({ "internal.yoke/created-at": "2026-01-01T00:00:00Z", "internal.yoke/release-name": "\u{1b}[31mred" });
    secret(world, "yoke.steering", revision("x"), steering).await;
    let before = secrets(world).await;

    let ran = cli.ok(&["blackbox"], &Value::Null).await;
    assert!(ran.stdout.contains("│ r "), "{}", ran.stdout);
    assert!(ran.stdout.contains("│ old "), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
    assert!(
        ran.stderr.starts_with("warning: 2 secrets"),
        "{}",
        ran.stderr
    );
    for name in ["yoke.bare", "yoke.when"] {
        assert!(ran.stderr.contains(name), "{}", ran.stderr);
    }
    let ran = cli.ok(&["blackbox", "r"], &Value::Null).await;
    assert!(ran.stdout.contains("│ 2 (current) "), "{}", ran.stdout);
    assert!(ran.stdout.contains(" never "), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("https://***@h/a.wasm"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("yoke.when"), "{}", ran.stderr);
    cli.ok(&["blackbox", "r", "2"], &Value::Null).await;
    let ran = cli.ok(&["blackbox", "old"], &Value::Null).await;
    assert!(ran.stdout.contains("│ 1 (current) "), "{}", ran.stdout);
    let ran = cli.ok(&["turbulence", "r"], &Value::Null).await;
    assert!(ran.stderr.contains("as recorded"), "{}", ran.stderr);
    assert_eq!(secrets(world).await, before, "nothing is written");
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_that_may_not_be_read_are_told() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let other = world.namespace().await;
    for namespace in [&world.ns, &other] {
        let arguments = ["takeoff", "-namespace", namespace, "r"];
        let input = objects(&["a"]).to_string();
        assert_eq!(
            cli.yoke.with_input(&arguments, &input).await.unwrap().code,
            0
        );
    }
    let plane = world.cluster.plane();
    let file = std::fs::read_to_string(plane.user_kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_str(&file).unwrap();
    config["contexts"][0]["context"]["namespace"] = world.ns.as_str().into();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, config.to_string()).unwrap();
    let user = Yoke::new(plane).unwrap().kubeconfig(path);

    let ran = user.run(&["blackbox"]).await.unwrap();
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("forbidden"), "{}", ran.stderr);

    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let name = &world.ns;
    let grant = async |place: &str, kind: &str, resource: &str| {
        let role = json!({ "metadata": { "name": name }, "rules": [{ "apiGroups": [""], "resources": [resource], "verbs": ["list"] }] });
        let binding = json!({ "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name },
            "subjects": [{ "kind": "User", "name": "user", "apiGroup": "rbac.authorization.k8s.io" }] });
        let kind = kind.to_lowercase();
        world.post(&format!("{rbac}/{place}{kind}s"), &role).await;
        world
            .post(&format!("{rbac}/{place}{kind}bindings"), &binding)
            .await;
    };
    // The authorizer learns of a role a moment after it is made.
    let once_seen = async |words: &str| {
        atc_tests::eventually(crate::world::LIMIT, "the right is known", || async {
            let ran = user.run(&["blackbox"]).await?;
            Ok((ran.code == 0 && ran.stderr.contains(words)).then_some(ran))
        })
        .await
    };
    grant(&format!("namespaces/{}/", world.ns), "Role", "secrets").await;
    let ran = once_seen("only the namespace of the context").await;
    assert!(
        ran.stdout.contains(&world.ns) && !ran.stdout.contains(&other),
        "{}",
        ran.stdout
    );

    grant("", "ClusterRole", "namespaces").await;
    let ran = once_seen("may not be read").await;
    assert!(
        ran.stdout.contains(&world.ns) && !ran.stdout.contains(&other),
        "{}",
        ran.stdout
    );
    let ran = user.run(&["blackbox", "r"]).await.unwrap();
    assert!(ran.stdout.contains("│ 1 (current) "), "{}", ran.stderr);
    let ran = user.run(&["blackbox", "-namespace", &other]).await.unwrap();
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("forbidden"), "{}", ran.stderr);
    for what in ["clusterroles", "clusterrolebindings"] {
        world.delete(&format!("{rbac}/{what}/{name}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_pipe_is_no_error() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let ns = world.ns.as_str();
    cli.ok(&["takeoff", "r"], &objects(&["a"])).await;
    cli.ok(&["takeoff", "r"], &objects(&["a", "b"])).await;
    world.delete(&world.core("configmaps", "a")).await;
    for arguments in [
        &["blackbox"][..],
        &["blackbox", "-o", "json"],
        &["blackbox", "r"],
        &["blackbox", "r", "1"],
        &["blackbox", "r", "1", "2"],
        &["turbulence", "r"],
        &["turbulence", "r", "-o", "yaml"],
    ] {
        let all = [arguments, &["-namespace", ns]].concat();
        let ran = cli.yoke.unread(&all).await.unwrap();
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        assert!(
            !ran.stderr.contains("error"),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_refusals_are_summed_up() {
    let cli = Cli::new().await;
    let names: Vec<String> = (0..300)
        .map(|number| format!("Not_A_Name_{number}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let ran = cli
        .run(&["takeoff", "r"], &objects(&names).to_string())
        .await;
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(
        ran.stderr.contains("300 objects were refused"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("… and 280 more"), "{}", ran.stderr);
    assert!(ran.stderr.lines().count() < 30, "{}", ran.stderr);
}
