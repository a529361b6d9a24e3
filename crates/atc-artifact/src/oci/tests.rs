//! Pulls and pushes, with a registry that does what real ones should not.

use std::error::Error as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use flate2::{Compression, write::GzEncoder};
use serde_json::json;

use super::manifest::{CONFIG, LAYER, MANIFEST};
use super::*;
use crate::artifact::{Artifact, Origin};
use crate::credentials::{DockerConfig, PullSecret};
use crate::error::ErrorKind;
use crate::fetcher::Fetcher;
use crate::location::Location;
use crate::options::FetchOptions;

mod auth;
mod faults;
mod pushes;
mod registry;
mod schemes;
mod signatures;

use registry::{Auth, Registry, Reply, digest, reply};

const MODULE: &[u8] = b"\0asm\x01\0\0\0 and a few bytes more";

fn fetcher(change: impl FnOnce(&mut FetchOptions)) -> Fetcher {
    let mut options = FetchOptions {
        max_bytes: 100_000,
        ..FetchOptions::default()
    };
    change(&mut options);
    Fetcher::new(options)
}

fn plain() -> Fetcher {
    fetcher(|_| {})
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn at(text: &str) -> Location {
    text.parse().unwrap()
}

async fn get(fetcher: &Fetcher, url: &str) -> Result<Artifact, ArtifactError> {
    fetcher.fetch(&at(url), None).await
}

/// An error and all its sources in one text.
fn chain(error: &ArtifactError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(next) = source {
        text = format!("{text}: {next}");
        source = next.source();
    }
    text
}

/// Fetches, and expects an error that names the place and has these words.
async fn fails(fetcher: &Fetcher, url: &str, words: &str) -> ArtifactError {
    let error = get(fetcher, url).await.map(|_| ()).unwrap_err();
    let text = chain(&error);
    assert!(text.contains(words), "'{words}' is not in: {text}");
    assert!(text.contains(url), "{url} is not in: {text}");
    error
}

fn login(host: &str, user: &str) -> Credentials {
    let auth = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, user);
    config(&json!({ "auths": { host: { "auth": auth } } }))
}

fn config(json: &serde_json::Value) -> Credentials {
    let secret = PullSecret::default();
    secret.set(DockerConfig::parse(json.to_string().as_bytes()).unwrap());
    Credentials::Secret(secret)
}

#[tokio::test]
async fn a_module_is_pulled_by_tag_by_digest_and_by_default() {
    let registry = Registry::start().await;
    let (sum, _) = registry.put("team/app:v1", &gzip(MODULE));
    registry.put("team/app:latest", &gzip(b"\0asm latest"));
    for (name, expect) in [
        ("team/app:v1".to_owned(), MODULE),
        (format!("team/app@{sum}"), MODULE),
        (format!("team/app:latest@{sum}"), MODULE),
        ("team/app".to_owned(), b"\0asm latest"),
    ] {
        let artifact = get(&plain(), &registry.oci(&name)).await.unwrap();
        assert_eq!(
            (&artifact.bytes[..], artifact.origin),
            (expect, Origin::Server),
            "{name}"
        );
        assert_eq!(artifact.sha256, crate::verify::sha256_hex(expect));
    }
    for name in ["team/app:none", "team/none:v1"] {
        let error = fails(
            &plain(),
            &registry.oci(name),
            "status 404: NOT_FOUND: not found",
        )
        .await;
        assert_eq!(error.kind(), ErrorKind::Refused);
    }
    fails(
        &plain(),
        &registry.oci(&format!("team/app@{}", digest(b"x"))),
        "404",
    )
    .await;
}

