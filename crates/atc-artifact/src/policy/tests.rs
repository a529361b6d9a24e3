use std::path::Path;

use bytes::Bytes;

use super::*;
use crate::artifact::Origin;
use crate::signature::tests::golden;
use crate::verify::{sha1_hex, sha256_hex};

fn artifact(bytes: Vec<u8>) -> Artifact {
    Artifact {
        sha256: sha256_hex(&bytes),
        sha1: sha1_hex(&bytes),
        bytes: Bytes::from(bytes),
        origin: Origin::Cache,
    }
}

fn signed(name: &str) -> Artifact {
    artifact(golden(&format!("{name}.signed")))
}

async fn prove(policy: &ModulePolicy, artifact: &Artifact) -> Result<(), PolicyError> {
    let fetcher = Fetcher::new(crate::options::FetchOptions::default());
    let here = "/tmp/a.wasm".parse().unwrap();
    policy.prove(&fetcher, &here, artifact).await
}

fn put(path: &Path, key: &str) {
    std::fs::write(path, golden(&format!("{key}.pub.pem"))).unwrap();
}

fn of(keys: &Path, allow: Option<&str>, allowed_unsigned: bool) -> ModulePolicy {
    ModulePolicy::new(PolicyOptions {
        allow: allow.map(|list| list.parse().unwrap()),
        keys: Some(keys.to_owned()),
        allowed_unsigned,
    })
    .unwrap()
}

fn words(result: Result<(), PolicyError>) -> String {
    let error = result.unwrap_err();
    let source = std::error::Error::source(&error).map(ToString::to_string);
    format!("{error}: {}", source.unwrap_or_default())
}

#[tokio::test]
async fn without_settings_everything_may_run() {
    let policy = ModulePolicy::default();
    assert!(
        policy
            .admit(&"https://example.com/a".parse().unwrap())
            .is_ok()
    );
    assert!(prove(&policy, &artifact(b"text".to_vec())).await.is_ok());
    assert!(policy.still_proves("any").await);
}

#[tokio::test]
async fn only_what_a_key_has_signed_is_proven() {
    let folder = tempfile::tempdir().unwrap();
    put(&folder.path().join("a.pem"), "p256");
    let policy = of(folder.path(), None, true);
    assert!(prove(&policy, &signed("p256")).await.is_ok());
    // The verdicts are remembered, and are those of these bytes.
    for _ in 0..2 {
        let words = words(prove(&policy, &signed("ed25519")).await);
        assert!(
            words.contains("must be signed") && words.contains("fingerprint"),
            "{words}"
        );
    }
    assert!(prove(&policy, &signed("p256")).await.is_ok());
}

#[tokio::test]
async fn keys_are_those_that_lie_there_now() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("a.pem");
    put(&key, "p256");
    let policy = of(folder.path(), None, false);
    assert!(prove(&policy, &signed("p256")).await.is_ok());
    assert!(prove(&policy, &signed("ed25519")).await.is_err());
    assert!(policy.still_proves(&signed("p256").sha256).await);
    put(&key, "ed25519");
    assert!(!policy.still_proves(&signed("p256").sha256).await);
    assert!(prove(&policy, &signed("p256")).await.is_err());
    assert!(!policy.still_proves(&signed("p256").sha256).await);
    assert!(prove(&policy, &signed("ed25519")).await.is_ok());
    std::fs::write(&key, "half a key").unwrap();
    let said = words(prove(&policy, &signed("ed25519")).await);
    assert!(
        said.contains("cannot be checked") && said.contains("a.pem"),
        "{said}"
    );
    std::fs::remove_file(&key).unwrap();
    assert!(prove(&policy, &signed("ed25519")).await.is_err());
    put(&key, "ed25519");
    assert!(prove(&policy, &signed("ed25519")).await.is_ok());
}

/// The existing tool asks for no signature of what is on the list.
#[tokio::test]
async fn what_is_allowed_is_still_proven_unless_said_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("a.pem");
    put(&key, "p256");
    let list = "https://example.com/*";
    let (here, there) = ("https://example.com/a", "https://example.org/a");
    for (lax, proven) in [(false, false), (true, true)] {
        let policy = of(&key, Some(list), lax);
        assert!(policy.admit(&here.parse().unwrap()).is_ok());
        let error = policy.admit(&there.parse().unwrap()).unwrap_err();
        assert!(
            error.to_string().contains("allow list") && !error.may_pass(),
            "{error}"
        );
        assert_eq!(policy.refusals(), 1);
        assert_eq!(prove(&policy, &signed("ed25519")).await.is_ok(), proven);
        assert_eq!(policy.refusals(), if proven { 1 } else { 2 });
    }
}

#[test]
fn what_is_proven_outlives_refusals() {
    let folder = tempfile::tempdir().unwrap();
    put(&folder.path().join("a.pem"), "p256");
    let keys = Keys::new(folder.path().to_owned()).unwrap();
    let known = keys.current().unwrap();
    let refused = known.verdict(&artifact(b"text".to_vec()));
    assert!(refused.is_err());
    known.remember("good", Ok(()));
    known.remember("good", refused.clone());
    assert!(known.has_proven("good"));
    for nth in 0..MAX_VERDICTS {
        known.remember(&format!("bad {nth}"), refused.clone());
    }
    assert!(known.has_proven("good"));
    for nth in 0..=MAX_VERDICTS {
        known.remember(&format!("good {nth}"), Ok(()));
        assert!(lock(&known.verdicts).len() <= MAX_VERDICTS);
    }
}

#[test]
fn keys_that_are_none_are_told_at_the_start() {
    let keys = Some("/nowhere/keys.json".into());
    let options = PolicyOptions {
        keys,
        ..PolicyOptions::default()
    };
    let error = ModulePolicy::new(options).unwrap_err();
    assert!(error.to_string().contains("/nowhere/keys.json"), "{error}");
}
