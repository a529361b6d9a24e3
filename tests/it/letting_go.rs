//! Flights with accounts that go: what the account may not delete, and what nobody removed.

use atc_tests::eventually;
use serde_json::{Value, json};

use crate::accounts::{Accounts, RBAC, acting, create};
use crate::flights::{Flights, flight};
use crate::solo::Solo;
use crate::world::{LIMIT, World, configmap};

fn class(name: &str) -> Value {
    json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": name }, "value": 1 })
}

fn class_path(name: &str) -> String {
    format!("/apis/scheduling.k8s.io/v1/priorityclasses/{name}")
}

/// Lets the account "app" of the test's namespace do this to PriorityClasses and Namespaces.
async fn allow_wide(world: &World, verbs: &[&str]) {
    let rules = json!([
        { "apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": verbs },
        { "apiGroups": [""], "resources": ["namespaces"], "verbs": verbs },
    ]);
    let role = json!({ "metadata": { "name": world.ns }, "rules": rules });
    world.post(&format!("{RBAC}/clusterroles"), &role).await;
    let binding = json!({
        "metadata": { "name": world.ns },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": world.ns },
        "subjects": [Accounts(world).subject("app")],
    });
    let bindings = format!("{RBAC}/clusterrolebindings");
    world.post(&bindings, &binding).await;
}

async fn forbid_wide(world: &World) {
    for kind in ["clusterrolebindings", "clusterroles"] {
        world.delete(&format!("{RBAC}/{kind}/{}", world.ns)).await;
    }
    let user = format!("system:serviceaccount:{}:app", world.ns);
    let what =
        json!({ "group": "scheduling.k8s.io", "resource": "priorityclasses", "verb": "patch" });
    let question = json!({ "spec": { "user": user, "resourceAttributes": what } });
    eventually(LIMIT, "the rights are gone", || async {
        let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer = world.cluster.api.post(reviews, &question).await?;
        Ok((answer["status"]["allowed"] == false).then_some(()))
    })
    .await;
}

/// That it is there, and bears no marks of ours any more.
async fn is_let_go(world: &World, path: &str) {
    let found = world.get(path).await.unwrap().unwrap();
    let metadata = &found["metadata"];
    assert!(metadata["deletionTimestamp"].is_null(), "{metadata}");
    for (map, key) in [
        ("labels", "app.kubernetes.io/managed-by"),
        ("annotations", "instance.atc.yoke.cd/release"),
        ("annotations", "atc.yoke.cd/flight"),
    ] {
        assert!(metadata[map][key].is_null(), "{metadata}");
    }
}

