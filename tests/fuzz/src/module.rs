//! What modules carry: schematics, and the signature among them.

use std::sync::LazyLock;

use atc_artifact::{
    MAX_SCHEMATICS, PrivateKey, Schematic, SchematicError, schematic, schematic_names,
    set_schematic, sign, verify,
};
use sha2::{Digest as _, Sha256};

use crate::keys::{known_keys, pem};
use crate::sections::{PREAMBLE, Section, read, replaced};

const SIGNATURE: &[u8] = b"yoke.schematics:signature";

/// A module, or what follows the preamble of one: names are those that another reader finds, and of what is written every
/// byte is as another writer has it.
pub fn schematics(data: &[u8]) {
    both(data, |module| {
        let sections = read(module);
        let names = match schematic_names(module) {
            Ok(names) => names,
            Err(SchematicError::Module(_)) => {
                assert!(sections.is_none());
                return;
            }
            Err(error) => {
                assert!(
                    sections.is_some_and(|all| all.len() > MAX_SCHEMATICS),
                    "{error}"
                );
                return;
            }
        };
        assert_eq!(names.len(), expected_names(&sections.unwrap_or_default()));
        for name in names.iter().take(3) {
            assert!(
                !matches!(schematic(module, name), Err(SchematicError::Unknown { .. }))
                    || name.contains('\u{fffd}')
            );
        }
        let name = names.first().map_or("fuzz", String::as_str);
        let Ok(set) = set_schematic(module, name, &Schematic::Static(b"content".to_vec())) else {
            assert!(name.is_empty());
            return;
        };
        let fixed = format!("yoke.schematics:{name}").into_bytes();
        let command = format!("yoke.schematics.cmd:{name}").into_bytes();
        let expected = replaced(module, &[fixed.clone(), command], &fixed, b"content");
        assert_eq!(Some(&set), expected.as_ref());
        assert!(
            matches!(schematic(&set, name), Ok(Schematic::Static(content)) if content == b"content")
        );
    });
}

/// How many schematics there are, each name once for each of both sorts.
fn expected_names(sections: &[Section<'_>]) -> usize {
    let names = sections.iter().filter_map(|section| section.custom);
    let names = names.map(|(name, _)| String::from_utf8_lossy(name).into_owned());
    let mut names: Vec<String> = names
        .filter(|name| {
            name.starts_with("yoke.schematics:") || name.starts_with("yoke.schematics.cmd:")
        })
        .collect();
    names.sort();
    names.dedup();
    names.len()
}

/// A module, or what follows the preamble of one: without the key nobody makes a signature, and what is signed is proven
/// until a byte of it changes.
pub fn signature(data: &[u8]) {
    both(data, |module| {
        if verify(module, known_keys()).is_ok() {
            assert!(
                SIGNED.contains(&unsigned_digest(module)),
                "a forged signature"
            );
        }
        let Some(key) = KEY.as_ref() else { return };
        let Ok(mut signed) = sign(module, key, true) else {
            return;
        };
        assert_eq!(
            verify(&signed, known_keys()).as_deref(),
            Ok(key.public().fingerprint())
        );
        // One of the bytes that were there before, chosen by what they are.
        let before = read(&signed)
            .and_then(|all| Some(all.last()?.range.start))
            .unwrap_or_default();
        let at = data.iter().fold(0, |sum: usize, byte| {
            sum.wrapping_mul(31).wrapping_add(usize::from(*byte))
        });
        signed[at % before] ^= 1 << (at % 8);
        assert!(
            verify(&signed, known_keys()).is_err(),
            "a changed module is proven"
        );
    });
}

/// One of the keys.
static KEY: LazyLock<Option<PrivateKey>> =
    LazyLock::new(|| PrivateKey::from_pem(pem::ED25519_PRIVATE).ok());

/// Digests of what was signed with the keys that nobody has here.
static SIGNED: LazyLock<Vec<[u8; 32]>> = LazyLock::new(|| {
    let signed = [pem::P256_SIGNED, pem::ED25519_SIGNED, pem::RSA_SIGNED];
    signed.into_iter().map(unsigned_digest).collect()
});

/// The digest of a module without its first signature.
fn unsigned_digest(module: &[u8]) -> [u8; 32] {
    let sections = read(module).unwrap_or_default();
    let found = sections
        .iter()
        .find(|section| section.custom.is_some_and(|(name, _)| name == SIGNATURE));
    let range = found.map_or(0..0, |section| section.range.clone());
    let mut hash = Sha256::new();
    hash.update(&module[..range.start]);
    hash.update(&module[range.end..]);
    hash.finalize().into()
}

/// With the bytes as they are, and as what follows a preamble.
fn both(data: &[u8], check: impl Fn(&[u8])) {
    check(data);
    check(&[PREAMBLE, data].concat());
}