#[tokio::test]
async fn other_shapes_of_artifacts_are_pulled_r125() {
    let registry = Registry::start().await;
    let (sum, _) = registry.put("app:inner", &gzip(MODULE));
    let entry = json!({ "mediaType": MANIFEST, "digest": sum, "size": 1 });
    let other = registry.manifest(
        "app:image",
        &json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": registry.blob("x/y", b"{}"), "layers": [] }),
    );
    let image = json!({ "mediaType": MANIFEST, "digest": other, "size": 1 });
    let index = |entries: serde_json::Value| json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": entries });
    registry.manifest("app:index", &index(json!([image, entry])));
    registry.manifest("app:images", &index(json!([image])));
    registry.manifest("app:empty", &index(json!([])));
    let cncf = json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": registry.blob("application/vnd.wasm.config.v0+json", b"{}"),
        "layers": [registry.blob("application/wasm", MODULE)],
    });
    registry.manifest("app:cncf", &cncf);
    for name in ["app:index", "app:cncf"] {
        let artifact = get(&plain(), &registry.oci(name)).await.unwrap();
        assert_eq!(artifact.bytes, MODULE, "{name}");
    }
    fails(
        &plain(),
        &registry.oci("app:images"),
        "no entry of its index is a flight",
    )
    .await;
    fails(&plain(), &registry.oci("app:empty"), "none of its entries").await;
    fails(
        &plain(),
        &registry.oci("app:image"),
        "media type of its configuration is 'x/y'",
    )
    .await;
}