/// Who takes the account off a Flight has not had its rights, nor ours.
#[tokio::test(flavor = "multi_thread")]
async fn what_lies_in_no_namespace_is_let_go_of_with_the_account() {
    let world = World::new().await;
    let (flights, accounts) = (Flights(&world), Accounts(&world));
    accounts.writer("app").await;
    let name = format!("dropped-{}", world.ns);
    allow_wide(&world, &["get", "create", "patch"]).await;
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let objects = json!([
        namespace,
        class(&name),
        configmap("one", json!({ "k": "v" }))
    ]);
    let mut more = acting("app");
    more["prune"] = json!({ "namespaces": true, "crds": true });
    let body = flight("drops", &json!({ "objects": objects }), &more);
    create(&flights, &body).await;
    flights.ready("drops").await;
    let none = json!({ "spec": { "serviceAccountName": null, "inputObject": { "objects": [] } } });
    world.merge(&flights.path("drops"), &none).await;
    flights.ready("drops").await;
    world.gone(&world.core("configmaps", "one")).await;
    let namespace = format!("/api/v1/namespaces/{name}");
    for path in [&class_path(&name), &namespace] {
        is_let_go(&world, path).await;
        world.delete(path).await;
    }
    flights.delete("drops").await;
    forbid_wide(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_account_never_could_delete_is_let_go_of() {
    let world = World::new().await;
    let (flights, accounts) = (Flights(&world), Accounts(&world));
    accounts.writer("app").await;
    let name = format!("kept-{}", world.ns);
    allow_wide(&world, &["get", "create", "patch"]).await;
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let objects = json!([
        configmap("one", json!({ "k": "v" })),
        class(&name),
        namespace
    ]);
    let mut more = acting("app");
    more["prune"] = json!({ "namespaces": true, "crds": true });
    let body = flight("wide", &json!({ "objects": objects }), &more);
    create(&flights, &body).await;
    flights.ready("wide").await;
    flights.delete("wide").await;
    let namespace = format!("/api/v1/namespaces/{name}");
    is_let_go(&world, &class_path(&name)).await;
    is_let_go(&world, &namespace).await;
    world.gone(&world.core("configmaps", "one")).await;
    assert!(world.revisions().await.is_empty());

    // The same once it has no right at all: a Namespace is still not deleted for it.
    create(&flights, &body).await;
    flights.ready("wide").await;
    forbid_wide(&world).await;
    flights.delete("wide").await;
    is_let_go(&world, &namespace).await;
    world.gone(&class_path(&name)).await;
    world.delete(&namespace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flight_whose_finalizer_is_taken_off_leaves_no_record() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let (flights, accounts) = (Flights(world), Accounts(world));
    let mut atc = solo.atc(&[]).await;
    accounts.writer("app").await;
    let name = format!("left-{}", world.ns);
    allow_wide(world, &["get", "create", "patch", "delete"]).await;
    let objects = json!([configmap("one", json!({ "k": "v" })), class(&name)]);
    create(
        &flights,
        &flight("forced", &json!({ "objects": objects }), &acting("app")),
    )
    .await;
    flights.ready("forced").await;
    let kept = json!({ "objects": [configmap("two", json!({ "k": "v" }))] });
    create(&flights, &flight("kept", &kept, &acting("app"))).await;
    flights.ready("kept").await;
    assert_eq!(world.revisions().await.len(), 2);

    // While no atc runs, nobody is asked about finalizers and labels; what such a Flight does stays as it is.
    atc.terminate().unwrap();
    let path = flights.path("forced");
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    world.cluster.api.merge(&path, &label).await.unwrap();
    let edit = json!({ "spec": { "args": ["other"] } });
    let said = world.cluster.api.merge(&path, &edit).await.unwrap_err();
    assert!(said.to_string().contains("accounts.yoke.cd"), "{said}");
    world.delete(&path).await;
    let none = json!({ "metadata": { "finalizers": null } });
    world.cluster.api.merge(&path, &none).await.unwrap();
    world.gone(&path).await;
    world.gone(&world.core("configmaps", "one")).await;

    atc.restart().await.unwrap();
    world.has_revisions(1).await;
    is_let_go(world, &class_path(&name)).await;
    let said = |line: &Value| {
        line.to_string().contains("delete them by hand") && line.to_string().contains(&name)
    };
    assert!(atc.log().iter().any(said));
    flights.ready("kept").await;
    flights.delete("kept").await;
    world.delete(&class_path(&name)).await;
    forbid_wide(world).await;
    atc.terminate().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flight_whose_namespace_goes_while_no_atc_runs_leaves_nothing_r41() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let (flights, accounts) = (Flights(world), Accounts(world));
    let mut atc = solo.atc(&[]).await;
    accounts.writer("app").await;
    let ns = &world.ns;
    let (mine, others) = (format!("mine-{ns}"), format!("others-{ns}"));
    allow_wide(world, &["get", "create", "patch", "delete"]).await;
    let objects = json!([configmap("one", json!({ "k": "v" })), class(&mine)]);
    let body = flight("wide", &json!({ "objects": objects }), &acting("app"));
    create(&flights, &body).await;
    flights.ready("wide").await;
    // A release of the same name in the same namespace that is no Flight's.
    let made = world.get(&class_path(&mine)).await.unwrap().unwrap();
    let mut other = class(&others);
    for map in ["labels", "annotations"] {
        other["metadata"][map] = made["metadata"][map].clone();
    }
    let annotations = other["metadata"]["annotations"].as_object_mut().unwrap();
    assert!(annotations.remove("atc.yoke.cd/flight").is_some());
    let classes = class_path("");
    world.post(classes.trim_end_matches('/'), &other).await;
    atc.kill();

    let namespace = format!("/api/v1/namespaces/{ns}");
    world.delete(&namespace).await;
    eventually(LIMIT, "only the Flight waits", || async {
        let account = format!("{namespace}/serviceaccounts/app");
        let left = world.revisions().await.len();
        let found = world.get(&flights.path("wide")).await?.unwrap_or_default();
        let waits = found["metadata"]["deletionTimestamp"].is_string();
        let gone = world.get(&account).await?.is_none();
        Ok((left == 0 && waits && gone).then_some(()))
    })
    .await;
    assert!(world.get(&class_path(&mine)).await.unwrap().is_some());

    atc.restart().await.unwrap();
    world.gone(&flights.path("wide")).await;
    assert_eq!(world.get(&class_path(&mine)).await.unwrap(), None);
    world.gone(&namespace).await;
    assert!(world.get(&class_path(&others)).await.unwrap().is_some());
    world.delete(&class_path(&others)).await;
    forbid_wide(world).await;
    atc.terminate().unwrap();
}
