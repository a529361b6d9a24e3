//! Tables: manifests of all sorts.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn digest(letter: char) -> String {
    format!("sha256:{}", letter.to_string().repeat(64))
}

fn blob(letter: char) -> Blob {
    let digest = digest(letter);
    Blob { digest, size: 7 }
}

fn descriptor(kind: &str, letter: char) -> Value {
    json!({ "mediaType": kind, "digest": digest(letter), "size": 7 })
}

fn artifact(config: &str, layers: &[(&str, char)]) -> Value {
    let layers: Vec<Value> = layers
        .iter()
        .map(|(kind, letter)| descriptor(kind, *letter))
        .collect();
    json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor(config, 'c'), "layers": layers })
}

fn index(entries: &[Value]) -> Value {
    json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": entries })
}

fn entry(letter: char, more: Value) -> Value {
    let mut entry = descriptor(MANIFEST, letter);
    if let (Value::Object(entry), Value::Object(more)) = (&mut entry, more) {
        entry.extend(more);
    }
    entry
}

fn check(document: &Value, expect: Result<Manifest, &str>) {
    let got = read(MANIFEST, document.to_string().as_bytes());
    match (got, expect) {
        (Err(error), Err(words)) => assert!(error.contains(words), "{error}"),
        (got, expect) => assert_eq!(got, expect.map_err(str::to_owned), "{document}"),
    }
}

#[test]
fn the_layer_is_found_by_its_type() {
    let cncf = "application/vnd.wasm.config.v0+json";
    let module = |letter| Ok(Manifest::Module(blob(letter)));
    check(&artifact(CONFIG, &[(LAYER, 'a')]), module('a'));
    check(
        &artifact(CONFIG, &[("text/plain", 'b'), (LAYER, 'a'), (LAYER, 'b')]),
        module('a'),
    );
    check(
        &artifact(CONFIG, &[("application/wasm", 'b'), (LAYER, 'a')]),
        module('a'),
    );
    check(&artifact(cncf, &[("application/wasm", 'a')]), module('a'));
    let mut docker = artifact(CONFIG, &[(LAYER, 'a')]);
    docker["mediaType"] = DOCKER_MANIFEST.into();
    check(&docker, module('a'));
    docker.as_object_mut().unwrap().remove("mediaType");
    check(&docker, module('a'));
    let mut odd = artifact(CONFIG, &[(LAYER, 'a')]);
    odd["layers"][0]["annotations"] = json!(7);
    check(&odd, module('a'));
}

#[test]
fn what_is_no_flight_says_why() {
    let image = "application/vnd.oci.image.config.v1+json";
    let tar = "application/vnd.oci.image.layer.v1.tar+gzip";
    check(
        &artifact(image, &[(tar, 'a')]),
        Err("the media type of its configuration is 'application/vnd.oci.image.config"),
    );
    check(
        &artifact(CONFIG, &[(tar, 'a')]),
        Err("no layer of media type"),
    );
    check(&artifact(CONFIG, &[]), Err("no layer of media type"));
    let mut odd = artifact(CONFIG, &[(LAYER, 'a')]);
    odd["mediaType"] = "application/vnd.docker.distribution.manifest.v1+json".into();
    check(
        &odd,
        Err("the media type of its manifest is 'application/vnd.docker"),
    );
    for wrong in ["sha256:abc", "sha512:00", "", "sha256:../../x"] {
        let mut odd = artifact(CONFIG, &[(LAYER, 'a')]);
        odd["layers"][0]["digest"] = wrong.into();
        check(&odd, Err("64 hex digits"));
    }
    let mut both = artifact(CONFIG, &[(LAYER, 'a')]);
    both["manifests"] = json!([]);
    check(&both, Err("at once"));
    for document in [json!([]), json!({ "layers": 1 }), json!(null), json!("x")] {
        check(&document, Err("not of the right form"));
    }
    check(
        &json!({ "schemaVersion": 1, "layers": [] }),
        Err("schema version"),
    );
    check(&json!({}), Err("media type"));
    assert!(read(MANIFEST, b"{").is_err());
}

#[test]
fn the_entry_that_fits_comes_first() {
    let platform = |os: &str, architecture: &str| json!({ "platform": { "os": os, "architecture": architecture } });
    let entries = [
        entry('1', platform("linux", "amd64")),
        entry('2', platform("unknown", "unknown")),
        entry('3', json!({ "artifactType": "application/spdx+json" })),
        entry('4', json!({})),
        entry('5', platform("wasip2", "wasm")),
        entry('6', platform("wasip1", "wasm")),
        entry('7', json!({ "artifactType": CONFIG })),
        descriptor(INDEX, '8'),
    ];
    let blobs = |letters: &str| Ok(Manifest::Index(letters.chars().map(blob).collect()));
    check(&index(&entries), blobs("6547"));
    check(&index(&entries[..3]), Err("none of its entries"));
    check(&index(&[]), Err("none of its entries"));
    let many: Vec<Value> = (0..100).map(|_| entry('a', json!({}))).collect();
    check(&index(&many), blobs(&"a".repeat(MAX_ENTRIES)));
}

#[test]
fn what_is_written_is_read_again() {
    let text = write(&blob('c'), &blob('a'));
    assert_eq!(
        read(MANIFEST, text.as_bytes()),
        Ok(Manifest::Module(blob('a')))
    );
    let config: Value = serde_json::from_str(CONFIG_CONTENT).unwrap();
    assert_eq!(
        config["rootfs"],
        json!({ "type": "layers", "diff_ids": null })
    );
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(kind in ".{0,20}", text in r#"[{}\[\]":,a-z0-9]{0,80}"#) {
        let _ = read(&kind, text.as_bytes());
    }
}
