//! Public keys from PEM, and signatures beside an artifact.

use std::sync::LazyLock;

use atc_artifact::{CosignError, KeySet, PrivateKey, PublicKey, verify_cosign};

use crate::split;

/// Keys and what was made with them, of the tests of `atc-artifact`.
pub(crate) mod pem {
    macro_rules! golden {
        ($name:literal) => {
            include_bytes!(concat!(
                "../../../crates/atc-artifact/src/signature/golden/",
                $name
            ))
        };
    }

    pub(crate) const ED25519_PRIVATE: &[u8] = golden!("ed25519.pem");
    pub(crate) const ED25519_SIGNED: &[u8] = golden!("ed25519.signed");
    pub(crate) const P256_SIGNED: &[u8] = golden!("p256.signed");
    pub(crate) const RSA_SIGNED: &[u8] = golden!("rsa2048.signed");
    pub(crate) const PAYLOAD: &[u8] = golden!("payload.json");
    pub(crate) const PUBLIC: [&[u8]; 3] = [
        golden!("ed25519.pub.pem"),
        golden!("p256.pub.pem"),
        golden!("rsa2048.pub.pem"),
    ];
}

/// What the payload of the tests names.
const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// The keys that count.
#[expect(clippy::panic, reason = "the files are part of the tree")]
pub(crate) fn known_keys() -> &'static KeySet {
    static KEYS: LazyLock<KeySet> = LazyLock::new(|| {
        let keys = pem::PUBLIC
            .iter()
            .filter_map(|pem| PublicKey::from_pem(pem).ok());
        KeySet::new(keys).unwrap_or_else(|| panic!("the keys of the tests cannot be read"))
    });
    &KEYS
}

/// A PEM text: a key has a fingerprint, and the public part of a private one is that very key.
pub fn public_key(data: &[u8]) {
    let public = PublicKey::from_pem(data);
    if let Ok(key) = &public {
        let fingerprint = key.fingerprint();
        assert!(fingerprint.len() == 64 && hex::decode(fingerprint).is_ok());
    }
    if let Ok(private) = PrivateKey::from_pem(data) {
        let same = public.is_ok_and(|key| key.fingerprint() == private.public().fingerprint());
        assert!(same);
    }
}

/// Signature and text with a zero between them: without the key nobody makes a signature of another text.
pub fn cosign(data: &[u8]) {
    let (signature, payload) = split(data, 0);
    let signature = String::from_utf8_lossy(signature);
    match verify_cosign(payload, &signature, DIGEST, known_keys()) {
        Ok(_) | Err(CosignError::OtherArtifact { .. }) => assert_eq!(payload, pem::PAYLOAD),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
