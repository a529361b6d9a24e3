//! Which modules an atc runs: those of its allow list, signed with its keys.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use atc_tests::{AirwayBuilder, FileServer, Yoke, condition, eventually, is_ready};
use serde_json::json;

use crate::overrides::FLIGHT;
use crate::solo::Solo;
use crate::versions;
use crate::world::{AIRWAYS, HOOKS, Kind, LIMIT, World, module, text};

/// What the atc of a test may load, besides what is signed.
const LISTED: &str = "http://127.0.0.1:*/*.listed.wasm";

/// Keys made for tests.
pub(crate) fn key(name: &str) -> PathBuf {
    let folder = "../crates/atc-artifact/src/signature/golden";
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(folder)
        .join(name)
}

/// Makes a key the only one in the folder `keys` of this one: whole at any moment, as a mounted Secret is.
fn trust(folder: &Path, name: &str) {
    let aside = folder.join("aside");
    std::fs::copy(key(&format!("{name}.pub.pem")), &aside).unwrap();
    std::fs::rename(aside, folder.join("keys").join("now.pem")).unwrap();
}

/// A folder `keys` in this one, with the key that signs here.
fn keys(folder: &Path) -> String {
    let keys = folder.join("keys");
    std::fs::create_dir(&keys).unwrap();
    trust(folder, "p256");
    keys.to_string_lossy().into_owned()
}

/// The flight that does as its instances say, signed.
async fn signed(world: &World, folder: &Path) -> Vec<u8> {
    let (bare, signed) = (folder.join("bare.wasm"), folder.join("signed.wasm"));
    std::fs::write(&bare, module()).unwrap();
    let yoke = Yoke::new(world.cluster.plane()).unwrap();
    let key = key("p256.pem");
    let words: [&OsStr; 6] = [
        "sign".as_ref(),
        "-key".as_ref(),
        key.as_ref(),
        "-o".as_ref(),
        signed.as_ref(),
        bare.as_ref(),
    ];
    let ran = yoke.run(&words).await.unwrap();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    std::fs::read(signed).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_allowed_and_signed_is_served_w23() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let folder = tempfile::tempdir().unwrap();
    let keys = keys(folder.path());
    let trust = |name: &str| trust(folder.path(), name);
    let files = FileServer::start().unwrap();
    let proven = signed(world, folder.path()).await;
    let good = files.put("a.listed.wasm", proven.clone());
    let elsewhere = files.put("a.wasm", proven.clone());
    let bare = files.put("bare.listed.wasm", module());
    let forged = files.put("forged.listed.wasm", [&proven[..], b"\0\x02\x01x"].concat());
    let _atc = solo
        .atc(&[
            ("MODULE_ALLOW_LIST", LISTED),
            ("MODULE_VERIFICATION_KEYS_PATH", &keys),
        ])
        .await;

    for (url, words) in [
        (&elsewhere, "no glob of the allow list matches"),
        (&bare, "the module is unsigned"),
        (&forged, "invalid signature"),
    ] {
        let airway = AirwayBuilder::new("Proven", url).build();
        let refused = world.cluster.api.post(AIRWAYS, &airway).await.unwrap_err();
        let refused = refused.to_string();
        assert!(
            refused.contains(words) && refused.contains(url.as_str()),
            "{refused}"
        );
    }
    let kind = world.kind(AirwayBuilder::new("Proven", &good)).await;
    kind.make("a", json!({ "note": "1" })).await;
    world.has("a", json!({ "note": "1" })).await;

    // The key is taken away: neither what is in the cache nor what is served already counts as proven.
    trust("ed25519");
    let edit = json!({ "spec": { "timeout": "9s" } });
    let refused = world.cluster.api.merge(&kind.airway_path(), &edit).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("fingerprint"), "{refused}");
    world
        .delete(&format!("{HOOKS}/{}", kind.airway.name()))
        .await;
    eventually(LIMIT, "the Airway says why it is not served", || async {
        let airway = world.get(&kind.airway_path()).await?.unwrap_or_default();
        let said = condition(&airway, "Ready").map(|ready| text(&ready["message"]).to_owned());
        let said = said.unwrap_or_default();
        Ok((!is_ready(&airway) && said.contains("fingerprint")).then_some(()))
    })
    .await;
    eventually(LIMIT, "instances are refused", || async {
        match kind.try_edit("a", json!({ "note": "2" })).await {
            Err(error) if error.to_string().contains("fingerprint") => Ok(Some(())),
            Err(error) => Err(error),
            Ok(_) => Err(anyhow!("it was taken")),
        }
    })
    .await;
    world.has("a", json!({ "note": "1" })).await;

    trust("p256");
    eventually(LIMIT, "the Airway is served again", || async {
        let airway = world.get(&kind.airway_path()).await?;
        Ok(airway.filter(is_ready))
    })
    .await;
    eventually(LIMIT, "an edit is taken", || async {
        kind.try_edit("a", json!({ "note": "3" })).await.map(Some)
    })
    .await;
    world.has("a", json!({ "note": "3" })).await;
    kind.finish().await;
}

