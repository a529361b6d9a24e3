use serde_json::{Value, json};

use super::*;

const ONE: &str = "sha256:1111111111111111111111111111111111111111111111111111111111111111";

fn layer(kind: &str, digest: &str, annotations: &Value) -> Value {
    json!({ "mediaType": kind, "digest": digest, "size": 7, "annotations": annotations })
}

#[test]
fn signatures_are_the_layers_that_cosign_annotates() {
    let check = |layers: Value, expect: &[&str]| {
        let manifest = json!({ "schemaVersion": 2, "layers": layers }).to_string();
        let found = cosign_layers(manifest.as_bytes()).unwrap();
        let signatures: Vec<&str> = found.iter().map(|one| one.signature.as_str()).collect();
        assert_eq!(signatures, expect, "{manifest}");
        assert!(
            found
                .iter()
                .all(|one| one.payload.digest == ONE && one.payload.size == 7)
        );
    };
    let signed = |signature: &str| layer(SIMPLE_SIGNING, ONE, &json!({ SIGNATURE: signature }));
    check(json!([]), &[]);
    check(Value::Null, &[]);
    check(json!([signed("a"), signed("b")]), &["a", "b"]);
    check(
        json!([layer("application/wasm", ONE, &json!({ SIGNATURE: "a" }))]),
        &[],
    );
    check(
        json!([layer(SIMPLE_SIGNING, ONE, &Value::Null), signed("b")]),
        &["b"],
    );
    for odd in [json!(7), json!([SIGNATURE]), json!({ SIGNATURE: 7 })] {
        let odd = layer(SIMPLE_SIGNING, ONE, &odd);
        check(json!([odd, signed("b")]), &["b"]);
    }
    check(
        json!([layer(
            SIMPLE_SIGNING,
            "sha512:1",
            &json!({ SIGNATURE: "a" })
        )]),
        &[],
    );
    let (longest, too_long) = (
        "a".repeat(MAX_SIGNATURE_BYTES),
        "a".repeat(MAX_SIGNATURE_BYTES + 1),
    );
    check(
        json!([signed(&too_long), signed("b"), signed(&longest)]),
        &["b", &longest],
    );
    let many: Vec<Value> = (0..MAX_SIGNATURES + 5).map(|_| signed("a")).collect();
    check(json!(many), &["a"; MAX_SIGNATURES]);
    assert!(
        cosign_layers(b"{")
            .unwrap_err()
            .to_string()
            .contains("not of the right form")
    );
    assert!(cosign_layers(br#"{"layers":{}}"#).is_err());
}

#[test]
fn referrers_are_those_of_the_right_type() {
    let entry = |kind: &str, digest: &str| {
        json!({ "mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": kind,
            "digest": digest, "size": 7 })
    };
    let index = |entries: Value| json!({ "schemaVersion": 2, "manifests": entries }).to_string();
    let found = index(json!([
        entry("application/spdx+json", ONE),
        entry(SIGNATURES, ONE),
        entry(SIGNATURES, "no digest"),
        { "mediaType": "x", "digest": ONE, "size": 7 },
    ]));
    let found = cosign_referrers(found.as_bytes()).unwrap();
    assert_eq!(
        found,
        [Blob {
            digest: ONE.to_owned(),
            size: 7
        }]
    );
    assert_eq!(cosign_referrers(index(Value::Null).as_bytes()).unwrap(), []);
    assert!(
        cosign_referrers(b"<html>")
            .unwrap_err()
            .to_string()
            .contains("index of referrers")
    );
}
