//! Airways whose steps fail midway: what was begun is finished, and nobody waits for what never comes.

use std::time::Duration;

use anyhow::{Context, anyhow};
use atc_tests::{AirwayBuilder, Atc, Fault, Proxy, condition, eventually, is_ready, never};
use serde_json::{Value, json};

use crate::{
    left::force_away,
    outage::behind,
    solo::{Solo, plane},
    world::{AIRWAYS, CRDS, HOOKS, Kind, LIMIT, configmap, puppet, text},
};

/// How long is looked for what must not happen.
const SILENCE: Duration = Duration::from_secs(2);

/// Whether a line of the log says that an Airway could not be served as it says.
fn is_failure(line: &Value, airway: &str) -> bool {
    line["airway"] == airway && line["message"] == "Airway is not served as it says"
}

/// Waits until an Airway was tried four times in vain.
async fn failed_four_times(atc: &Atc<'_>, airway: &str) {
    eventually(LIMIT, "it was tried four times", || async {
        let log = atc.log();
        let failures = log.iter().filter(|line| is_failure(line, airway)).count();
        Ok((failures >= 4).then_some(()))
    })
    .await;
}

/// Whether what happened first is that the watch told of the Airway's CRD, and not another try.
fn was_told(log: &[Value], airway: &str) -> bool {
    let crd = format!("CustomResourceDefinition.apiextensions.k8s.io:{airway}");
    let is_due = |line: &Value| line["message"] == "due" && text(&line["cause"]).contains(&crd);
    let is_served =
        |line: &Value| line["message"] == "watching instances" && line["airway"] == airway;
    let is_try = |line: &Value| is_failure(line, airway) || is_served(line);
    let first = log.iter().find(|line| is_due(line) || is_try(line));
    first.is_some_and(is_due)
}

