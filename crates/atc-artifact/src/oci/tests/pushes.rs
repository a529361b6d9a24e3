//! What a push sends, and what it does not send.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::reference::Tag;

fn pusher(change: impl FnOnce(&mut FetchOptions)) -> Pusher {
    let mut options = FetchOptions::default();
    change(&mut options);
    Pusher::new(&options)
}

fn artifact(url: &str) -> OciLocation {
    match at(url) {
        Location::Oci(artifact) => artifact,
        other => panic!("{other}"),
    }
}

async fn push(registry: &Registry, name: &str, module: &[u8]) -> Result<Pushed, ArtifactError> {
    let tags: Vec<Tag> = ["zz", "alt"]
        .iter()
        .map(|tag| tag.parse().unwrap())
        .collect();
    let credentials = login(&registry.host(), "joe:pw");
    pusher(|options| options.credentials = credentials)
        .push(
            &artifact(&registry.oci(name)),
            module.to_vec().into(),
            &tags,
            None,
        )
        .await
}

#[tokio::test]
async fn all_tags_mean_the_one_artifact() {
    for auth in [
        Auth::Open,
        Auth::Basic("joe:pw"),
        Auth::Bearer(Some("joe:pw"), Duration::from_mins(1)),
    ] {
        let registry = Registry::with(auth).await;
        let pushed = push(&registry, "team/app:v1", MODULE).await.unwrap();
        let sum = crate::verify::sha256_hex(MODULE);
        let tags = ["alt", "latest", &format!("sha256_{sum}"), "v1", "zz"];
        assert_eq!(pushed.tags, tags);
        assert_eq!(pushed.module_sha256, sum);
        assert_eq!(registry.tags("team/app"), tags);
        registry.auth(Auth::Open);
        for url in tags
            .map(|tag| registry.oci(&format!("team/app:{tag}")))
            .iter()
            .chain([&pushed.digest_url])
        {
            assert_eq!(get(&plain(), url).await.unwrap().bytes, MODULE, "{url}");
        }
    }
}

#[tokio::test]
async fn the_artifact_has_the_form_of_the_existing_tool() {
    let registry = Registry::start().await;
    push(&registry, "app:v1", MODULE).await.unwrap();
    let text = registry.stored("app/manifests/v1");
    let manifest: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(manifest["schemaVersion"], 2);
    assert_eq!(manifest["mediaType"], MANIFEST);
    assert_eq!(manifest["config"]["mediaType"], CONFIG);
    assert_eq!(manifest["layers"].as_array().unwrap().len(), 1);
    assert_eq!(manifest["layers"][0]["mediaType"], LAYER);
    assert!(manifest.get("annotations").is_none() && manifest.get("artifactType").is_none());
    let layer = registry.stored(manifest["layers"][0]["digest"].as_str().unwrap());
    assert_eq!(crate::unpack::unpack(layer, 1000, "x").unwrap(), MODULE);
}

#[tokio::test]
async fn what_is_there_is_not_sent_again() {
    let registry = Registry::start().await;
    let first = push(&registry, "app:v1", MODULE).await.unwrap();
    assert_eq!(registry.calls("PUT", "/blobs/").len(), 2);
    registry.forget_calls();
    let again = push(&registry, "app:v2", MODULE).await.unwrap();
    assert_eq!(
        again.digest_url, first.digest_url,
        "the same module is the same artifact"
    );
    assert!(registry.calls("POST", "/blobs/").is_empty());
    assert_eq!(registry.calls("PUT", "/manifests/").len(), 5);
}

/// Bytes that cannot be packed.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(length)
    .collect()
}

