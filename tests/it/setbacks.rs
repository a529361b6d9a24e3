//! Airways whose steps fail midway: what was begun is finished, and nobody waits for what never comes.

use anyhow::anyhow;
use atc_tests::{AirwayBuilder, Fault, Proxy, condition};
use serde_json::{Value, json};

use crate::{
    outage::behind,
    solo::{Solo, plane},
    world::{HOOKS, Kind, LIMIT, configmap, puppet, text},
};

/// Waits until the Airway says that something is wrong with it as it is now, in these words.
async fn is_wrong(kind: &Kind<'_>, words: &str) {
    let what = format!("Airway {} says {words:?}", kind.airway.name());
    atc_tests::eventually(LIMIT, &what, || async {
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