/// Waits until the Airway says that something is wrong with it as it is now, in these words.
async fn is_wrong(kind: &Kind<'_>, words: &str) {
    let what = format!("Airway {} says {words:?}", kind.airway.name());
    eventually(LIMIT, &what, || async {
        let airway = kind.world.get(&kind.airway_path()).await?;
        let airway = airway.unwrap_or_default();
        let generation = &airway["metadata"]["generation"];
        let said = |ready: &Value| {
            ready["status"] == "False"
                && ready["observedGeneration"] == *generation
                && text(&ready["message"]).contains(words)
        };
        if condition(&airway, "Ready").is_some_and(said) {
            return Ok(Some(()));
        }
        Err(anyhow!("{}", airway["status"]))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_reaches_the_instances_though_the_webhook_could_not_be_seen_to_first() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let proxy = Proxy::start(plane()).await.unwrap();
    let _atc = behind(&solo, &proxy).await;
    let kind = world.kind(AirwayBuilder::new("Midway", &puppet())).await;
    let inner = json!({ "objects": [configmap("m", json!({ "note": "inner" }))] });
    kind.make("m", json!({ "note": "outer", "inner": inner }))
        .await;
    world.has("m", json!({ "note": "outer" })).await;

    let hook = format!("GET {HOOKS}/{}", kind.airway.name());
    proxy.fail(&hook, Fault::Status(403, None));
    let edit = json!({ "spec": { "objectPath": ["spec", "inner"] } });
    world.merge(&kind.airway_path(), &edit).await;
    is_wrong(&kind, "its instances are not reviewed").await;
    proxy.heal();
    kind.settled().await;
    world.has("m", json!({ "note": "inner" })).await;
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_went_while_its_watch_was_replaced_is_gone() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let proxy = Proxy::start(plane()).await.unwrap();
    let _atc = behind(&solo, &proxy).await;
    let airway = AirwayBuilder::new("Replaced", &puppet()).set("skipAdmissionWebhook", true);
    let kind = world.kind(airway).await;
    for name in ["ghost", "kept"] {
        let inner = json!({ "objects": [configmap(name, json!({ "note": "inner" }))] });
        kind.make(name, json!({ "note": "outer", "inner": inner }))
            .await;
    }
    // The watch of the stored version goes blind. One instance goes, without a word from its finalizer.
    proxy.fail("GET /apis/tests.atc.dev/v1/replaceds", Fault::Cut);
    proxy.cut_all();
    force_away(world, &kind.path("ghost")).await;
    world.gone(&world.core("configmaps", "ghost")).await;

    // Another version is stored: another watch.
    let mut template = kind.airway.build()["spec"]["template"].clone();
    let mut second = template["versions"][0].clone();
    template["versions"][0]["storage"] = false.into();
    second["name"] = "v2".into();
    template["versions"].as_array_mut().unwrap().push(second);
    kind.update(json!({ "template": template })).await;
    eventually(LIMIT, "the other one is evaluated as v2", || async {
        let child = world.get(&world.core("configmaps", "kept")).await?;
        let owner = child.unwrap_or_default()["metadata"]["ownerReferences"][0].clone();
        Ok(text(&owner["apiVersion"]).ends_with("/v2").then_some(()))
    })
    .await;
    // All that are known are evaluated once more.
    let before = proxy.requests().len();
    kind.update(json!({ "objectPath": ["spec", "inner"] }))
        .await;
    world.has("kept", json!({ "note": "inner" })).await;
    never(SILENCE, "the one that went is evaluated", || async {
        let since = proxy.requests().split_off(before);
        let writes = |request: &String| !request.starts_with("GET ") && request.contains("/ghost");
        Ok(since.into_iter().find(writes))
    })
    .await;
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_airway_whose_webhook_can_not_be_written_can_be_deleted() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let proxy = Proxy::start(plane()).await.unwrap();
    let mut atc = behind(&solo, &proxy).await;
    let kind = world.kind(AirwayBuilder::new("Unhooked", &puppet())).await;
    kind.make("a", json!({ "note": "1" })).await;
    atc.kill();
    let hook = format!("PATCH {HOOKS}/{}", kind.airway.name());
    proxy.fail(&hook, Fault::Status(403, None));
    atc.restart().await.unwrap();
    is_wrong(&kind, "its instances are not reviewed").await;
    kind.remove().await;
    world.gone(&world.core("configmaps", "a")).await;
    assert!(world.revisions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_airway_that_can_not_be_read_can_be_deleted() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let mut atc = solo.atc(&[]).await;
    let kind = world.kind(AirwayBuilder::new("Unread", &puppet())).await;
    for name in ["a", "b"] {
        kind.make(name, json!({ "note": "1" })).await;
    }
    atc.kill();
    // It fits the schema, and nobody reviews it.
    world.delete(&format!("{HOOKS}/atc-airway")).await;
    let edit = json!({ "spec": { "fixDriftInterval": "9999999h" } });
    world.merge(&kind.airway_path(), &edit).await;
    atc.restart().await.unwrap();
    is_wrong(&kind, "can't be read").await;
    kind.delete("a").await;
    world.gone(&world.core("configmaps", "a")).await;
    world.has("b", json!({ "note": "1" })).await;
    kind.remove().await;
    world.gone(&world.core("configmaps", "b")).await;
    assert!(world.revisions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crd_of_others_that_goes_is_noticed_at_once() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let atc = solo.atc(&[("VERBOSE", "true")]).await;
    let airway = AirwayBuilder::new("Taken", &puppet());
    let name = airway.name();
    let path = format!("{CRDS}/{name}");
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": name }, "spec": airway.build()["spec"]["template"],
    });
    world.post(CRDS, &crd).await;
    world.post(AIRWAYS, &airway.build()).await;
    let kind = Kind::of(world, airway);
    is_wrong(&kind, "is not this Airway's").await;
    // By the fourth try the next one is seconds off.
    failed_four_times(&atc, &name).await;
    let before = atc.log().len();
    world.delete(&path).await;
    eventually(LIMIT, "the Airway is served", || async {
        let airway = world.get(&kind.airway_path()).await?;
        Ok(airway.filter(is_ready).map(|_| ()))
    })
    .await;
    assert!(was_told(&atc.log()[before..], &name));
    kind.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_another_crd_gives_up_are_noticed_at_once() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let atc = solo.atc(&[("VERBOSE", "true")]).await;
    let airway = AirwayBuilder::new("Squatted", &puppet());
    let other = AirwayBuilder::new("Squatter", &puppet());
    let path = format!("{CRDS}/{}", other.name());
    let mut template = other.build()["spec"]["template"].clone();
    template["names"]["kind"] = "Squatted".into();
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": other.name() }, "spec": template,
    });
    world.post(CRDS, &crd).await;
    eventually(LIMIT, "the names are taken", || async {
        let crd = world.get(&path).await?.unwrap_or_default();
        let established = condition(&crd, "Established");
        Ok(established
            .filter(|one| one["status"] == "True")
            .map(|_| ()))
    })
    .await;
    world.post(AIRWAYS, &airway.build()).await;
    let kind = Kind::of(world, airway);
    is_wrong(&kind, "is already in use").await;
    // By the fourth try the next one is seconds off.
    failed_four_times(&atc, &kind.airway.name()).await;
    let before = atc.log().len();
    world.delete(&path).await;
    eventually(LIMIT, "the Airway is served", || async {
        let airway = world.get(&kind.airway_path()).await?;
        Ok(airway.filter(is_ready).map(|_| ()))
    })
    .await;
    assert!(was_told(&atc.log()[before..], &kind.airway.name()));
    kind.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_writes_an_airway_at_the_same_time_is_no_trouble() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let proxy = Proxy::start(plane()).await.unwrap();
    let atc = behind(&solo, &proxy).await;
    let airway = AirwayBuilder::new("Contended", &puppet());
    let name = airway.name();
    // The finalizer is written at the second try; the status only by the turn after that which has run out of tries.
    let stale = Fault::Status(409, None);
    proxy.fail_times(&format!("PATCH {AIRWAYS}/{name}?"), stale.clone(), 1);
    proxy.fail_times(&format!("PATCH {AIRWAYS}/{name}/status?"), stale, 5);
    let kind = world.kind(airway).await;
    let requests = proxy.requests();
    let tries = |path: &str| {
        let begin = format!("PATCH {AIRWAYS}/{name}{path}?");
        let tried = requests.iter().filter(|one| one.starts_with(&begin));
        tried.count()
    };
    assert!(tries("") >= 2 && tries("/status") >= 6, "{requests:?}");
    assert!(!atc.log().iter().any(|line| is_failure(line, &name)));
    kind.finish().await;
}

