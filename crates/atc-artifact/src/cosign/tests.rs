use super::*;
use crate::signature::tests::{GOLDEN, golden, golden_text, keys, private, public};

const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

#[test]
fn signatures_made_by_go_are_proven() {
    let payload = golden("payload.json");
    for name in GOLDEN {
        let signature = golden_text(&format!("{name}.sig"));
        let all = keys(&GOLDEN);
        let key = verify_cosign(&payload, &signature, DIGEST, &all).unwrap();
        assert_eq!(key.fingerprint(), public(name).fingerprint());
    }
}

#[test]
fn errors_by_kind() {
    let payload = golden("payload.json");
    let signature = golden_text("p256.sig");
    let check = |payload: &[u8], signature: &str, digest: &str, key: &str, words: &str| {
        let error = verify_cosign(payload, signature, digest, &keys(&[key])).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    };
    check(
        &payload,
        &signature,
        DIGEST,
        "p384",
        "none of the 1 known keys",
    );
    check(&payload, "*", DIGEST, "p256", "no base64");
    check(&payload, "", DIGEST, "p256", "invalid cosign signature");
    check(
        &payload,
        &signature,
        "sha256:1",
        "p256",
        "wanted 'sha256:1', got 'sha256:0000",
    );
    check(
        &vec![b' '; MAX_PAYLOAD_BYTES + 1],
        &signature,
        DIGEST,
        "p256",
        "too large",
    );
    let mut harmed = payload.clone();
    harmed[20] ^= 1;
    check(
        &harmed,
        &signature,
        DIGEST,
        "p256",
        "invalid cosign signature",
    );
}

/// A signature of the right key over another sort of text proves nothing.
#[test]
fn other_texts_prove_nothing() {
    let check = |text: &str, words: &str| {
        let digest = <sha2::Sha256 as sha2::Digest>::digest(text).into();
        let signature = BASE64.encode(private("p256").sign(&digest).unwrap());
        let error =
            verify_cosign(text.as_bytes(), &signature, DIGEST, &keys(&["p256"])).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    };
    check("", "not in the form");
    check("{}", "not in the form");
    check(
        &golden_text("payload.json").replace("cosign container", "other"),
        "another type",
    );
}
