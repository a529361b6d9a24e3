//! An atc that proves who it is by a token in a file, as in a cluster.

use std::fs;

use atc_tests::eventually;
use serde_json::{Value, json};

use crate::{
    solo::{Solo, plane},
    world::{LIMIT, World, configmap, look},
};

/// A token of the ServiceAccount `rotated` that is good as long as this Secret is there.
async fn token(world: &World, secret: &str) -> String {
    let bound = json!({ "metadata": { "name": secret } });
    let made = world
        .post(&format!("/api/v1/namespaces/{}/secrets", world.ns), &bound)
        .await;
    let path = format!("{}/token", world.core("serviceaccounts", "rotated"));
    let request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {
        "boundObjectRef": {
            "apiVersion": "v1", "kind": "Secret", "name": secret, "uid": made["metadata"]["uid"],
        },
    } });
    let answer = world.post(&path, &request).await;
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// A kubeconfig like the atc's, with the token in this file in place of a certificate.
fn kubeconfig(file: &str) -> String {
    let text = fs::read_to_string(plane().atc_kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["users"][0]["user"] = json!({ "tokenFile": file });
    let path = plane().folder().join("kubeconfig-token");
    fs::write(&path, config.to_string()).unwrap();
    path.to_string_lossy().into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_token_is_taken_when_the_old_one_is_revoked_r117() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let account = json!({ "metadata": { "name": "rotated" } });
    world
        .post(
            &format!("/api/v1/namespaces/{}/serviceaccounts", world.ns),
            &account,
        )
        .await;
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let binding = json!({
        "metadata": { "name": world.ns },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "name": "rotated", "namespace": world.ns }],
    });
    world.post(bindings, &binding).await;
    let file = plane()
        .folder()
        .join("token")
        .to_string_lossy()
        .into_owned();
    fs::write(&file, token(world, "first").await).unwrap();
    let mut atc = solo.atc(&[("KUBE", &kubeconfig(&file))]).await;
    let kind = solo.kind().await;
    world.put_secret("src", "one").await;
    let copier = json!({
        "look": [look("v", "Secret", &world.ns, "src", "data.v")],
        "objects": [configmap("copy", json!({ "v": "${v}" }))],
    });
    kind.make("a", copier).await;

    let next = token(world, "second").await;
    let old = fs::read_to_string(&file).unwrap();
    fs::write(&file, next).unwrap();
    world.delete(&world.core("secrets", "first")).await;
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": old } });
    eventually(LIMIT, "the old token is refused", || async {
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        let answer = world.cluster.api.post(path, &review).await?;
        Ok((answer["status"]["authenticated"] != true).then_some(()))
    })
    .await;
    // Its writes and its watches go on, and none of them failed for that.
    world.put_secret("src", "two").await;
    world.has("copy", json!({ "v": "dHdv" })).await;
    kind.make("b", json!({ "note": "new" })).await;
    let refused: Vec<Value> = atc
        .log()
        .into_iter()
        .filter(|line| line.to_string().contains("Unauthorized"))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(atc.alive());
    for name in ["a", "b"] {
        kind.delete(name).await;
    }
    world.delete(&format!("{bindings}/{}", world.ns)).await;
}
