//! The command line against a cluster: what it makes, what it leaves alone, what it says.

use anyhow::Result;
use atc_tests::{Fault, Proxy, Yoke, YokeOutput, guest};
use serde_json::{Value, json};

use crate::terminal::{Cli, objects};
use crate::world::{CRDS, configmap, configmap_in, deployment, free_crd, job, look, text};

#[tokio::test(flavor = "multi_thread")]
async fn takeoff_changes_nothing_twice_prunes_and_goes() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let ran = cli.ok(&["takeoff", "r"], &objects(&["a", "b"])).await;
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("took off"), "{}", ran.stderr);
    let a = world.configmap("a").await.unwrap();
    let marks = (
        &a["metadata"]["labels"]["app.kubernetes.io/managed-by"],
        &a["metadata"]["annotations"]["instance.atc.yoke.cd/namespace"],
    );
    assert_eq!(marks, (&json!("yoke"), &json!(world.ns)));
    assert_eq!(cli.owner("a").await, "r");
    assert!(a["metadata"]["ownerReferences"].is_null());
    let revisions = world.revisions().await;
    assert_eq!(revisions.len(), 1);
    let annotations = &revisions[0]["metadata"]["annotations"];
    assert_eq!(annotations["internal.yoke/release-name"], "r");
    assert_eq!(annotations["internal.yoke/resources"], "2");

    // The same again: a warning, no revision, and what was deleted by hand is back (R-07).
    world.delete(&world.core("configmaps", "b")).await;
    let ran = cli.ok(&["takeoff", "r"], &objects(&["b", "a"])).await;
    let ran_again = cli.ok(&["takeoff", "r"], &objects(&["b", "a"])).await;
    assert!(
        ran_again.stderr.starts_with("warning: "),
        "{}",
        ran_again.stderr
    );
    assert!(world.configmap("b").await.is_some(), "{}", ran.stderr);
    assert_eq!(world.configmap("a").await.unwrap(), a);
    let revisions = world.revision_names().await;

    // Another output prunes what is no longer in it.
    let ran = cli.ok(&["takeoff", "r"], &objects(&["a", "c"])).await;
    assert!(ran.stderr.contains("deleted"), "{}", ran.stderr);
    assert!(world.configmap("b").await.is_none());
    assert!(world.configmap("c").await.is_some());
    assert_eq!(world.revisions().await.len(), revisions.len() + 1);
    assert_eq!(world.configmap("a").await.unwrap(), a);

    // What is gone already is not deleted by it, and what is not its own any more stays.
    let more = objects(&["a", "c", "d", "e"]);
    cli.ok(&["takeoff", "r"], &more).await;
    world.delete(&world.core("configmaps", "c")).await;
    let bare = json!({ "metadata": { "annotations": null, "labels": null } });
    world.merge(&world.core("configmaps", "d"), &bare).await;
    let ran = cli.ok(&["mayday", "r"], &Value::Null).await;
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("2 resources deleted"), "{}", ran.stderr);
    let alone = format!(
        "left alone, since the release does not own it any more: {}/ConfigMap:d",
        world.ns
    );
    assert!(ran.stderr.contains(&alone), "{}", ran.stderr);
    assert_eq!(world.configmaps(&world.ns).await, ["d"]);
    world.delete(&world.core("configmaps", "d")).await;
    assert!(world.revisions().await.is_empty());
    let ran = cli.ok(&["mayday", "r"], &Value::Null).await;
    assert!(ran.stderr.starts_with("warning: "), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_changed_nothing_written_r07() {
    let cli = Cli::new().await;
    let proxy = Proxy::start(cli.world.cluster.plane()).await.unwrap();
    let yoke = Yoke::through(cli.world.cluster.plane(), &proxy).unwrap();
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "s", "labels": { "empty": "" }, "annotations": {} },
        "spec": { "ports": [{ "port": 80 }], "selector": { "a": "b" } },
    });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "x" }, "stringData": { "k": "v" },
    });
    let old = json!([configmap("old", json!({}))]);
    let all = json!([
        service,
        secret,
        deployment("d", 0),
        configmap("a", json!({}))
    ]);
    cli.ok(&["takeoff", "r"], &old).await;
    cli.ok(&["takeoff", "r"], &all).await;
    let again = async || {
        let seen = proxy.requests().len();
        let ran = cli.run_by(&yoke, &["takeoff", "r"], &all.to_string()).await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stderr.starts_with("warning: "), "{}", ran.stderr);
        let mut writes = proxy.requests().split_off(seen);
        writes.retain(|line| !line.starts_with("GET ") && !line.contains("dryRun=All"));
        writes
    };
    assert_eq!(again().await, Vec::<String>::new());
    // Whatever is not as it should be is put right: a change, a loss, what should be gone.
    let scaled = json!({ "spec": { "replicas": 1 } });
    let deployment = format!("/apis/apps/v1/namespaces/{}/deployments/d", cli.world.ns);
    cli.world.merge(&deployment, &scaled).await;
    let ran = cli.run(&["takeoff", "r"], &all.to_string()).await;
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    cli.ok(&["takeoff", "-force-conflicts", "r"], &all).await;
    cli.world.delete(&cli.world.core("configmaps", "a")).await;
    assert_ne!(again().await, Vec::<String>::new());
    let mut left = cli.world.configmap("a").await.unwrap();
    left["metadata"] = json!({
        "name": "old", "labels": left["metadata"]["labels"], "annotations": left["metadata"]["annotations"],
    });
    let path = format!("/api/v1/namespaces/{}/configmaps", cli.world.ns);
    cli.world.post(&path, &left).await;
    assert_ne!(again().await, Vec::<String>::new());
    assert!(cli.world.configmap("old").await.is_none());
    assert_eq!(again().await, Vec::<String>::new());
    cli.ok(&["mayday", "r"], &Value::Null).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn takeoff_with_a_flight() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let flight = guest("puppet").unwrap();
    let flight = flight.to_str().unwrap();
    let input = json!({ "note": "from stdin" });
    cli.ok(&["takeoff", "f", flight, "--", "-x", "two"], &input)
        .await;
    let data = world.data("f").await;
    assert_eq!(data["note"], "from stdin");
    assert_eq!(data["release"], "f");
    assert_eq!(data["namespace"], world.ns);
    assert_eq!(data["arguments"], "-x,two");
    let revision = world.revisions().await.remove(0);
    let url = text(&revision["metadata"]["annotations"]["internal.yoke/source-url"]);
    assert!(
        url.starts_with("file:///") && url.ends_with("/puppet.wasm"),
        "{url}"
    );
    let before = world.revisions().await;

    // Failures write nothing.
    let arguments = ["takeoff", "f", flight];
    let fails = json!({ "fail": "the moon is wrong" }).to_string();
    cli.fails(
        &arguments,
        &fails,
        &["the moon is wrong\n---\n", "exit_code(1)"],
    )
    .await;
    let source = look("x", "Secret", &world.ns, "s", "data.v");
    let looks = json!({ "look": [source], "objects": [configmap("got", json!({ "x": "${x}" }))] });
    let text = looks.to_string();
    cli.fails(
        &arguments,
        &text,
        &["-cluster-access, or clusterAccess: true, grants it"],
    )
    .await;
    world.put_secret("s", "one").await;
    let access = ["takeoff", "-cluster-access", "f", flight];
    cli.fails(&access, &text, &["forbidden"]).await;
    assert_eq!(world.revisions().await, before);
    let access = [
        "takeoff",
        "-cluster-access",
        "-resource-access",
        "default/*,Secret:s",
        "f",
        flight,
    ];
    cli.ok(&access, &looks).await;
    assert_eq!(world.data("got").await, json!({ "x": "b25l" }));
    // What belongs to the release may be looked up without a matcher.
    let own = look("x", "ConfigMap", &world.ns, "got", "data.x");
    let looks = json!({ "look": [own], "objects": [configmap("got", json!({ "x": "${x}!" }))] });
    cli.ok(&["takeoff", "-cluster-access", "f", flight], &looks)
        .await;
    assert_eq!(world.data("got").await, json!({ "x": "b25l!" }));
    cli.ok(&["mayday", "f"], &Value::Null).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_and_diff_write_nothing() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let ran = cli.ok(&["takeoff", "-dry", "r"], &objects(&["a"])).await;
    assert!(ran.stderr.contains("dry run"), "{}", ran.stderr);
    assert!(world.configmaps(&world.ns).await.is_empty());
    assert!(world.revisions().await.is_empty());
    let ran = cli
        .ok(&["takeoff", "-diff-only", "r"], &objects(&["a"]))
        .await;
    assert!(ran.stdout.contains("+++ next"), "{}", ran.stdout);
    assert!(world.revisions().await.is_empty());

    cli.ok(&["takeoff", "r"], &objects(&["a", "b"])).await;
    let before = world.configmap("a").await;
    let next = json!([
        configmap("a", json!({ "k": "w" })),
        configmap("c", json!({}))
    ]);
    let ran = cli.ok(&["takeoff", "-diff-only", "r"], &next).await;
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(&lines[..2], ["--- current", "+++ next"]);
    let changed: Vec<&str> = lines[2..]
        .iter()
        .filter(|line| line.starts_with(['+', '-']))
        .map(|line| line[1..].trim())
        .collect();
    for line in ["k: v", "k: w", "name: c", "name: b"] {
        assert!(changed.contains(&line), "{line:?} in {}", ran.stdout);
    }
    assert!(!changed.contains(&"name: a"), "{}", ran.stdout);
    let same = cli
        .ok(&["takeoff", "-diff-only", "r"], &objects(&["a", "b"]))
        .await;
    assert_eq!(same.stdout, "");
    cli.ok(&["takeoff", "-dry", "r"], &next).await;
    assert_eq!(world.configmap("a").await, before);
    assert!(world.configmap("c").await.is_none());
    assert_eq!(world.revisions().await.len(), 1);
    let bad = json!([
        configmap("a", json!({ "k": "w" })),
        configmap("Not_A_Name", json!({}))
    ]);
    cli.fails(&["takeoff", "-dry", "r"], &bad.to_string(), &["Not_A_Name"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_output_touches_nothing_r55_p02() {
    let cli = Cli::new().await;
    let world = &cli.world;
    cli.ok(&["takeoff", "r"], &objects(&["a", "b"])).await;
    let state = async || {
        let mut state = world.revisions().await;
        for name in world.configmaps(&world.ns).await {
            state.push(world.configmap(&name).await.unwrap());
        }
        state
    };
    let before = state().await;
    let a = objects(&["a"])[0].to_string();
    let foreign = configmap_in("kube-system", "x", json!({})).to_string();
    let nobody =
        json!({ "apiVersion": "nobody.dev/v1", "kind": "Nobody", "metadata": { "name": "n" } });
    let table: Vec<(String, &[&str])> = vec![
        (String::new(), &["empty"]),
        ("# nothing\n".into(), &["only comments"]),
        ("null".into(), &["is null"]),
        ("{}".into(), &["is an empty object"]),
        ("hello".into(), &["is a text"]),
        (
            format!("{a}\n---\nkind: X\n"),
            &["document 2 (line 2)", "no apiVersion"],
        ),
        (format!("{a}{a}"), &["document 1 can't be read"]),
        (
            format!("[{a},{}]", configmap("a", json!({ "k": "w" }))),
            &["occurs twice"],
        ),
        (format!("[{a},{foreign}]"), &["kube-system"]),
        (format!("[{a},{nobody}]"), &["nobody.dev", "Nobody"]),
        (
            format!("[{a},{}]", configmap("Not_A_Name", json!({}))),
            &["dry run", "Not_A_Name"],
        ),
        (
            format!("[[{a}],[{}]]", configmap("Not_A_Name", json!({}))),
            &["dry run", "Not_A_Name"],
        ),
    ];
    for (output, words) in table {
        cli.fails(&["takeoff", "r"], &output, words).await;
        assert_eq!(state().await, before, "{output}");
    }
    // `[]` is an explicit nothing.
    cli.ok(&["takeoff", "r"], &json!([])).await;
    assert!(world.configmaps(&world.ns).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_others_is_left_alone_r151() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let path = format!("/api/v1/namespaces/{}/configmaps", world.ns);
    world.post(&path, &objects(&["nobody"])[0]).await;
    cli.ok(&["takeoff", "foo"], &objects(&["foo"])).await;
    let output = |names: &[&str]| objects(names).to_string();
    for name in ["nobody", "foo"] {
        let names = ["new", name];
        cli.fails(&["takeoff", "bar"], &output(&names), &[name])
            .await;
        assert!(world.configmap("new").await.is_none());
    }
    cli.fails(&["takeoff", "bar"], &output(&["foo"]), &["/foo", "/bar"])
        .await;
    cli.ok(
        &["takeoff", "-force-ownership", "bar"],
        &objects(&["nobody", "foo", "new"]),
    )
    .await;
    for name in ["nobody", "foo", "new"] {
        assert_eq!(cli.owner(name).await, "bar", "{name}");
    }
    cli.ok(&["mayday", "foo"], &Value::Null).await;
    assert!(world.configmap("foo").await.is_some());
    cli.ok(&["mayday", "bar"], &Value::Null).await;
    assert!(world.configmaps(&world.ns).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_are_named_before_any_write_r29() {
    let cli = Cli::new().await;
    let world = &cli.world;
    cli.ok(&["takeoff", "r"], &objects(&["a", "b"])).await;
    let forced = configmap("b", json!({ "k": "mine" }));
    let path = world.core("configmaps", "b");
    world.cluster.api.apply(&path, &forced).await.unwrap();
    let next = json!([
        configmap("a", json!({ "k": "w" })),
        configmap("b", json!({ "k": "w" }))
    ]);
    cli.fails(
        &["takeoff", "r"],
        &next.to_string(),
        &["\"someone\"", "data.k", "-force-conflicts"],
    )
    .await;
    assert_eq!(world.data("a").await, json!({ "k": "v" }));
    cli.ok(&["takeoff", "-force-conflicts", "r"], &next).await;
    assert_eq!(world.data("b").await, json!({ "k": "w" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn stages_foundations_and_waits_r23() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let made = format!("made-{}", world.ns);
    // The custom resource first, its definition second, a namespace last, and something in it.
    let gizmo = json!({ "apiVersion": "made.dev/v1", "kind": "Gizmo", "metadata": { "name": "g", "namespace": made } });
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": made } });
    let all = json!([
        gizmo,
        configmap_in(&made, "c", json!({})),
        free_crd("Gizmo"),
        namespace
    ]);
    cli.ok(&["takeoff", "-cross-namespace", "r"], &all).await;
    let paths = [
        format!("/apis/made.dev/v1/namespaces/{made}/gizmos/g"),
        format!("/api/v1/namespaces/{made}/configmaps/c"),
    ];
    for path in &paths {
        assert!(world.get(path).await.unwrap().is_some(), "{path}");
    }
    let ran = cli.ok(&["mayday", "r"], &Value::Null).await;
    for path in &paths {
        assert!(world.get(path).await.unwrap().is_none(), "{path}");
    }
    // Those two are let go of and named (R-171), taken over again and removed when asked.
    let foundations = [
        format!("/api/v1/namespaces/{made}"),
        format!("{CRDS}/gizmos.made.dev"),
    ];
    for path in &foundations {
        let name = path.rsplit('/').next().unwrap();
        assert!(ran.stderr.contains(name), "{}", ran.stderr);
        let left = world.get(path).await.unwrap().unwrap();
        assert!(
            left["metadata"]["deletionTimestamp"].is_null(),
            "{path} is let go"
        );
    }
    cli.ok(
        &["takeoff", "-cross-namespace", "-force-ownership", "r"],
        &all,
    )
    .await;
    cli.ok(&["mayday", "-remove-all", "r"], &Value::Null).await;
    for path in &foundations {
        world.gone(path).await;
    }

    let waited = json!([[job("first")], [deployment("second", 1)]]);
    cli.ok(&["takeoff", "-wait", "60s", "w"], &waited).await;
    let jobs = format!("/apis/batch/v1/namespaces/{}/jobs/first", world.ns);
    let deployments = format!("/apis/apps/v1/namespaces/{}/deployments/second", world.ns);
    let first = world.get(&jobs).await.unwrap().unwrap();
    let second = world.get(&deployments).await.unwrap().unwrap();
    assert_eq!(first["status"]["succeeded"], 1);
    assert_eq!(second["status"]["readyReplicas"], 1);
    let mut stuck = deployment("stuck", 1);
    stuck["spec"]["template"]["spec"]["nodeSelector"] = json!({ "no": "such" });
    cli.fails(
        &["takeoff", "-wait", "1s", "x"],
        &json!([stuck]).to_string(),
        &["stuck", "1s"],
    )
    .await;
    for release in ["w", "x"] {
        cli.ok(&["mayday", release], &Value::Null).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_of_a_release() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let other = world.namespace().await;
    let absent = format!("absent-{}", world.ns);
    let run = async |namespace: &str, more: &[&str]| -> Result<YokeOutput> {
        let mut arguments = vec!["takeoff", "-namespace", namespace];
        arguments.extend(more);
        arguments.push("r");
        let input = objects(&["a"]).to_string();
        cli.yoke.with_input(&arguments, &input).await
    };
    // The same name in two namespaces is two releases.
    for namespace in [&world.ns, &other] {
        let ran = run(namespace, &[]).await.unwrap();
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(world.configmaps(namespace).await, ["a"]);
    }
    cli.ok(&["mayday", "r"], &Value::Null).await;
    assert_eq!(world.configmaps(&other).await, ["a"]);
    let ran = run(&absent, &[]).await.unwrap();
    assert!(
        ran.code == 1 && ran.stderr.contains(&absent),
        "{}",
        ran.stderr
    );
    let ran = run(&absent, &["-create-namespace"]).await.unwrap();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(world.configmaps(&absent).await, ["a"]);
    world.delete(&format!("/api/v1/namespaces/{absent}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_failed_prune_left_is_remembered_p04_w19() {
    let cli = Cli::new().await;
    let world = &cli.world;
    cli.ok(&["takeoff", "r"], &objects(&["a", "b"])).await;
    let proxy = Proxy::start(world.cluster.plane()).await.unwrap();
    let yoke = Yoke::through(world.cluster.plane(), &proxy).unwrap();
    proxy.fail("DELETE ", Fault::Status(403, None));
    let arguments = ["takeoff", "-namespace", &world.ns, "r"];
    let next = objects(&["a"]).to_string();
    let ran = yoke.with_input(&arguments, &next).await.unwrap();
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains('b'), "{}", ran.stderr);
    assert!(world.configmap("b").await.is_some());
    // Whoever comes next finishes it.
    cli.ok(&["takeoff", "r"], &objects(&["a"])).await;
    assert!(world.configmap("b").await.is_none());
    cli.ok(&["mayday", "r"], &Value::Null).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_takeoffs_at_once_r149() {
    let cli = Cli::new().await;
    let world = &cli.world;
    for round in 0..3 {
        let one = json!([
            configmap("shared", json!({ "from": "one" })),
            configmap("one", json!({ "r": round.to_string() }))
        ]);
        let two = json!([
            configmap("shared", json!({ "from": "two" })),
            configmap("two", json!({ "r": round.to_string() }))
        ]);
        let arguments = ["takeoff", "-force-conflicts", "r"];
        let (one, two) = (one.to_string(), two.to_string());
        let (first, second) = tokio::join!(cli.run(&arguments, &one), cli.run(&arguments, &two));
        assert!(
            first.code == 0 || second.code == 0,
            "{}\n{}",
            first.stderr,
            second.stderr
        );
    }
    // Whoever comes last alone has the last word, and nothing is left of the others.
    cli.ok(&["takeoff", "-force-conflicts", "r"], &objects(&["last"]))
        .await;
    assert_eq!(world.configmaps(&world.ns).await, ["last"]);
    cli.ok(&["mayday", "r"], &Value::Null).await;
    assert!(world.configmaps(&world.ns).await.is_empty());
    assert!(world.revisions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_told_r169() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let user = Yoke::new(world.cluster.plane())
        .unwrap()
        .kubeconfig(world.cluster.plane().user_kubeconfig());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nowhere");
    let file = std::fs::read_to_string(world.cluster.plane().kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_str(&file).unwrap();
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1".into();
    std::fs::write(&path, config.to_string()).unwrap();
    let nowhere = Yoke::new(world.cluster.plane()).unwrap().kubeconfig(path);
    let input = objects(&["a"]).to_string();
    for (yoke, words) in [(&user, "forbidden"), (&nowhere, "cannot be reached")] {
        for command in ["takeoff", "mayday"] {
            let arguments = [command, "-namespace", &world.ns, "r"];
            let ran = yoke.with_input(&arguments, &input).await.unwrap();
            assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
            assert!(ran.stderr.contains(words), "{command}: {}", ran.stderr);
        }
    }
    assert!(world.configmaps(&world.ns).await.is_empty());
}

/// The record of a release lies in its namespace, which is there only when the release has made it.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_makes_its_own_namespace() {
    let cli = Cli::new().await;
    let world = &cli.world;
    for (number, flag) in [None, Some("-create-namespace")].into_iter().enumerate() {
        let own = format!("own{number}-{}", world.ns);
        let path = format!("/api/v1/namespaces/{own}");
        let class = |value: Value| {
            json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": own }, "value": value,
            })
        };
        let output = |note: &str, value: Value| {
            let namespace =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": own } });
            let map = configmap_in(&own, "a", json!({ "note": note }));
            json!([map, class(value), namespace]).to_string()
        };
        let take = async |input: String| {
            let mut arguments = vec!["takeoff", "-namespace", &own, "r"];
            arguments.extend(flag);
            cli.yoke
                .with_input(&arguments, input.as_str())
                .await
                .unwrap()
        };
        let refused = take(output("1", json!("no number"))).await;
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains("priorityclass"), "{refused:?}");
        assert!(world.get(&path).await.unwrap().is_none());

        for note in ["1", "2"] {
            let taken = take(output(note, json!(1))).await;
            assert_eq!(taken.code, 0, "{taken:?}");
            let map = world.get(&format!("{path}/configmaps/a")).await.unwrap();
            assert_eq!(map.unwrap()["data"]["note"], note);
        }
        let selector = "labelSelector=internal.yoke%2Fkind%3Drevision";
        let records = format!("{path}/secrets?{selector}");
        assert_eq!(world.cluster.api.list(&records).await.unwrap().len(), 2);
        let mayday = ["mayday", "-namespace", &own, "r"];
        let gone = cli.yoke.with_input(&mayday, "").await.unwrap();
        assert_eq!(gone.code, 0, "{gone:?}");
        assert!(world.get(&path).await.unwrap().is_some(), "it is let go of");
        world.delete(&path).await;
    }
}