/// How many keys the queue of an atc knows.
async fn keys(atc: &Atc<'_>) -> anyhow::Result<usize> {
    let (_, text) = atc.get("/metrics").await?;
    let mut lines = text.lines();
    let keys = lines.find_map(|line| line.strip_prefix("atc_queue_keys "));
    Ok(keys.context("no such number")?.parse()?)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_kept_of_an_instance_whose_record_was_all_that_was_left() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let mut atc = solo.atc(&[]).await;
    let kind = solo.kind().await;
    for number in 0..5 {
        kind.make(&format!("gone{number}"), json!({ "note": "1" }))
            .await;
    }
    atc.kill();
    for number in 0..5 {
        force_away(world, &kind.path(&format!("gone{number}"))).await;
    }
    atc.restart().await.unwrap();
    world.has_revisions(0).await;
    // The process itself, each Airway, what is left of instances of other tests.
    let mut expected = 1;
    for airway in world.cluster.api.list(AIRWAYS).await.unwrap() {
        let template = &airway["spec"]["template"];
        let (group, plural) = (text(&template["group"]), text(&template["names"]["plural"]));
        let version = text(&template["versions"][0]["name"]);
        let path = format!("/apis/{group}/{version}/{plural}");
        let instances = world.cluster.api.list(&path).await.unwrap_or_default();
        expected += 1 + instances.len();
    }
    for plural in ["flights", "clusterflights"] {
        let path = format!("/apis/yoke.cd/v1alpha1/{plural}");
        expected += world.cluster.api.list(&path).await.unwrap().len();
    }
    eventually(LIMIT, "they are forgotten", || async {
        let known = keys(&atc).await?;
        if known <= expected {
            return Ok(Some(()));
        }
        Err(anyhow!("{known} keys, expected {expected}"))
    })
    .await;
}
