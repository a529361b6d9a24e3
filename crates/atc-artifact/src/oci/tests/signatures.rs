//! Artifacts that are proven by what lies beside them: signatures as cosign puts them there, and as it does not.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::*;
use crate::oci::signatures::layers::{SIGNATURE, SIGNATURES, SIMPLE_SIGNING};
use crate::policy::{ModulePolicy, PolicyOptions};
use crate::proof::{Proof, ProofError, prove};
use crate::signature::tests::{golden, keys, private, public};

/// What cosign signs of an artifact.
fn payload(of: &str) -> String {
    json!({
        "critical": {
            "identity": { "docker-reference": "registry.example/app" },
            "image": { "docker-manifest-digest": of },
            "type": "cosign container image signature",
        },
        "optional": null,
    })
    .to_string()
}

/// The manifest with a signature of an artifact, made by this key.
fn signed(registry: &Registry, key: &str, of: &str) -> Value {
    let text = payload(of);
    let digest = <sha2::Sha256 as sha2::Digest>::digest(&text).into();
    let signature = BASE64.encode(private(key).sign(&digest).unwrap());
    let mut layer = registry.blob(SIMPLE_SIGNING, text.as_bytes());
    layer["annotations"] = json!({ SIGNATURE: signature });
    let config = registry.blob("application/vnd.oci.image.config.v1+json", b"{}");
    json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer] })
}

/// An entry in an index of what refers to an artifact.
fn entry(kind: &str, digest: &str, size: usize) -> Value {
    json!({ "mediaType": MANIFEST, "artifactType": kind, "digest": digest, "size": size })
}

/// An index of what refers to an artifact.
fn index(entries: &[Value]) -> Value {
    json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": entries })
}

/// The tag under which an artifact's signatures lie.
fn tag(repository: &str, of: &str) -> String {
    format!("{repository}:{}.sig", of.replace(':', "-"))
}

async fn proof(fetcher: &Fetcher, url: &str, key: &str) -> Result<Proof, String> {
    let artifact = get(fetcher, url).await.unwrap();
    let keys = Arc::new(keys(&[key]));
    let proof = prove(fetcher, &at(url), &artifact, &keys).await;
    proof.map_err(|error| told(&error))
}

fn told(error: &ProofError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(next) = source {
        text = format!("{text}: {next}");
        source = next.source();
    }
    text
}

fn by_artifact(key: &str) -> Proof {
    Proof::Artifact(public(key).fingerprint().to_owned())
}

#[tokio::test]
async fn an_artifact_is_proven_by_what_lies_at_its_tag() {
    let registry = Registry::start().await;
    let (sum, _) = registry.put("app:v1", &gzip(b"\0asm\x01\0\0\0"));
    let url = registry.oci("app:v1");
    let error = proof(&plain(), &url, "p256").await.unwrap_err();
    assert!(
        error.contains("unsigned") && error.contains("has no cosign signature"),
        "{error}"
    );
    registry.manifest(&tag("app", &sum), &signed(&registry, "p256", &sum));
    assert_eq!(proof(&plain(), &url, "p256").await, Ok(by_artifact("p256")));
    assert_eq!(
        proof(&plain(), &registry.oci(&format!("app@{sum}")), "p256").await,
        Ok(by_artifact("p256"))
    );
    let error = proof(&plain(), &url, "p384").await.unwrap_err();
    assert!(error.contains("none of the 1 known keys"), "{error}");
    // What it carries itself comes first.
    registry.put("app:v2", &gzip(&golden("ed25519.signed")));
    registry.forget_calls();
    let own = proof(&plain(), &registry.oci("app:v2"), "ed25519").await;
    assert_eq!(
        own,
        Ok(Proof::Module(public("ed25519").fingerprint().to_owned()))
    );
    assert!(registry.calls("GET", ".sig").is_empty());
}

