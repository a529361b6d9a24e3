//! `yoke turbulence`: what others have done to a release's objects, and bringing them back.

use atc_tests::{Yoke, eventually};
use serde_json::{Value, json};

use crate::terminal::{Cli, objects};
use crate::world::{CRDS, LIMIT, configmap, configmap_in, deployment, free_crd};

impl Cli {
    /// What turbulence prints, and says.
    async fn turbulence(&self, arguments: &[&str]) -> (String, String) {
        let ran = self
            .ok(&[&["turbulence"], arguments].concat(), &Value::Null)
            .await;
        (ran.stdout, ran.stderr)
    }

    /// Nothing differs.
    async fn calm(&self, release: &str) {
        let (shown, said) = self.turbulence(&[release]).await;
        assert_eq!(shown, "");
        assert!(
            said.starts_with("warning: ") && said.contains("as recorded"),
            "{said}"
        );
    }

    async fn versions(&self, names: &[&str]) -> Vec<Value> {
        let mut versions = Vec::new();
        for name in names {
            let found = self.world.configmap(name).await.unwrap();
            versions.push(found["metadata"]["resourceVersion"].clone());
        }
        versions
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_and_deleted_objects_come_back() {
    let cli = Cli::new().await;
    let world = &cli.world;
    cli.ok(&["takeoff", "r"], &objects(&["changed", "gone", "same"]))
        .await;
    cli.calm("r").await;
    let records = world.revisions().await;
    let changed = world.core("configmaps", "changed");
    world
        .merge(&changed, &json!({ "data": { "k": "x", "extra": "y" } }))
        .await;
    world.delete(&world.core("configmaps", "gone")).await;
    let versions = cli.versions(&["same", "changed"]).await;

    let (shown, said) = cli.turbulence(&["r"]).await;
    assert!(shown.starts_with("--- expected\n+++ actual\n"), "{shown}");
    assert!(shown.contains("-      k: v\n+      k: x\n"), "{shown}");
    let gone = format!("-{}/core/v1/configmap/gone:\n-  object:\n", world.ns);
    assert!(shown.contains(&gone), "{shown}");
    assert!(
        !shown.contains("extra") && !shown.contains("same"),
        "{shown}"
    );
    for words in [
        "configmap/changed: differs",
        "configmap/gone: missing",
        "2 of 3 resources",
    ] {
        assert!(said.contains(words), "{said}");
    }
    let (shown, _) = cli.turbulence(&["-conflict-only=false", "r"]).await;
    assert!(shown.contains("+      extra: \"y\"\n"), "{shown}");
    let (list, _) = cli.turbulence(&["r", "-o", "json"]).await;
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list[0]["state"], "differs");
    assert_eq!(list[0]["actual"]["data"], json!({ "k": "x" }));
    assert_eq!(list[1]["state"], "missing");
    assert_eq!(list[2], Value::Null);
    assert_eq!(
        cli.versions(&["same", "changed"]).await,
        versions,
        "a look writes nothing"
    );

    let (shown, said) = cli.turbulence(&["-fix", "r"]).await;
    assert_eq!(shown, "");
    for words in [
        "configmap/changed: applied again",
        "configmap/gone: made again",
    ] {
        assert!(said.contains(words), "{said}");
    }
    assert!(!said.contains("configmap/same"), "{said}");
    // What others have added is theirs.
    assert_eq!(
        world.data("changed").await,
        json!({ "k": "v", "extra": "y" })
    );
    assert_eq!(world.data("gone").await, json!({ "k": "v" }));
    cli.calm("r").await;
    let versions = (
        cli.versions(&["changed", "gone"]).await,
        versions[0].clone(),
    );
    let (_, said) = cli.turbulence(&["-fix", "r"]).await;
    assert!(said.contains("nothing to bring back"), "{said}");
    let now = (
        cli.versions(&["changed", "gone"]).await,
        cli.versions(&["same"]).await.remove(0),
    );
    assert_eq!(now, versions, "nothing was changed, so nothing is written");
    assert_eq!(
        world.revisions().await,
        records,
        "no revision, and none touched"
    );
    cli.fails(&["turbulence", "nobody"], "", &["\"nobody\""])
        .await;
    cli.fails(&["turbulence", "-fix", "nobody"], "", &["\"nobody\""])
        .await;
    cli.fails(&["turbulence", "-fix", "-o", "json", "r"], "", &["-output"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_notations_are_no_drift_r37() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let mut d = deployment("d", 0);
    d["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({
        "limits": { "cpu": "1000m", "memory": "1000M" }, "requests": { "cpu": "0.5", "memory": "512.0Mi" },
    });
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "s" },
        "spec": { "ports": [{ "port": 80 }], "selector": { "app": "d" } } });
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" }, "stringData": { "k": "hunter2" } });
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": format!("{}-r", world.ns), "namespace": world.ns }, "rules": [] });
    cli.ok(&["takeoff", "r"], &json!([d, service, secret, role]))
        .await;
    cli.calm("r").await;

    // Whoever may only read sees the same.
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let name = &world.ns;
    let role = json!({ "metadata": { "name": name }, "rules": [{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"] }] });
    world.post(&format!("{rbac}/clusterroles"), &role).await;
    let binding = |kind: &str| {
        json!({ "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
        "subjects": [{ "kind": "User", "name": kind, "apiGroup": "rbac.authorization.k8s.io" }] })
    };
    let roles = format!("{rbac}/namespaces/{}/rolebindings", world.ns);
    world.post(&roles, &binding("user")).await;
    // The ClusterRole of the release lies outside of the namespace.
    let wide = json!({ "metadata": { "name": format!("{name}-wide") }, "rules": [{ "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["get"] }] });
    world.post(&format!("{rbac}/clusterroles"), &wide).await;
    let mut wide = binding("user");
    wide["roleRef"]["name"] = format!("{name}-wide").into();
    world
        .post(&format!("{rbac}/clusterrolebindings"), &wide)
        .await;
    let plane = world.cluster.plane();
    let reader = Yoke::new(plane)
        .unwrap()
        .kubeconfig(plane.user_kubeconfig());
    let look = ["turbulence", "-namespace", name, "r"];
    let ran = eventually(LIMIT, "the rights are known", || async {
        let ran = reader.run(&look).await?;
        Ok((ran.code == 0).then_some(ran))
    })
    .await;
    assert_eq!(ran.stdout, "", "{}", ran.stderr);
    assert!(
        ran.stderr.contains("compared field by field"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("forbidden"), "{}", ran.stderr);

    // The value of a Secret changes: that is told, the value is not.
    let path = world.core("secrets", "s");
    world
        .merge(&path, &json!({ "data": { "k": "aHVudGVyMw==" } }))
        .await;
    for yoke in [&cli.yoke, &reader] {
        let ran = yoke.run(&look).await.unwrap();
        assert!(
            ran.stdout.contains("+      k: (hidden, differs)"),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(
            !all.contains("hunter2") && !all.contains("aHVudGVy"),
            "{all}"
        );
    }
    let ran = reader
        .run(&["turbulence", "-fix", "-namespace", name, "r"])
        .await
        .unwrap();
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("forbidden"), "{}", ran.stderr);
    cli.turbulence(&["-fix", "r"]).await;
    cli.calm("r").await;
    cli.ok(&["mayday", "r"], &Value::Null).await;
    world
        .delete(&format!("{rbac}/clusterrolebindings/{name}"))
        .await;
    for role in [name.clone(), format!("{name}-wide")] {
        world.delete(&format!("{rbac}/clusterroles/{role}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_ours_is_left_alone() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let names = ["taken", "foreign", "going", "bare", "ours"];
    cli.ok(&["takeoff", "r"], &objects(&names)).await;
    let other = json!([configmap("taken", json!({ "k": "theirs" }))]);
    cli.ok(
        &["takeoff", "-force-ownership", "-force-conflicts", "other"],
        &other,
    )
    .await;
    world.delete(&world.core("configmaps", "foreign")).await;
    let path = format!("/api/v1/namespaces/{}/configmaps", world.ns);
    world
        .post(&path, &configmap("foreign", json!({ "k": "theirs" })))
        .await;
    let going = world.core("configmaps", "going");
    world
        .merge(
            &going,
            &json!({ "metadata": { "finalizers": ["tests.dev/hold"] } }),
        )
        .await;
    world.delete(&going).await;
    // Its marks are gone, and it is the object that we have made: that is drift.
    let bare = world.core("configmaps", "bare");
    world
        .merge(&bare, &json!({ "metadata": { "annotations": null } }))
        .await;
    let versions = cli.versions(&["taken", "foreign", "going", "ours"]).await;

    let told = [
        format!("configmap/taken: belongs to release \"{}/other\"", world.ns),
        "configmap/foreign: is another object".to_owned(),
        "configmap/going: is being deleted".to_owned(),
    ];
    let (shown, said) = cli.turbulence(&["-context", "20", "r"]).await;
    assert!(
        !shown.contains("theirs") && shown.contains("configmap/bare"),
        "{shown}"
    );
    let (_, fixed) = cli.turbulence(&["-fix", "r"]).await;
    for words in &told {
        assert!(
            said.contains(words) && fixed.contains(words),
            "{words:?} in {said} and {fixed}"
        );
    }
    assert!(fixed.contains("configmap/bare: applied again"), "{fixed}");
    assert!(fixed.contains("3 resources left alone"), "{fixed}");
    assert_eq!(
        cli.versions(&["taken", "foreign", "going", "ours"]).await,
        versions
    );
    let found = world.configmap("bare").await.unwrap();
    assert_eq!(
        found["metadata"]["annotations"]["instance.atc.yoke.cd/release"],
        "r"
    );
    world
        .merge(&going, &json!({ "metadata": { "finalizers": null } }))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_and_namespaces_come_back_before_what_needs_them() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let made = format!("made-{}", world.ns);
    let widget = json!({ "apiVersion": "made.dev/v1", "kind": "Lost", "metadata": { "name": "w" }, "spec": { "n": 1 } });
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": made } });
    let all = json!([
        free_crd("Lost"),
        namespace,
        widget,
        configmap_in(&made, "c", json!({ "k": "v" }))
    ]);
    cli.ok(&["takeoff", "-cross-namespace", "r"], &all).await;
    cli.calm("r").await;
    let paths = [
        format!("/api/v1/namespaces/{made}/configmaps/c"),
        format!("/api/v1/namespaces/{made}"),
        format!("/apis/made.dev/v1/namespaces/{}/losts/w", world.ns),
        format!("{CRDS}/losts.made.dev"),
    ];
    for path in &paths[1..] {
        world.delete(path).await;
        world.gone(path).await;
    }
    let (_, said) = cli.turbulence(&["r"]).await;
    assert!(said.contains("4 of 4 resources"), "{said}");
    let (_, said) = cli.turbulence(&["-fix", "r"]).await;
    assert!(said.contains("lost/w: made again"), "{said}");
    for path in &paths {
        assert!(world.get(path).await.unwrap().is_some(), "{path}: {said}");
    }
    cli.calm("r").await;
    cli.ok(&["mayday", "-remove-all", "r"], &Value::Null).await;
}

/// A version that is not served any more is told, and is neither missing nor an error (R-69).
#[tokio::test(flavor = "multi_thread")]
async fn an_api_version_that_is_gone_is_told_r69() {
    let cli = Cli::new().await;
    let mut crd = free_crd("Aged");
    let mut old = crd["spec"]["versions"][0].clone();
    old["name"] = "v1alpha1".into();
    old["storage"] = false.into();
    crd["spec"]["versions"].as_array_mut().unwrap().push(old);
    cli.ok(&["takeoff", "crd"], &json!([crd])).await;
    let aged =
        json!({ "apiVersion": "made.dev/v1alpha1", "kind": "Aged", "metadata": { "name": "w" } });
    cli.ok(
        &["takeoff", "r"],
        &json!([aged, configmap("c", json!({ "k": "v" }))]),
    )
    .await;
    crd["spec"]["versions"].as_array_mut().unwrap().pop();
    cli.ok(&["takeoff", "crd"], &json!([crd])).await;
    let said = eventually(LIMIT, "the version is gone", || async {
        let (shown, said) = cli.turbulence(&["r"]).await;
        assert_eq!(shown, "");
        Ok(said.contains("no longer serves").then_some(said))
    })
    .await;
    assert!(
        said.contains("aged/w") && said.contains("made.dev/v1alpha1"),
        "{said}"
    );
    let (_, said) = cli.turbulence(&["-fix", "r"]).await;
    assert!(said.contains("1 resource left alone"), "{said}");
    cli.ok(&["mayday", "r"], &Value::Null).await;
    cli.ok(&["mayday", "-remove-all", "crd"], &Value::Null)
        .await;
}
