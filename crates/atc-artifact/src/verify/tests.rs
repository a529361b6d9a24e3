//! Digests against published values, and the forms a checksum may have.

use super::*;

#[test]
fn digests_are_those_of_the_standards() {
    assert_eq!(sha1_hex(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    assert_eq!(
        sha256_hex(b"abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(
        sha256_hex(b""),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
}

#[test]
fn a_checksum_may_be_written_in_several_ways() {
    for (given, normal_form) in [
        ("", None),
        ("  ", None),
        ("sha256:", None),
        ("ABCD", Some("abcd")),
        (" sha256:AbCd\n", Some("abcd")),
    ] {
        assert_eq!(normal(given).as_deref(), normal_form, "{given:?}");
    }
}

#[test]
fn a_mismatch_names_both() {
    let content = Content::digest(b"abc".to_vec());
    let right = content.digests.sha256.clone();
    assert!(check(&content, None, "x").is_ok() && check(&content, Some(&right), "x").is_ok());
    let text = check(&content, Some("00"), "m.wasm")
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("'00'") && text.contains(&right) && text.contains("m.wasm"),
        "{text}"
    );
}
