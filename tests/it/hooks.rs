//! The webhook configurations: kept as they should be, handed from one atc to the next, and renewed with their CA.

use std::{fs, time::Duration};

use anyhow::{Result, anyhow};
use atc_tests::{AirwayBuilder, Atc, eventually, never};
use serde_json::{Value, json};

use crate::{
    solo::{Solo, plane},
    world::{AIRWAYS, CRDS, HOOKS, LIMIT, SOON, World, configmap, puppet, text},
};

/// Those that stand as long as an atc runs.
const EVERYBODYS: [&str; 2] = ["atc-airway", "atc-flight"];

async fn hook(world: &World, name: &str) -> Result<Option<Value>> {
    world.get(&format!("{HOOKS}/{name}")).await
}

/// Waits until a configuration asks the atc behind this Service.
async fn asks(world: &World, name: &str, service: &str) -> Value {
    eventually(LIMIT, &format!("{name} asks {service}"), || async {
        let hook = hook(world, name).await?.unwrap_or_default();
        let asked = &hook["webhooks"][0]["clientConfig"]["service"]["name"];
        if *asked == service {
            return Ok(Some(hook));
        }
        Err(anyhow!("{asked}"))
    })
    .await
}

/// Whether Airways are reviewed by an atc of ours: one that it must refuse.
pub(crate) async fn is_reviewed(world: &World) -> Result<Option<()>> {
    let mut bad = AirwayBuilder::new("Bad", "none").build();
    bad["metadata"]["name"] = "another.name".into();
    let error = world.cluster.api.post(AIRWAYS, &bad).await;
    let error = error.map(|_| "it was taken".to_owned());
    let error = error.unwrap_or_else(|error| error.to_string());
    if error.contains("airways.yoke.cd\" denied") {
        return Ok(Some(()));
    }
    world
        .cluster
        .api
        .delete(&format!("{AIRWAYS}/another.name"))
        .await
        .ok();
    Err(anyhow!("{error}"))
}

