//! What `yoke mayday` leaves alone: releases that a controller makes for a custom resource.

use atc_tests::{Yoke, eventually};
use serde_json::{Value, json};

use crate::flights::{Flights, flight};
use crate::terminal::{Cli, objects};
use crate::world::{LIMIT, World, configmap};

/// The command line on a control plane with an atc.
async fn beside_an_atc() -> Cli {
    let mut cli = Cli::new().await;
    cli.world = World::new().await;
    cli
}

#[tokio::test(flavor = "multi_thread")]
async fn the_release_of_a_flight_goes_with_the_flight() {
    let cli = beside_an_atc().await;
    let world = &cli.world;
    let flights = Flights(world);
    let input = json!({ "objects": [configmap("one", json!({ "k": "1" }))] });
    let body = flight("kept", &input, &json!({}));
    flights.create(&body).await.unwrap();
    flights.ready("kept").await;
    let before = world.revision_names().await;

    let release = format!("{}/Flight.yoke.cd:kept", world.ns);
    let words = format!("delete {release} instead");
    cli.fails(&["mayday", release.as_str()], "", &[words.as_str()])
        .await;
    assert_eq!(world.revision_names().await, before);
    assert_eq!(world.configmaps(&world.ns).await, ["one"]);
    assert!(cli.intents().await.is_empty());

    flights.delete("kept").await;
    assert!(world.configmaps(&world.ns).await.is_empty());
    let ran = cli.ok(&["mayday", release.as_str()], &Value::Null).await;
    assert!(ran.stderr.contains("does not exist"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_release_of_an_instance_goes_with_the_instance() {
    let cli = beside_an_atc().await;
    let world = &cli.world;
    let kind = world.basic().await;
    kind.make("kept", json!({ "note": "hello" })).await;
    let before = world.revision_names().await;

    let release = kind.release("kept");
    let words = format!("delete {}/Basic.tests.atc.dev:kept instead", world.ns);
    cli.fails(&["mayday", release.as_str()], "", &[words.as_str()])
        .await;
    assert_eq!(world.revision_names().await, before);
    assert_eq!(world.configmaps(&world.ns).await, ["kept"]);
    assert!(cli.intents().await.is_empty());

    kind.delete("kept").await;
    assert!(world.configmaps(&world.ns).await.is_empty());
    let ran = cli.ok(&["mayday", release.as_str()], &Value::Null).await;
    assert!(ran.stderr.contains("does not exist"), "{}", ran.stderr);
}

/// Releases that are called like those of custom resources, and no custom resource is there: the records of some that were
/// forced away, for example.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_whose_custom_resource_is_gone_is_removed() {
    let cli = beside_an_atc().await;
    let world = &cli.world;
    let kind = world.basic().await;
    for release in [
        format!("{}/Flight.yoke.cd:gone", world.ns),
        kind.release("gone"),
        format!("not.served.App.{}.gone", world.ns),
    ] {
        cli.ok(&["takeoff", release.as_str()], &objects(&["a"]))
            .await;
        assert_eq!(world.configmaps(&world.ns).await, ["a"]);
        cli.ok(&["mayday", release.as_str()], &Value::Null).await;
        assert!(world.configmaps(&world.ns).await.is_empty(), "{release}");
        assert!(world.revisions().await.is_empty(), "{release}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_read_flights_removes_what_may_be_removed() {
    let cli = beside_an_atc().await;
    let world = &cli.world;
    let roles = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", world.ns);
    let role = json!({ "metadata": { "name": "user" },
        "rules": [{ "apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["*"] }] });
    world.post(&format!("{roles}/roles"), &role).await;
    let binding = json!({ "metadata": { "name": "user" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "user" },
        "subjects": [{ "kind": "User", "name": "user", "apiGroup": "rbac.authorization.k8s.io" }] });
    world.post(&format!("{roles}/rolebindings"), &binding).await;
    let release = format!("{}/Flight.yoke.cd:gone", world.ns);
    cli.ok(&["takeoff", release.as_str()], &objects(&["a"]))
        .await;

    let plane = world.cluster.plane();
    let user = Yoke::new(plane)
        .unwrap()
        .kubeconfig(plane.user_kubeconfig());
    let mayday = ["mayday", "-namespace", &world.ns, release.as_str()];
    eventually(LIMIT, "the rights are known", || async {
        let ran = user.run(&mayday).await?;
        Ok((ran.code == 0).then_some(()))
    })
    .await;
    assert!(world.configmaps(&world.ns).await.is_empty());
    assert!(world.revisions().await.is_empty());
}