#[tokio::test]
async fn an_artifact_is_proven_by_what_refers_to_it() {
    for api in [true, false] {
        let registry = Registry::start().await;
        let (sum, _) = registry.put("app:v1", &gzip(MODULE));
        let signature = registry.manifest("app:x", &signed(&registry, "p256", &sum));
        let bill = registry.manifest("app:y", &signed(&registry, "p384", &sum));
        let size = |digest: &str| registry.stored(&format!("app/manifests/{digest}")).len();
        let index = index(&[
            entry("application/spdx+json", &bill, size(&bill)),
            entry(SIGNATURES, &signature, size(&signature)),
        ]);
        if api {
            registry.fault(
                "GET",
                "/referrers/",
                1,
                reply("200 OK", "", index.to_string().as_bytes()),
            );
        } else {
            registry.manifest(&format!("app:{}", sum.replace(':', "-")), &index);
        }
        assert_eq!(
            proof(&plain(), &registry.oci("app:v1"), "p256").await,
            Ok(by_artifact("p256")),
            "{api}"
        );
        assert!(
            registry.calls("GET", &bill).is_empty(),
            "what is of another type is not asked for"
        );
    }
}

/// Whoever may push can put anything there.
#[tokio::test]
async fn what_cannot_be_read_hides_no_good_signature() {
    let registry = Registry::start().await;
    let (sum, _) = registry.put("app:v1", &gzip(MODULE));
    let good = signed(&registry, "p256", &sum);
    let mut missing = good.clone();
    missing["layers"][0]["digest"] = json!(digest(b"not there"));
    let mut huge = good.clone();
    huge["layers"][0]["size"] = json!(1_u64 << 40);
    let odd = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "layers": {} });
    let prove_with = async |tagged: &Value, referring: &[&Value]| {
        registry.manifest(&tag("app", &sum), tagged);
        let entries: Vec<Value> = referring
            .iter()
            .map(|document| {
                let digest = registry.manifest("app:x", document);
                entry(SIGNATURES, &digest, document.to_string().len())
            })
            .collect();
        let name = format!("app:{}", sum.replace(':', "-"));
        registry.manifest(&name, &index(&entries));
        proof(&plain(), &registry.oci("app:v1"), "p256").await
    };
    for bad in [&missing, &huge, &odd] {
        let proven: Result<Proof, String> = Ok(by_artifact("p256"));
        assert_eq!(prove_with(&good, &[bad]).await, proven, "{bad}");
        assert_eq!(prove_with(bad, &[&good]).await, proven, "{bad}");
        assert_eq!(prove_with(bad, &[bad, &good]).await, proven, "{bad}");
        let error = prove_with(bad, &[bad]).await.unwrap_err();
        assert!(error.contains("cannot be read"), "{error}");
    }
}

#[tokio::test]
async fn a_signature_of_something_else_proves_nothing() {
    let registry = Registry::start().await;
    let (sum, _) = registry.put("app:v1", &gzip(MODULE));
    let (other, _) = registry.put("app:v2", &gzip(b"\0asm other"));
    registry.manifest(&tag("app", &sum), &signed(&registry, "p256", &other));
    let url = registry.oci("app:v1");
    let error = proof(&plain(), &url, "p256").await.unwrap_err();
    assert!(
        error.contains("of another artifact") && error.contains(&sum) && error.contains(&other),
        "{error}"
    );
    // One that is good among others.
    let mut both = signed(&registry, "p256", &other);
    let good = signed(&registry, "p256", &sum)["layers"][0].clone();
    both["layers"].as_array_mut().unwrap().push(good);
    registry.manifest(&tag("app", &sum), &both);
    assert_eq!(proof(&plain(), &url, "p256").await, Ok(by_artifact("p256")));
}

/// Of an index that is signed its own digest counts, and it names what is run.
#[tokio::test]
async fn an_index_is_proven_as_a_whole() {
    let registry = Registry::start().await;
    let (inner, _) = registry.put("app:inner", &gzip(MODULE));
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{ "mediaType": MANIFEST, "digest": inner, "size": 1 }],
    });
    let sum = registry.manifest("app:v1", &index);
    registry.manifest(&tag("app", &sum), &signed(&registry, "p256", &sum));
    assert_eq!(
        proof(&plain(), &registry.oci("app:v1"), "p256").await,
        Ok(by_artifact("p256"))
    );
    assert!(
        proof(&plain(), &registry.oci(&format!("app@{inner}")), "p256")
            .await
            .is_err()
    );
}

