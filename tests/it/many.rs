//! Many objects of a kind: few calls, and nothing missed.

use atc_tests::{Proxy, Yoke};
use serde_json::{Value, json};

use crate::terminal::Cli;
use crate::world::configmap;

/// Objects of each kind.
const COUNT: usize = 20;

fn role(name: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": name },
        "rules": [{ "apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get"] }],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_already_costs_few_calls_and_drift_is_found() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let proxy = Proxy::start(world.cluster.plane()).await.unwrap();
    let yoke = Yoke::through(world.cluster.plane(), &proxy).unwrap();
    let names: Vec<String> = (0..COUNT).map(|i| format!("c{i:02}")).collect();
    let maps = names
        .iter()
        .map(|name| configmap(name, json!({ "k": name })));
    let all: Value = maps.chain(names.iter().map(|name| role(name))).collect();
    let run = async |arguments: &[&str]| {
        let seen = proxy.requests().len();
        let ran = cli.run_by(&yoke, arguments, &all.to_string()).await;
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        (ran.stderr, proxy.requests().split_off(seen))
    };
    let writes = |requests: &[String]| {
        let is_write = |line: &&String| !line.starts_with("GET ") && !line.contains("dryRun=All");
        requests.iter().filter(is_write).count()
    };
    let takeoff = ["takeoff", "-force-conflicts", "r"];
    let (_, requests) = run(&takeoff).await;
    // A dry run and an apply each; the rest is about the release.
    assert!(requests.len() < 4 * COUNT + 20, "{requests:#?}");
    let again = async || {
        let (told, requests) = run(&takeoff).await;
        assert!(told.contains("is as it was"), "{told}");
        // Record, intent, kinds, a list of each kind, and one object of each.
        assert!(requests.len() < 14, "{requests:#?}");
        assert_eq!(writes(&requests), 0, "{requests:#?}");
    };
    again().await;

    // Whatever is not as it should be is put right.
    let map = world.core("configmaps", "c07");
    let role = format!(
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles/c11",
        world.ns
    );
    let other = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]);
    world.delete(&map).await;
    run(&takeoff).await;
    for (path, edit) in [
        (&map, json!({ "data": { "k": "edited" } })),
        (&map, json!({ "data": { "k": null } })),
        (
            &map,
            json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": null } } }),
        ),
        (&role, json!({ "rules": other })),
    ] {
        let before = world.get(path).await.unwrap().unwrap();
        world.merge(path, &edit).await;
        run(&takeoff).await;
        let mut after = world.get(path).await.unwrap().unwrap();
        for field in ["resourceVersion", "managedFields"] {
            after["metadata"][field] = before["metadata"][field].clone();
        }
        assert_eq!(after, before, "{edit}");
    }
    again().await;
    // What others add to it is their own.
    let theirs = json!({ "metadata": { "labels": { "theirs": "1" } }, "data": { "more": "1" } });
    world.merge(&map, &theirs).await;
    again().await;

    // What another release took over stays.
    let taken =
        json!({ "metadata": { "annotations": { "instance.atc.yoke.cd/release": "other" } } });
    world.merge(&map, &taken).await;
    let (_, requests) = run(&["mayday", "r"]).await;
    assert!(requests.len() < 2 * COUNT + 20, "{requests:#?}");
    let left = world.configmaps(&world.ns).await;
    assert_eq!(left, ["c07"]);
    assert_eq!(world.get(&role).await.unwrap(), None);
}