#[tokio::test]
async fn unchanged_tags_are_asked_for_and_not_downloaded_again_w22() {
    let (registry, dir) = (Registry::start().await, tempfile::tempdir().unwrap());
    let (sum, _) = registry.put("app:v1", &gzip(MODULE));
    let url = registry.oci("app:v1");
    let with_cache = || {
        fetcher(|options| {
            options.cache_dir = Some(dir.path().to_owned());
            options.fresh_for = Duration::ZERO;
        })
    };
    let first = with_cache();
    assert_eq!(get(&first, &url).await.unwrap().origin, Origin::Server);
    for fetcher in [&first, &with_cache()] {
        for _ in 0..2 {
            assert_eq!(get(fetcher, &url).await.unwrap().bytes, MODULE);
        }
        fetcher.fetch_fresh(&at(&url), None).await.unwrap();
    }
    assert_eq!(registry.calls("GET", "/blobs/").len(), 1);
    assert_eq!(registry.calls("GET", "/manifests/").len(), 1);
    assert_eq!(registry.calls("HEAD", "/manifests/").len(), 6);
    let figures = first.figures();
    assert_eq!(
        (figures.downloads, figures.unchanged, figures.failures),
        (1, 3, 0)
    );
    assert!(figures.disk_bytes >= MODULE.len() as u64);

    registry.fault(
        "HEAD",
        "/manifests/",
        1,
        reply("405 Method Not Allowed", "", b""),
    );
    assert_eq!(get(&first, &url).await.unwrap().bytes, MODULE);
    assert_eq!(
        registry.calls("GET", "/blobs/").len(),
        1,
        "the manifest tells it too"
    );

    registry.put("app:v1", &gzip(b"\0asm new"));
    assert_eq!(get(&first, &url).await.unwrap().bytes, &b"\0asm new"[..]);

    registry.forget_calls();
    let pinned = at(&registry.oci(&format!("app:v1@{sum}")));
    let digests = with_cache();
    assert_eq!(
        digests.fetch(&pinned, None).await.unwrap().origin,
        Origin::Server
    );
    assert_eq!(
        with_cache()
            .fetch_fresh(&pinned, None)
            .await
            .unwrap()
            .origin,
        Origin::Cache
    );
    assert_eq!(
        registry.calls("GET", "/manifests/").len(),
        1,
        "a digest never means something else"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_pull_however_many_ask() {
    let registry = Registry::start().await;
    registry.put("app:v1", &gzip(MODULE));
    registry.fault("GET", "/blobs/", 1, Reply::Late(Duration::from_millis(200)));
    let (fetcher, location) = (plain(), at(&registry.oci("app:v1")));
    let all = (0..100).map(|_| {
        let (fetcher, location) = (fetcher.clone(), location.clone());
        tokio::spawn(async move { fetcher.fetch(&location, None).await.unwrap() })
    });
    for one in futures::future::join_all(all).await {
        assert_eq!(one.unwrap().bytes, MODULE);
    }
    assert_eq!(registry.calls("GET", "/blobs/").len(), 1);
}

#[tokio::test]
async fn a_registry_that_is_away_is_bridged_by_the_cache() {
    let (registry, dir) = (Registry::start().await, tempfile::tempdir().unwrap());
    registry.put("app:v1", &gzip(MODULE));
    let url = registry.oci("app:v1");
    let with_cache = || {
        fetcher(|options| {
            options.cache_dir = Some(dir.path().to_owned());
            options.tries = 1;
        })
    };
    get(&with_cache(), &url).await.unwrap();
    drop(registry);
    tokio::task::yield_now().await;
    let stale = get(&with_cache(), &url).await.unwrap();
    assert_eq!((&stale.bytes[..], stale.origin), (MODULE, Origin::Stale));
    let error = fails(&fetcher(|options| options.tries = 1), &url, "error").await;
    assert!(error.is_transient());
}

#[tokio::test]
async fn wrong_digests_are_not_hidden_by_the_cache() {
    let (registry, dir) = (Registry::start().await, tempfile::tempdir().unwrap());
    registry.put("app:v1", &gzip(MODULE));
    let url = registry.oci("app:v1");
    let with_cache = || {
        fetcher(|options| {
            options.cache_dir = Some(dir.path().to_owned());
            options.tries = 1;
        })
    };
    get(&with_cache(), &url).await.unwrap();
    registry.put("app:v1", &gzip(b"\0asm new"));
    registry.fault("GET", "/blobs/", 1, reply("200 OK", "", b"something else"));
    let error = fails(&with_cache(), &url, "wrong layer").await;
    assert_eq!(error.kind(), ErrorKind::Invalid);
    registry.fault("HEAD", "/manifests/", 9, reply("403 Forbidden", "", b""));
    registry.fault("GET", "/manifests/", 9, reply("403 Forbidden", "", b""));
    let stale = get(&with_cache(), &url).await.unwrap();
    assert_eq!((&stale.bytes[..], stale.origin), (MODULE, Origin::Stale));
}

#[tokio::test]
async fn checksums_are_of_the_unpacked_module() {
    let registry = Registry::start().await;
    let (good, bad) = (crate::verify::sha256_hex(MODULE), "2".repeat(64));
    for tag in [
        "v1",
        &format!("sha256_{good}"),
        &format!("sha256_{bad}"),
        "my_sha256",
    ] {
        registry.put(&format!("app:{tag}"), &gzip(MODULE));
    }
    let sha = |tag: &str| at(&registry.oci(&format!("app:{tag}")));
    let fetcher = plain();
    assert!(
        fetcher
            .fetch(&sha(&format!("sha256_{good}")), None)
            .await
            .is_ok()
    );
    assert!(fetcher.fetch(&sha("my_sha256"), None).await.is_ok());
    assert!(
        fetcher
            .fetch(&sha("v1"), Some(&good.to_uppercase()))
            .await
            .is_ok()
    );
    assert!(
        fetcher
            .fetch(&sha(&format!("sha256_{bad}")), Some(&good))
            .await
            .is_ok()
    );
    for error in [
        fetcher.fetch(&sha(&format!("sha256_{bad}")), None).await,
        fetcher.fetch(&sha("v1"), Some(&bad)).await,
    ] {
        let text = chain(&error.unwrap_err());
        assert!(text.contains(&bad) && text.contains(&good), "{text}");
    }
}

#[test]
fn complaints_become_one_line() {
    for (body, expect) in [
        (
            r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown","detail":{}}]}"#,
            "MANIFEST_UNKNOWN: manifest unknown",
        ),
        (r#"{"errors":[{"code":"A"},{"message":"b\nc"}]}"#, "A, b c"),
        (r#"{"errors":[]}"#, ""),
        (r#"{"errors":null}"#, ""),
        (r#"{"errors":[{"code":"DENIED","message":null}]}"#, "DENIED"),
        (r#"{"error":"x"}"#, ""),
        ("busy\n", "busy"),
        ("<html>busy", ""),
        ("a\x1b[31mred", "a [31mred"),
        ("", ""),
    ] {
        assert_eq!(complaint(body.as_bytes()), expect, "{body}");
    }
    assert_eq!(complaint(&[0xff, 0xfe]), "");
    assert_eq!(complaint("x".repeat(5000).as_bytes()).len(), MAX_WORDS);
}