/// Who runs an atc by hand runs it as himself: what he writes is reviewed all the same, what it writes is not.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_shares_the_user_of_the_atc_is_reviewed() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let ours = plane().kubeconfig();
    let _atc = solo.atc(&[("KUBE", ours.to_str().unwrap())]).await;
    is_reviewed(world).await.unwrap();
    let kind = AirwayBuilder::new("Shared", &puppet()).set("mode", "static");
    let kind = world.kind(kind).await;
    let child = |value: &str| json!({ "objects": [configmap("shared", json!({ "a": value }))] });
    kind.make("s", child("1")).await;
    let error = kind.try_edit("s", json!({ "fail": "no" })).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("denied the request"), "{error}");
    let path = world.core("configmaps", "shared");
    let error = world
        .cluster
        .api
        .merge(&path, &json!({ "data": { "a": "3" } }))
        .await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("mode static"), "{error}");
    kind.edit("s", child("2")).await;
    world.has("shared", json!({ "a": "2" })).await;
    world.delete(&kind.path("s")).await;
    kind.gone("s").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_is_deleted_or_edited_is_put_back() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let mut atc = solo.atc(&[]).await;
    let kind = solo.kind().await;
    let airway = kind.airway.name();
    for name in [EVERYBODYS[0], EVERYBODYS[1], &airway] {
        let path = format!("{HOOKS}/{name}");
        let before = hook(world, name).await.unwrap().unwrap();
        let is_back = |hook: &Value| {
            let part = |hook: &Value, key: &str| hook["metadata"][key].clone();
            hook["webhooks"] == before["webhooks"]
                && ["labels", "annotations", "ownerReferences"]
                    .into_iter()
                    .all(|key| part(hook, key) == part(&before, key))
        };
        world.delete(&path).await;
        let mut edits = vec![json!({})];
        let mut edit = |change: &dyn Fn(&mut Value)| {
            let mut webhooks = before["webhooks"].clone();
            change(&mut webhooks);
            edits.push(json!({ "webhooks": webhooks }));
        };
        edit(&|webhooks| webhooks[0]["failurePolicy"] = "Ignore".into());
        // What others add is no field of ours: an apply would leave it.
        edit(&|webhooks| {
            webhooks[0]["objectSelector"] = json!({ "matchLabels": { "reviewed": "please" } });
        });
        edit(&|webhooks| {
            let none = json!({ "name": "none", "expression": "false" });
            webhooks[0]["matchConditions"]
                .as_array_mut()
                .unwrap()
                .push(none);
        });
        edit(&|webhooks| {
            let mut other = webhooks[0].clone();
            other["name"] = "others.made.dev".into();
            webhooks.as_array_mut().unwrap().push(other);
        });
        edit(&|webhooks| *webhooks = json!([]));
        edits.push(json!({ "metadata": { "annotations": null, "labels": null } }));
        for edit in edits {
            let path = path.as_str();
            eventually(LIMIT, &format!("{name} is there to be edited"), || async {
                world.cluster.api.merge(path, &edit).await.map(Some)
            })
            .await;
            eventually(SOON, &format!("{name} is back after {edit}"), || async {
                Ok(hook(world, name).await?.filter(is_back))
            })
            .await;
        }
    }
    // Then nothing more is written.
    let mut versions = Vec::new();
    for name in [EVERYBODYS[0], EVERYBODYS[1], &airway] {
        versions
            .push(hook(world, name).await.unwrap().unwrap()["metadata"]["resourceVersion"].clone());
    }
    never(
        Duration::from_secs(2),
        "a configuration is written",
        || async {
            let mut now = Vec::new();
            for name in [EVERYBODYS[0], EVERYBODYS[1], &airway] {
                now.push(
                    hook(world, name).await?.unwrap_or_default()["metadata"]["resourceVersion"]
                        .clone(),
                );
            }
            Ok((now != versions).then_some(now))
        },
    )
    .await;
    eventually(LIMIT, "Airways are reviewed", || is_reviewed(world)).await;
    atc.terminate().unwrap();
    for name in EVERYBODYS {
        assert_eq!(hook(world, name).await.unwrap(), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_process_leaves_the_webhooks_of_a_new_one_r105() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let mut old = solo.atc(&[]).await;
    let kind = solo.kind().await;
    let airway = kind.airway.name();
    let all = [EVERYBODYS[0], EVERYBODYS[1], &airway];
    let next = || Atc::start(plane(), &world.cluster.api, "solo-next", &[]);

    // A rolling update: the new one is there before the old one ends.
    let mut new = next().await.unwrap();
    for name in all {
        asks(world, name, "solo-next").await;
    }
    // Two that live do not fight.
    let is_olds = || async {
        for name in all {
            let hook = hook(world, name).await?.unwrap_or_default();
            if hook["webhooks"][0]["clientConfig"]["service"]["name"] != "solo-next" {
                return Ok(Some(hook));
            }
        }
        Ok(None)
    };
    never(Duration::from_secs(2), "the old one takes it back", is_olds).await;
    world.delete(&format!("{HOOKS}/atc-airway")).await;
    asks(world, "atc-airway", "solo-next").await;
    old.terminate().unwrap();
    never(
        Duration::from_secs(2),
        "the old one took something with it",
        is_olds,
    )
    .await;
    eventually(LIMIT, "Airways are reviewed", || is_reviewed(world)).await;

    // It is undone: the newest one ends first.
    new.terminate().unwrap();
    for name in EVERYBODYS {
        assert_eq!(hook(world, name).await.unwrap(), None);
    }
    old.restart().await.unwrap();
    let mut new = next().await.unwrap();
    for name in all {
        asks(world, name, "solo-next").await;
    }
    new.terminate().unwrap();
    // Also what stays where it ends.
    for name in all.into_iter().chain(["flight-accounts.yoke.cd"]) {
        asks(world, name, "solo").await;
    }
    eventually(LIMIT, "Airways are reviewed", || is_reviewed(world)).await;
    old.terminate().unwrap();
    for name in EVERYBODYS {
        assert_eq!(hook(world, name).await.unwrap(), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_ca_is_taken_up_without_a_failed_review_r107_w32() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let mut atc = solo.atc(&[]).await;
    let kind = solo.kind().await;
    kind.make("a", json!({ "note": "first" })).await;
    let airway = kind.airway.name();
    let files = plane().folder().join("service-solo");
    let new = plane()
        .certificate("renewed", &["solo.atc.svc", "localhost", "127.0.0.1"])
        .unwrap();
    let copy = |name: &str| fs::copy(new.join(name), files.join(name)).unwrap();
    let bundle = |hook: &Value| text(&hook["webhooks"][0]["clientConfig"]["caBundle"]).to_owned();
    let before = bundle(&hook(world, &airway).await.unwrap().unwrap());
    let said = |words: &str| {
        let log = atc.log();
        let said = |line: &&Value| {
            line["message"]
                .as_str()
                .is_some_and(|text| text.contains("not usable"))
                && line["error"]
                    .as_str()
                    .is_some_and(|text| text.contains(words))
        };
        log.iter().filter(said).count()
    };

    // Half of it: the key does not fit, then the CA does not.
    for (file, words) in [
        ("server.crt", "the key does not belong to the certificate"),
        ("server.key", "the certificate is not known by the CA"),
    ] {
        copy(file);
        eventually(LIMIT, words, || async {
            kind.try_edit("a", json!({ "note": words })).await?;
            Ok((said(words) > 0).then_some(()))
        })
        .await;
    }
    assert_eq!(
        bundle(&hook(world, &airway).await.unwrap().unwrap()),
        before
    );

    copy("ca.crt");
    let mut edits = 0;
    let mut failed = Vec::new();
    loop {
        edits += 1;
        if let Err(error) = kind
            .try_edit("a", json!({ "note": edits.to_string() }))
            .await
        {
            failed.push(format!("{error:#}"));
        }
        let mut now = Vec::new();
        for name in [EVERYBODYS[0], EVERYBODYS[1], &airway] {
            now.push(bundle(&hook(world, name).await.unwrap().unwrap()));
        }
        // For a while both are told; at the end the new one alone, which is about as long as the old one.
        let is_new = |bundle: &String| *bundle != before && bundle.len() < before.len() * 3 / 2;
        if now.iter().all(is_new) {
            break;
        }
        assert!(edits < 2_000, "{now:?}");
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert!(failed.is_empty(), "{failed:?}");
    eventually(LIMIT, "Airways are reviewed", || is_reviewed(world)).await;
    // This asks for a certificate that the new CA knows.
    assert_eq!(atc.get("/live").await.unwrap().0, 200);
    kind.edit("a", json!({ "note": "last" })).await;
    world.has("a", json!({ "note": "last" })).await;
    for words in ["does not belong", "is not known"] {
        assert_eq!(said(words), 1, "{words}");
    }
    assert!(atc.alive());
    kind.delete("a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crd_of_ours_that_is_deleted_comes_back_and_is_served() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let _atc = solo.atc(&[]).await;
    let path = format!("{CRDS}/flights.yoke.cd");
    let uid = world.get(&path).await.unwrap().unwrap()["metadata"]["uid"].clone();
    world.delete(&path).await;
    eventually(LIMIT, "the CRD is back", || async {
        let crd = world.get(&path).await?.unwrap_or_default();
        let uid_now = &crd["metadata"]["uid"];
        Ok((uid_now.is_string() && *uid_now != uid).then_some(()))
    })
    .await;
    let flights = format!("/apis/yoke.cd/v1alpha1/namespaces/{}/flights", world.ns);
    let flight = json!({
        "apiVersion": "yoke.cd/v1alpha1", "kind": "Flight", "metadata": { "name": "f" },
        "spec": { "wasmUrl": puppet(), "inputObject": { "note": "x" } },
    });
    eventually(LIMIT, "a Flight is taken", || async {
        Ok(world.cluster.api.post(&flights, &flight).await.ok())
    })
    .await;
    world.has("f", json!({ "note": "x" })).await;
    world.delete(&format!("{flights}/f")).await;
    world.gone(&format!("{flights}/f")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crd_of_ours_that_lost_its_status_is_put_back_and_a_complete_one_stays() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let _atc = solo.atc(&[]).await;
    let path = format!("{CRDS}/flights.yoke.cd");
    let crd = world.get(&path).await.unwrap().unwrap();
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    let overwrite = |edit: fn(&mut Value)| {
        let mut version = crd["spec"]["versions"][0].clone();
        edit(&mut version);
        json!({ "spec": { "versions": [version] } })
    };
    // Of another version, and of use: nobody fights over it.
    let described = overwrite(|version| {
        version["schema"]["openAPIV3Schema"]["description"] = "of another version".into();
    });
    world.merge(&path, &described).await;

    let edits: [fn(&mut Value); 2] = [
        |version| version["subresources"] = json!({}),
        |version| {
            version["schema"] = json!({ "openAPIV3Schema": { "type": "object" } });
        },
    ];
    for edit in edits {
        world.merge(&path, &overwrite(edit)).await;
        eventually(LIMIT, "the CRD is put back", || async {
            let crd = world.get(&path).await?.unwrap_or_default();
            let status = crd.pointer("/spec/versions/0/subresources/status");
            let fields = crd.pointer(&format!("{schema}/properties/wasmUrl"));
            Ok((status.is_some() && fields.is_some()).then_some(()))
        })
        .await;
    }
    // It is left: by the time that the one after it is put back, the atc has looked at it.
    world.merge(&path, &described).await;
    let other = format!("{CRDS}/clusterflights.yoke.cd");
    let uid = world.get(&other).await.unwrap().unwrap()["metadata"]["uid"].clone();
    world.delete(&other).await;
    eventually(LIMIT, "the other CRD is back", || async {
        let crd = world.get(&other).await?.unwrap_or_default();
        let uid_now = &crd["metadata"]["uid"];
        Ok((uid_now.is_string() && *uid_now != uid).then_some(()))
    })
    .await;
    let now = world.get(&path).await.unwrap().unwrap();
    let root = &now["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(root["description"], "of another version");
    world.merge(&path, &json!({ "spec": crd["spec"] })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_flight_prints_what_is_the_atcs_own() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let _atc = solo.atc(&[]).await;
    let flights = "/apis/yoke.cd/v1alpha1/clusterflights";
    let crd = world.get(&format!("{CRDS}/flights.yoke.cd")).await;
    let crd = crd.unwrap().unwrap();
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "flights.yoke.cd" }, "spec": crd["spec"],
    });
    let hook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "atc-flight" }, "webhooks": [],
    });
    for object in [crd, hook] {
        let flight = json!({
            "apiVersion": "yoke.cd/v1alpha1", "kind": "ClusterFlight", "metadata": { "name": "greedy" },
            "spec": { "wasmUrl": puppet(), "inputObject": { "objects": [object] } },
        });
        let said = world.cluster.api.post(flights, &flight).await;
        let said = said.unwrap_err().to_string();
        assert!(said.contains("for the atc itself"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_existing_tool_has_left_for_all_kinds_is_taken_away() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let name = "atc-external-resources";
    let left = |webhook: &str| {
        json!({
            "metadata": { "name": name },
            "webhooks": [{
                "name": webhook, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Ignore",
                "clientConfig": { "service": { "name": "solo", "namespace": "atc", "path": "/validations/external-resources" } },
                "rules": [{ "apiGroups": ["none.dev"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"] }],
            }],
        })
    };
    world.post(HOOKS, &left("external.resources.yoke.cd")).await;
    let mut atc = solo.atc(&[]).await;
    assert_eq!(hook(world, name).await.unwrap(), None);
    // One that only has its name is somebody's.
    world.post(HOOKS, &left("external.example.dev")).await;
    atc.restart().await.unwrap();
    assert!(hook(world, name).await.unwrap().is_some());
    world.delete(&format!("{HOOKS}/{name}")).await;
}
