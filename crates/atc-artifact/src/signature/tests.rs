use super::*;
use crate::key::PublicKey;
use crate::section::append;

/// Modules signed by a Go program with the algorithm of the existing tool, their keys, and signatures as cosign makes
/// them of `payload.json` (`golden/`). Two of them are built with padded lengths; that of `p384` has its signature in
/// front.
pub(crate) const GOLDEN: [&str; 6] = ["rsa2048", "rsa3072", "p256", "p384", "p521", "ed25519"];

pub(crate) fn golden(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/signature/golden");
    std::fs::read(format!("{folder}/{name}")).unwrap()
}

pub(crate) fn golden_text(name: &str) -> String {
    String::from_utf8(golden(name)).unwrap()
}

pub(crate) fn public(name: &str) -> PublicKey {
    PublicKey::from_pem(&golden(&format!("{name}.pub.pem"))).unwrap()
}

pub(crate) fn private(name: &str) -> PrivateKey {
    PrivateKey::from_pem(&golden(&format!("{name}.pem"))).unwrap()
}

pub(crate) fn keys(names: &[&str]) -> KeySet {
    KeySet::new(names.iter().map(|name| public(name))).unwrap()
}

fn bare() -> Vec<u8> {
    without(&golden("p256.signed"), is_signature).unwrap()
}

#[test]
fn what_the_existing_tool_signs_is_proven() {
    for name in GOLDEN {
        let module = golden(&format!("{name}.signed"));
        let fingerprint = verify(&module, &keys(&GOLDEN)).unwrap();
        assert_eq!(fingerprint, public(name).fingerprint(), "{name}");
        assert!(verify(&module, &keys(&[name])).is_ok(), "{name}");
        assert_eq!(without(&module, is_signature).unwrap(), bare(), "{name}");
    }
}

#[test]
fn each_byte_of_a_signed_module_counts() {
    let keys = keys(&["ed25519", "p384"]);
    for name in ["ed25519.signed", "p384.signed"] {
        let module = golden(name);
        for at in 0..module.len() {
            let mut harmed = module.clone();
            harmed[at] ^= 1;
            assert!(verify(&harmed, &keys).is_err(), "{name}: byte {at}");
        }
        assert!(
            verify(&module[..module.len() - 1], &keys).is_err(),
            "{name}"
        );
    }
}

#[test]
fn signed_here_and_proven() {
    for name in GOLDEN {
        let signed = sign(&bare(), &private(name), false).unwrap();
        assert_eq!(without(&signed, is_signature).unwrap(), bare(), "{name}");
        assert_eq!(
            verify(&signed, &keys(&[name])).unwrap(),
            public(name).fingerprint()
        );
        let block: serde_json::Value = serde_json::from_slice(
            custom_sections(&signed)
                .unwrap()
                .last()
                .unwrap()
                .unwrap()
                .data,
        )
        .unwrap();
        let fields: Vec<_> = block.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["Fingerprint", "Signature"], "{name}");
    }
}

#[test]
fn a_signature_is_replaced_only_by_force() {
    let signed = golden("p384.signed");
    let again = sign(&signed, &private("ed25519"), false);
    assert_eq!(again, Err(SignatureError::AlreadySigned));
    let mut doubled = signed.clone();
    append(&mut doubled, "yoke.schematics.cmd:signature", b"[]").unwrap();
    append(&mut doubled, "yoke.schematics:signature", b"{}").unwrap();
    let forced = sign(&doubled, &private("ed25519"), true).unwrap();
    assert!(verify(&forced, &keys(&["ed25519"])).is_ok());
    assert_eq!(without(&forced, is_signature).unwrap(), bare());
}

#[test]
fn errors_by_kind() {
    let check = |module: &[u8], key: &str, words: &str| {
        let error = verify(module, &keys(&[key])).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    };
    check(&bare(), "p256", "is unsigned");
    check(&golden("p256.signed"), "p384", public("p256").fingerprint());
    let mut forged = golden("p256.signed");
    append(&mut forged, "added", b"later").unwrap();
    check(&forged, "p256", "invalid signature");
    check(b"text", "p256", "no WebAssembly module");
    // Signed by one key in the name of another.
    let [one, other] = ["p256", "ed25519"].map(|name| public(name).fingerprint().to_owned());
    let signed = sign(&bare(), &private("p256"), false).unwrap();
    let block = custom_sections(&signed).unwrap().last().unwrap().unwrap();
    let text = String::from_utf8(block.data.to_vec()).unwrap();
    let mut claimed = bare();
    let text = text.replace(&one, &other);
    append(&mut claimed, "yoke.schematics:signature", text.as_bytes()).unwrap();
    check(&claimed, "ed25519", "invalid signature");
}

#[test]
fn damaged_blocks_are_errors() {
    let fingerprint = public("p256").fingerprint().to_owned();
    let check = |block: &str, words: &str| {
        let mut module = bare();
        append(&mut module, "yoke.schematics:signature", block.as_bytes()).unwrap();
        let error = verify(&module, &keys(&["p256"])).unwrap_err().to_string();
        assert!(error.contains(words), "{block}: {error}");
    };
    check("", "no JSON object");
    check("[]", "no JSON object");
    check(r#"{"Fingerprint":"x"}"#, "no JSON object");
    check(
        r#"{"Fingerprint":"x","Signature":""}"#,
        "Fingerprint is no SHA-256",
    );
    check(
        &format!(r#"{{"Fingerprint":"{fingerprint}","Signature":"*"}}"#),
        "no base64",
    );
    check(
        &format!(r#"{{"Fingerprint":"{fingerprint}","Signature":""}}"#),
        "invalid signature",
    );
    check(&" ".repeat(MAX_BLOCK_BYTES + 1), "larger than any");
}

proptest::proptest! {
    #[test]
    fn no_block_panics(data in proptest::collection::vec(proptest::num::u8::ANY, 0..90)) {
        let _ = block(&data);
        let mut module = bare();
        append(&mut module, "yoke.schematics:signature", &data).unwrap();
        proptest::prop_assert!(verify(&module, &keys(&["p256"])).is_err());
    }
}