#[tokio::test]
async fn what_cannot_be_had_or_is_altered_proves_nothing() {
    let registry = Registry::start().await;
    let (sum, _) = registry.put("app:v1", &gzip(MODULE));
    let signature = signed(&registry, "p256", &sum);
    registry.manifest(&tag("app", &sum), &signature);
    let url = registry.oci("app:v1");
    let once = || fetcher(|options| options.tries = 1);
    let text = payload(&sum);
    let altered = text.replace("registry.example", "registry.Example");
    let blob = digest(text.as_bytes());
    let check = async |part: &str, answer: Reply, words: &str| {
        registry.fault("GET", part, 1, answer);
        let error = proof(&once(), &url, "p256").await.unwrap_err();
        assert!(
            error.contains("cannot be read") && error.contains(words),
            "{error}"
        );
        registry.mend();
    };
    check(
        ".sig",
        reply("500 Internal Server Error", "", b""),
        "status 500",
    )
    .await;
    check(
        ".sig",
        reply("200 OK", "", b"<html>"),
        "not of the right form",
    )
    .await;
    check(".sig", Reply::Endless(b"{".to_vec()), "larger").await;
    check(&blob, reply("200 OK", "", altered.as_bytes()), &blob).await;
    check(&blob, Reply::Endless(Vec::new()), "more").await;
    check(&blob, Reply::Cut(text.clone().into_bytes(), 9), &url).await;
    let mut huge = signature.clone();
    huge["layers"][0]["size"] = json!(1_u64 << 40);
    registry.manifest(&tag("app", &sum), &huge);
    registry.forget_calls();
    let error = proof(&once(), &url, "p256").await.unwrap_err();
    assert!(error.contains("larger"), "{error}");
    assert!(
        registry.calls("GET", &blob).is_empty(),
        "it is not even asked for"
    );
}

/// A module that was given by its checksum alone, from memory, is bound to the artifact before that proves it.
#[tokio::test]
async fn a_module_from_elsewhere_is_not_proven_by_the_artifact_of_another() {
    let registry = Registry::start().await;
    let (sum, _) = registry.put("app:v1", &gzip(MODULE));
    registry.manifest(&tag("app", &sum), &signed(&registry, "p256", &sum));
    registry.put("evil:v1", &gzip(b"\0asm evil"));
    let fetcher = plain();
    let evil = get(&fetcher, &registry.oci("evil:v1")).await.unwrap();
    let keys = Arc::new(keys(&["p256"]));
    let claimed = at(&registry.oci("app:v1"));
    // Given by checksum, although its location names something else.
    let cached = fetcher.fetch(&claimed, Some(&evil.sha256)).await.unwrap();
    assert_eq!(cached.origin, Origin::Cache);
    let error = prove(&fetcher, &claimed, &cached, &keys).await.unwrap_err();
    assert!(told(&error).contains(&evil.sha256), "{error}");
    let good = get(&fetcher, &registry.oci("app:v1")).await.unwrap();
    assert!(prove(&fetcher, &claimed, &good, &keys).await.is_ok());
}

#[tokio::test]
async fn the_policy_takes_either_signature_and_asks_again_for_other_keys() {
    let registry = Registry::start().await;
    let (sum, _) = registry.put("app:v1", &gzip(MODULE));
    registry.manifest(&tag("app", &sum), &signed(&registry, "p256", &sum));
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("a.pem");
    std::fs::write(&key, golden("p256.pub.pem")).unwrap();
    let options = PolicyOptions {
        keys: Some(folder.path().to_owned()),
        ..PolicyOptions::default()
    };
    let policy = ModulePolicy::new(options).unwrap();
    let (fetcher, url) = (plain(), registry.oci("app:v1"));
    let artifact = get(&fetcher, &url).await.unwrap();
    policy.prove(&fetcher, &at(&url), &artifact).await.unwrap();
    registry.forget_calls();
    policy.prove(&fetcher, &at(&url), &artifact).await.unwrap();
    assert!(
        registry.calls("", "").is_empty(),
        "the verdict on these bytes is known"
    );
    assert!(policy.still_proves(&artifact.sha256).await);

    std::fs::write(&key, golden("p384.pub.pem")).unwrap();
    let cached = get(&fetcher, &url).await.unwrap();
    assert_eq!(cached.origin, Origin::Cache);
    assert!(!policy.still_proves(&artifact.sha256).await);
    let error = policy
        .prove(&fetcher, &at(&url), &cached)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("must be signed"), "{error}");
    // A signature that comes later counts from then on: a refusal is not remembered.
    registry.manifest(&tag("app", &sum), &signed(&registry, "p384", &sum));
    policy.prove(&fetcher, &at(&url), &cached).await.unwrap();
}

