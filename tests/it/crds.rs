//! The CRDs of Airways, and the atc's own: what is in them, who else has a hand in them, and what is refused.

use std::time::Duration;

use atc_tests::{AirwayBuilder, condition, eventually, is_ready, never};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

use crate::world::{CRDS, HOOKS, LIMIT, SOON, World, puppet, text};

/// How long nothing may happen where nothing shall.
const QUIET: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread")]
async fn the_installed_crds_are_those_of_the_api() {
    let world = World::new().await;
    let crds = atc_api::airway::crds();
    assert_eq!(crds.len(), 3);
    for crd in crds {
        let name = crd.metadata.name.clone().unwrap();
        let wanted = serde_json::to_value(&crd).unwrap();
        let found = world.get(&format!("{CRDS}/{name}")).await.unwrap().unwrap();
        // The apiserver completes names and conversion; it must not drop or complete anything of the schema.
        let shown: CustomResourceDefinition = serde_json::from_value(found.clone()).unwrap();
        let shown = shown.spec.versions;
        assert!(
            shown == crd.spec.versions,
            "{name}:\n{}\n{}",
            json!(shown),
            json!(crd.spec.versions)
        );
        let (wanted, found) = (&wanted["spec"], &found["spec"]);
        for field in ["group", "scope"] {
            assert_eq!(found[field], wanted[field], "{name}: {field}");
        }
        for field in ["kind", "plural", "singular", "shortNames", "categories"] {
            assert_eq!(
                found["names"][field], wanted["names"][field],
                "{name}: {field}"
            );
        }
        assert_eq!(found["conversion"]["strategy"], "None", "{name}");
        let version = &found["versions"][0];
        assert_eq!(version["subresources"]["status"], json!({}), "{name}");
    }
    for (name, webhook) in [
        ("atc-airway", "airways.yoke.cd"),
        ("atc-flight", "flights.yoke.cd"),
    ] {
        let hook = world
            .get(&format!("{HOOKS}/{name}"))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(hook["webhooks"][0]["name"], webhook);
        assert_eq!(hook["webhooks"][0]["failurePolicy"], "Fail");
        assert_eq!(hook["webhooks"][0]["sideEffects"], "None");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crd_and_a_webhook_are_made_and_scale_works_r162_w37() {
    let world = World::new().await;
    let scale =
        json!({ "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" });
    let column = json!([{ "name": "note", "type": "string", "jsonPath": ".spec.note" }]);
    let kind = world
        .kind_with(AirwayBuilder::new("Scaled", &puppet()), |airway| {
            let version = &mut airway["spec"]["template"]["versions"][0];
            version["subresources"] = json!({ "scale": scale });
            version["additionalPrinterColumns"] = column.clone();
            let status = &mut version["schema"]["openAPIV3Schema"]["properties"]["status"];
            // Whoever says nothing of conditions gets them.
            *status =
                json!({ "type": "object", "properties": { "replicas": { "type": "integer" } } });
        })
        .await;
    let airway = world.get(&kind.airway_path()).await.unwrap().unwrap();
    assert_eq!(
        airway["metadata"]["finalizers"],
        json!(["yoke.cd/strip.airway"])
    );
    let ready = condition(&airway, "Ready").unwrap();
    assert_eq!(
        ready["observedGeneration"],
        airway["metadata"]["generation"]
    );
    let name = kind.airway.name();
    let crd = world.get(&format!("{CRDS}/{name}")).await.unwrap().unwrap();
    let hook = world
        .get(&format!("{HOOKS}/{name}"))
        .await
        .unwrap()
        .unwrap();
    for made in [&crd, &hook] {
        let owners = made["metadata"]["ownerReferences"].as_array().unwrap();
        assert_eq!(owners.len(), 1);
        assert_eq!(owners[0]["kind"], "Airway");
        assert_eq!(owners[0]["uid"], airway["metadata"]["uid"]);
    }
    assert_eq!(hook["webhooks"][0]["name"], name);
    assert_eq!(hook["webhooks"][0]["failurePolicy"], "Fail");
    let version = &crd["spec"]["versions"][0];
    assert_eq!(version["subresources"]["status"], json!({}));
    assert_eq!(
        version["subresources"]["scale"]["specReplicasPath"],
        ".spec.replicas"
    );
    assert_eq!(version["additionalPrinterColumns"], column);
    let status = &version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
    assert_eq!(
        status["conditions"]["items"]["properties"]["type"]["type"],
        "string"
    );

    // As `kubectl scale` does it.
    kind.make("s", json!({ "replicas": 1, "status": { "replicas": 1 } }))
        .await;
    world.has("s", json!({ "replicas": "1" })).await;
    let path = format!("{}/scale", kind.path("s"));
    let mut scale = world.get(&path).await.unwrap().unwrap();
    assert_eq!(scale["status"]["replicas"], 1);
    scale["spec"]["replicas"] = 3.into();
    world.cluster.api.put(&path, &scale).await.unwrap();
    assert_eq!(kind.instance("s").await["spec"]["replicas"], 3);
    world.has("s", json!({ "replicas": "3" })).await;
    kind.ready("s").await;
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_field_manager_of_the_crd_blocks_no_airway_w37() {
    let world = World::new().await;
    let column = |path: &str| json!([{ "name": "note", "type": "string", "jsonPath": path }]);
    let kind = world.kind(AirwayBuilder::new("Claimed", &puppet())).await;
    let name = kind.airway.name();
    let path = format!("{CRDS}/{name}");
    let crd = world.get(&path).await.unwrap().unwrap();
    let mut versions = crd["spec"]["versions"].clone();
    versions[0]["additionalPrinterColumns"] = column(".spec.theirs");
    let claim = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": name }, "spec": { "versions": versions },
    });
    let claimed = world.cluster.api.apply(&path, &claim).await.unwrap();
    let managers = claimed["metadata"]["managedFields"].to_string();
    assert!(managers.contains("\"someone\""), "{managers}");
    // What it says is put right, or what the Airway says next is what counts: either takes the field by force.
    let mut template = kind.airway.build()["spec"]["template"].clone();
    template["versions"][0]["additionalPrinterColumns"] = column(".spec.note");
    kind.update(json!({ "template": template })).await;
    let crd = world.get(&path).await.unwrap().unwrap();
    let columns = &crd["spec"]["versions"][0]["additionalPrinterColumns"];
    assert_eq!(*columns, column(".spec.note"));
    kind.make("a", json!({})).await;
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crd_deleted_by_hand_comes_back_r21() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Reborn", &puppet()).dynamic();
    let kind = world.kind(airway).await;
    kind.make("a", json!({ "note": "before" })).await;
    let path = format!("{CRDS}/{}", kind.airway.name());
    let before = world.get(&path).await.unwrap().unwrap();
    // Its owner alone.
    let none = json!({ "metadata": { "ownerReferences": null } });
    world.merge(&path, &none).await;
    eventually(SOON, "its owner is back", || async {
        let owners = &world.get(&path).await?.unwrap_or_default()["metadata"]["ownerReferences"];
        Ok((*owners == before["metadata"]["ownerReferences"]).then_some(()))
    })
    .await;
    world.delete(&path).await;
    // It waits for its instances, which the apiserver looks after every five seconds.
    let uid = async || {
        let crd = world.get(&path).await?.unwrap_or_default();
        anyhow::Ok(crd["metadata"]["uid"].clone())
    };
    eventually(LIMIT, "the CRD is gone", || async {
        Ok((uid().await? != before["metadata"]["uid"]).then_some(()))
    })
    .await;
    eventually(SOON, "the CRD is back", || async {
        Ok(uid().await?.is_string().then_some(()))
    })
    .await;
    eventually(SOON, "an instance is taken", || async {
        kind.create("b", &json!({ "note": "again" }))
            .await
            .map(Some)
    })
    .await;
    world.has_soon("b", json!({ "note": "again" })).await;
    kind.ready("b").await;
    // What went with the old CRD went whole, and edits are seen through the new one.
    world.gone(&world.core("configmaps", "a")).await;
    kind.edit("b", json!({ "note": "once more" })).await;
    world.has_soon("b", json!({ "note": "once more" })).await;
    world.has_revisions(2).await;
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_change_is_shown_and_does_no_harm_r27() {
    let world = World::new().await;
    let kind = world.kind(AirwayBuilder::new("Stored", &puppet())).await;
    kind.make("a", json!({ "note": "before" })).await;
    let path = kind.airway_path();
    let old = world.get(&path).await.unwrap().unwrap()["spec"]["template"].clone();
    let mut version = old["versions"][0].clone();
    version["name"] = "v9".into();
    let mut shapeless = old["versions"][0].clone();
    shapeless["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["note"] =
        json!({ "description": "of no type" });
    let changes = [
        (
            json!({ "versions": [shapeless] }),
            "must not be empty for specified object fields",
        ),
        (json!({ "versions": [version] }), "storedVersions"),
        (json!({ "scope": "Cluster" }), "scope"),
        (
            json!({ "names": { "plural": "others" } }),
            "metadata.name is",
        ),
    ];
    for (template, words) in changes {
        let change = json!({ "spec": { "template": template } });
        let error = world.cluster.api.merge(&path, &change).await.unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("airways.yoke.cd\" denied") && error.contains(words),
            "{error}"
        );
    }
    assert!(is_ready(&world.get(&path).await.unwrap().unwrap()));
    kind.edit("a", json!({ "note": "after" })).await;
    world.has("a", json!({ "note": "after" })).await;

    // Where nobody asks us first, the refusal is in the condition, and the kind is served on.
    let hook = format!("{HOOKS}/atc-airway");
    let mut webhooks = world.get(&hook).await.unwrap().unwrap()["webhooks"].clone();
    webhooks[0]["objectSelector"] =
        json!({ "matchExpressions": [{ "key": "unasked", "operator": "DoesNotExist" }] });
    let unasked = json!({
        "metadata": { "labels": { "unasked": "" } }, "spec": { "template": { "versions": [version] } },
    });
    world
        .merge(
            &path,
            &json!({ "metadata": { "labels": { "unasked": "" } } }),
        )
        .await;
    // The atc puts its webhook right, so this is a race, which is won in the end: it does so once a second at most.
    eventually(LIMIT, "the change is taken", || async {
        let webhooks = json!({ "webhooks": webhooks });
        world.cluster.api.merge(&hook, &webhooks).await?;
        world.cluster.api.merge(&path, &unasked).await.map(Some)
    })
    .await;
    eventually(LIMIT, "the refusal is shown", || async {
        let airway = world.get(&path).await?.unwrap_or_default();
        let ready = condition(&airway, "Ready").cloned().unwrap_or_default();
        let shown =
            ready["reason"] == "Error" && text(&ready["message"]).contains("storedVersions");
        if shown {
            Ok(Some(()))
        } else {
            Err(anyhow::anyhow!("{ready}"))
        }
    })
    .await;
    // It is tried again with growing pauses, and nothing is written meanwhile.
    let name = kind.airway.name();
    let stored = async || {
        let mut versions = Vec::new();
        for path in [&path, &format!("{CRDS}/{name}")] {
            let object = world.get(path).await?.unwrap_or_default();
            versions.push(object["metadata"]["resourceVersion"].clone());
        }
        anyhow::Ok(versions)
    };
    let before = stored().await.unwrap();
    let mut audit = world.cluster.audit();
    never(QUIET, "the Airway or its CRD is written", || async {
        let now = stored().await?;
        Ok((now != before).then_some(now))
    })
    .await;
    let calls = audit.calls().await.unwrap();
    let tries: Vec<_> = calls
        .iter()
        .filter(|call| call.name == name && call.writes())
        .collect();
    assert!(tries.len() <= 4, "{tries:#?}");
    kind.edit("a", json!({ "note": "served on" })).await;
    world.has("a", json!({ "note": "served on" })).await;
    kind.update(json!({ "template": old })).await;
    kind.edit("a", json!({ "note": "recovered" })).await;
    world.has("a", json!({ "note": "recovered" })).await;
    kind.finish().await;
}
