//! What registries and docker send: manifests, challenges, docker configs.

use atc_artifact::{Challenge, DockerConfig, Manifest, cosign_layers, cosign_referrers};
use serde_json::Value;

use crate::split;

/// The content type in the first line, the manifest behind it: what is taken names whole digests.
pub fn manifest(data: &[u8]) {
    let (kind, document) = split(data, b'\n');
    let blobs = match Manifest::parse(&String::from_utf8_lossy(kind), document) {
        Ok(Manifest::Module(layer)) => vec![layer],
        Ok(Manifest::Index(entries)) => {
            assert!(!entries.is_empty() && entries.len() <= 8);
            entries
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            Vec::new()
        }
    };
    let layers = cosign_layers(document).unwrap_or_default();
    let referrers = cosign_referrers(document).unwrap_or_default();
    let payloads = layers.into_iter().map(|layer| layer.payload);
    for blob in blobs.into_iter().chain(payloads).chain(referrers) {
        assert!(is_digest(&blob.digest), "{}", blob.digest);
    }
}

fn is_digest(text: &str) -> bool {
    let hex = text.strip_prefix("sha256:").unwrap_or_default();
    hex.len() == 64
        && hex
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A header `WWW-Authenticate`: nothing in an answer is made up.
pub fn challenge(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for challenge in Challenge::parse(&text) {
        if let Challenge::Bearer {
            realm,
            service,
            scope,
        } = challenge
        {
            for value in [Some(realm), service, scope].into_iter().flatten() {
                assert!(!value.is_empty());
                let mut rest = text.chars();
                assert!(
                    value
                        .chars()
                        .all(|letter| rest.any(|other| other == letter))
                );
            }
        }
    }
}

/// A docker config in both forms: what is found or said shows no password.
pub fn docker_config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let said = both_forms(data);
    for secret in secrets(data) {
        if !said.contains(&secret) {
            continue;
        }
        // Words of our own are said of another password, too.
        let other = text.replace(&secret, &"#".repeat(secret.len()));
        assert!(both_forms(other.as_bytes()).contains(&secret), "{said}");
    }
}

/// What is said of a config.
fn both_forms(data: &[u8]) -> String {
    [DockerConfig::parse(data), DockerConfig::parse_old(data)]
        .map(|config| match config {
            Ok(config) => {
                for registry in [
                    "ghcr.io",
                    "index.docker.io",
                    "127.0.0.1:5000",
                    "a.b.c.example.com",
                ] {
                    for repository in ["", "team/app", "a"] {
                        config.knows(registry, repository);
                    }
                }
                format!("{config:?}")
            }
            Err(error) => format!("{error} {error:?}"),
        })
        .concat()
}

/// Passwords and tokens that stand nowhere else in the text.
fn secrets(data: &[u8]) -> Vec<String> {
    let Ok(config) = serde_json::from_slice::<Value>(data) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(data);
    let entries = config["auths"].as_object().into_iter().flatten();
    let values = entries.flat_map(|(_, entry)| {
        ["auth", "password", "identitytoken", "registrytoken"]
            .map(|key| entry[key].as_str().map(str::to_owned))
    });
    values
        .flatten()
        .filter(|secret| secret.len() >= 8 && text.matches(secret.as_str()).count() == 1)
        .collect()
}