#[tokio::test]
async fn many_who_want_the_same_proof_ask_the_registry_once() {
    let registry = Registry::start().await;
    let (sum, _) = registry.put("app:v1", &gzip(MODULE));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.pem"), golden("p256.pub.pem")).unwrap();
    let options = PolicyOptions {
        keys: Some(folder.path().to_owned()),
        ..PolicyOptions::default()
    };
    let policy = ModulePolicy::new(options).unwrap();
    let (fetcher, url) = (plain(), registry.oci("app:v1"));
    let artifact = get(&fetcher, &url).await.unwrap();
    let location = at(&url);
    let ask = || {
        let all = (0..20).map(|_| policy.prove(&fetcher, &location, &artifact));
        futures::future::join_all(all)
    };
    let refused = ask().await;
    assert!(refused.iter().all(Result::is_err));
    // One that begins when the first answer is there asks again.
    assert!(registry.calls("GET", ".sig").len() < 20);
    assert_eq!(policy.refusals(), 20);
    registry.manifest(&tag("app", &sum), &signed(&registry, "p256", &sum));
    registry.forget_calls();
    let proven = ask().await;
    assert!(proven.iter().all(Result::is_ok), "{proven:?}");
    assert_eq!(registry.calls("GET", ".sig").len(), 1);
}

/// Who is started again while the registry is away goes on with what was proven.
#[tokio::test]
async fn what_was_proven_is_so_while_the_registry_is_away() {
    let registry = Registry::start().await;
    let (sum, _) = registry.put("app:v1", &gzip(MODULE));
    registry.manifest(&tag("app", &sum), &signed(&registry, "p256", &sum));
    let dir = tempfile::tempdir().unwrap();
    let kept = || {
        fetcher(|options| {
            options.cache_dir = Some(dir.path().to_owned());
            options.tries = 1;
        })
    };
    let url = registry.oci("app:v1");
    assert_eq!(proof(&kept(), &url, "p256").await, Ok(by_artifact("p256")));

    let away = |answer: Reply| registry.fault("GET", "", 1000, answer);
    for answer in [
        reply("503 Service Unavailable", "", b""),
        Reply::Endless(Vec::new()),
    ] {
        away(answer);
        assert_eq!(proof(&kept(), &url, "p256").await, Ok(by_artifact("p256")));
        registry.mend();
    }
    // What another key has made counts for nothing then.
    away(reply("503 Service Unavailable", "", b""));
    let error = proof(&kept(), &url, "p384").await.unwrap_err();
    assert!(error.contains("cannot be read"), "{error}");
    registry.mend();
    // A registry that answers is believed: there is no signature any more.
    registry.fault("GET", ".sig", 1, reply("404 Not Found", "", b""));
    let error = proof(&kept(), &url, "p256").await.unwrap_err();
    assert!(error.contains("has no cosign signature"), "{error}");
    registry.mend();
    // Nothing is known of what was never proven.
    registry.put("app:v2", &gzip(b"\0asm other"));
    let url = registry.oci("app:v2");
    get(&kept(), &url).await.unwrap();
    away(reply("503 Service Unavailable", "", b""));
    let error = proof(&kept(), &url, "p256").await.unwrap_err();
    assert!(error.contains("cannot be read"), "{error}");
}