#[tokio::test]
async fn progress_is_told_and_trouble_is_tried_again() {
    let registry = Registry::start().await;
    let module = noise(300_000);
    let sent = std::sync::Arc::new(AtomicU64::default());
    let count = std::sync::Arc::clone(&sent);
    registry.fault("POST", "/uploads/", 1, reply("503 Busy", "", b""));
    registry.fault("PUT", "/manifests/", 1, reply("500 Oh", "", b""));
    let pushed = pusher(|_| {})
        .push(
            &artifact(&registry.oci("app:v1")),
            module.clone().into(),
            &[],
            Some(std::sync::Arc::new(move |bytes| {
                count.fetch_add(bytes, Ordering::Relaxed);
            })),
        )
        .await
        .unwrap();
    let fetcher = fetcher(|options| options.max_bytes = 1 << 20);
    assert_eq!(
        get(&fetcher, &pushed.digest_url).await.unwrap().bytes,
        module
    );
    assert!(sent.load(Ordering::Relaxed) > 100_000);
}

#[tokio::test]
async fn refusals_say_what_the_registry_said_r125() {
    let registry = Registry::start().await;
    let body =
        br#"{"errors":[{"code":"MANIFEST_INVALID","message":"not on the list of this registry"}]}"#;
    for status in [
        "415 Unsupported Media Type",
        "400 Bad Request",
        "405 Method Not Allowed",
    ] {
        registry.mend();
        registry.fault("PUT", "/manifests/", 9, reply(status, "", body));
        let text = chain(&push(&registry, "app:v1", MODULE).await.unwrap_err());
        for words in [
            &status[..3],
            "not on the list",
            "media types",
            CONFIG,
            LAYER,
            "oci://127.0.0.1",
        ] {
            assert!(text.contains(words), "{words} is not in: {text}");
        }
    }
    let registry = Registry::start().await;
    for (method, part, answer, words) in [
        ("POST", "/uploads/", reply("403 Forbidden", "", b""), "403"),
        (
            "POST",
            "/uploads/",
            reply("202 Accepted", "", b""),
            "where to upload",
        ),
        (
            "POST",
            "/uploads/",
            reply("202 Accepted", "Location: ftp://h/x\r\n", b""),
            "without TLS",
        ),
        ("PUT", "/uploads/", reply("400 Bad Request", "", b""), "400"),
        (
            "PUT",
            "/uploads/",
            reply("307 Temporary", "Location: /x\r\n", b""),
            "not sent elsewhere",
        ),
        ("HEAD", "/blobs/", reply("403 Forbidden", "", b""), "403"),
    ] {
        registry.fault(method, part, 1, answer);
        let text = chain(&push(&registry, "other:v1", MODULE).await.unwrap_err());
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(
        registry.tags("other").is_empty(),
        "{:?}",
        registry.tags("other")
    );
}

#[tokio::test]
async fn without_credentials_nothing_is_pushed() {
    let registry = Registry::with(Auth::Basic("joe:pw")).await;
    let to = artifact(&registry.oci("app:v1"));
    let error = pusher(|_| {})
        .push(&to, MODULE.to_vec().into(), &[], None)
        .await
        .unwrap_err();
    assert!(chain(&error).contains("401"), "{}", chain(&error));
    assert!(registry.calls("PUT", "/").is_empty());
}

#[tokio::test]
async fn a_registry_may_take_its_time_once_it_has_all() {
    let registry = Registry::start().await;
    let late = || Reply::Late(Duration::from_secs(1));
    registry.fault("PUT", "/blobs/", 1, late());
    registry.fault("PUT", "/manifests/v1", 1, late());
    let pushed = pusher(|options| {
        options.stall_timeout = Duration::from_millis(200);
        options.tries = 1;
    })
    .push(
        &artifact(&registry.oci("app:v1")),
        MODULE.to_vec().into(),
        &[],
        None,
    )
    .await;
    assert!(pushed.is_ok(), "{pushed:?}");
}

#[tokio::test]
async fn manifests_may_be_taken_in_other_words() {
    for status in ["200 OK", "201 Created", "202 Accepted"] {
        let registry = Registry::start().await;
        registry.fault("PUT", "/manifests/", 9, reply(status, "", b""));
        let pushed = push(&registry, "app:v1", MODULE).await;
        assert!(pushed.is_ok(), "{status}: {pushed:?}");
    }
}