/// The key has signed the converter as well, so that the Airway can't even be set up as it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_taken_away_ends_a_flight_with_a_converter_w23() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let folder = tempfile::tempdir().unwrap();
    let keys = keys(folder.path());
    let files = FileServer::start().unwrap();
    let url = files.put("both.wasm", signed(world, folder.path()).await);
    let _atc = solo.atc(&[("MODULE_VERIFICATION_KEYS_PATH", &keys)]).await;
    let urls = json!({ "flight": url, "converter": url });
    let airway = AirwayBuilder::new("Twice", &url).set("wasmUrls", urls);
    let kind = world.kind(airway).await;
    kind.make("a", json!({ "note": "1" })).await;
    world.has("a", json!({ "note": "1" })).await;

    trust(folder.path(), "ed25519");
    // Has the Airway looked at again.
    world
        .delete(&format!("{HOOKS}/{}", kind.airway.name()))
        .await;
    kind.says("a", "Error", "fingerprint").await;
    world.has("a", json!({ "note": "1" })).await;

    trust(folder.path(), "p256");
    kind.ready("a").await;
    eventually(LIMIT, "an edit is taken", || async {
        kind.try_edit("a", json!({ "note": "2" })).await.map(Some)
    })
    .await;
    world.has("a", json!({ "note": "2" })).await;
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_must_be_allowed_and_signed_too_w4() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let folder = tempfile::tempdir().unwrap();
    let keys = keys(folder.path());
    let files = FileServer::start().unwrap();
    let proven = signed(world, folder.path()).await;
    let good = files.put("a.listed.wasm", proven.clone());
    let elsewhere = files.put("a.wasm", proven);
    let bare = files.put("bare.listed.wasm", module());
    let _atc = solo
        .atc(&[
            ("MODULE_ALLOW_LIST", LISTED),
            ("MODULE_VERIFICATION_KEYS_PATH", &keys),
        ])
        .await;
    let reviewed = world.kind(AirwayBuilder::new("Asking", &good)).await;
    let unasked = AirwayBuilder::new("Unasking", &good).set("skipAdmissionWebhook", true);
    let unasked = world.kind(unasked).await;
    let api = &world.cluster.api;
    for (name, url, words) in [
        ("elsewhere", &elsewhere, "no glob of the allow list matches"),
        ("bare", &bare, "the module is unsigned"),
    ] {
        let create = async |kind: &Kind<'_>| {
            let mut body = kind.airway.instance(name, &json!({}));
            body["metadata"]["annotations"] = json!({ FLIGHT: url });
            api.post(&kind.airway.path(&world.ns), &body).await
        };
        let refused = create(&reviewed).await.unwrap_err().to_string();
        assert!(
            refused.contains(words) && refused.contains(url.as_str()),
            "{refused}"
        );
        create(&unasked).await.unwrap();
        unasked.says(name, "Error", words).await;
        assert!(world.configmap(name).await.is_none());
    }
    // One that is both is taken.
    let mut body = reviewed.airway.instance("a", &json!({ "note": "1" }));
    body["metadata"]["annotations"] = json!({ FLIGHT: good });
    api.post(&reviewed.airway.path(&world.ns), &body)
        .await
        .unwrap();
    world.has("a", json!({ "note": "1" })).await;
    reviewed.finish().await;
    unasked.finish().await;
}

/// At admission, where the converter is asked for anew, and where nobody is asked, by an atc that has it in its cache.
#[tokio::test(flavor = "multi_thread")]
async fn a_converter_must_have_its_checksum_though_it_is_cached_w23() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let files = FileServer::start().unwrap();
    let mut atc = solo.atc(&[]).await;
    let kind = versions::kind(world, "Summed", &versions::converter(&files)).await;
    kind.make("a", json!({ "note": "x" })).await;
    let path = kind.airway_path();
    let wrong = "ab".repeat(32);
    let sum = |sum: &str| json!({ "spec": { "wasmUrls": { "converterChecksum": sum } } });
    let words = format!("wanted sha256 '{wrong}', got '");
    let denied = world.cluster.api.merge(&path, &sum(&wrong)).await;
    let denied = denied.unwrap_err().to_string();
    assert!(denied.contains("spec.wasmUrls.converter"), "{denied}");
    let (_, got) = denied.split_once(&words).unwrap();
    let (right, _) = got.split_once('\'').unwrap();

    atc.kill();
    world.delete(&format!("{HOOKS}/atc-airway")).await;
    world.merge(&path, &sum(&wrong)).await;
    atc.restart().await.unwrap();
    eventually(LIMIT, "the Airway says what is wrong", || async {
        let airway = world.get(&path).await?.unwrap_or_default();
        let ready = condition(&airway, "Ready").cloned().unwrap_or_default();
        if ready["reason"] == "Error" && text(&ready["message"]).contains(&words) {
            return Ok(Some(()));
        }
        Err(anyhow!("{ready}"))
    })
    .await;
    kind.update(json!({ "wasmUrls": { "converterChecksum": right } }))
        .await;
    kind.make("b", json!({ "note": "y" })).await;
    assert_eq!(kind.instance("b").await["spec"], json!({ "note": "y" }));
    kind.finish().await;
}
