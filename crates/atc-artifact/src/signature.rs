//! The signature that a module carries in a section of its own: made, and proven by known keys.
//!
//! Signed is the SHA-256 of all the module's bytes but this section, so every other byte is under it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::key::{Digest, PrivateKey};
use crate::key_set::KeySet;
use crate::schematic::{Schematic, SchematicError, set_schematic};
use crate::section::{CustomSection, SectionError, custom_sections, without};

/// The name under which [`crate::schematic_names`] shows a signature.
pub const SIGNATURE_NAME: &str = "signature";
/// Its sections.
const SECTION: &[u8] = b"yoke.schematics:signature";
const COMMAND_SECTION: &[u8] = b"yoke.schematics.cmd:signature";

/// How large the section of a signature may be, in bytes: 64 KiB, some 60 times that of the largest key.
const MAX_BLOCK_BYTES: usize = 64 << 10;

/// Why a module is not proven, or not signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The module cannot be read.
    #[error(transparent)]
    Module(#[from] SectionError),
    /// It carries no signature.
    #[error("the module is unsigned")]
    Unsigned,
    /// It carries one already.
    #[error("the module is already signed")]
    AlreadySigned,
    /// It carries something else where its signature should be.
    #[error("the signature of the module is damaged: {why}")]
    Damaged {
        /// What is wrong with it.
        why: &'static str,
    },
    /// It was signed with a key that is not among those given.
    #[error("the module is signed by a key with fingerprint '{fingerprint}', which is not known")]
    UnknownKey {
        /// That of the key as the signature names it.
        fingerprint: String,
    },
    /// The module or its signature was changed, or somebody else than the key's owner made the signature.
    #[error(
        "invalid signature: the module is not what the key with fingerprint '{fingerprint}' has signed"
    )]
    Invalid {
        /// That of the key.
        fingerprint: String,
    },
    /// The system gave no randomness, or the key is too short.
    #[error("the module cannot be signed with this key")]
    NotSigned,
}

/// What stands in the section.
#[derive(Serialize, Deserialize)]
struct Block {
    #[serde(rename = "Fingerprint")]
    fingerprint: String,
    #[serde(rename = "Signature")]
    signature: String,
}

/// The module with a signature at its end. One that it has already is replaced if `force`, else an error.
pub fn sign(module: &[u8], key: &PrivateKey, force: bool) -> Result<Vec<u8>, SignatureError> {
    for section in custom_sections(module)? {
        if is_signature(&section?) && !force {
            return Err(SignatureError::AlreadySigned);
        }
    }
    let bare = without(module, |section| {
        is_signature(section) || section.name == COMMAND_SECTION
    })?;
    let signature = key
        .sign(&Sha256::digest(&bare).into())
        .ok_or(SignatureError::NotSigned)?;
    let block = Block {
        fingerprint: key.public().fingerprint().to_owned(),
        signature: BASE64.encode(signature),
    };
    let block = serde_json::to_vec(&block).map_err(|_| SignatureError::NotSigned)?;
    match set_schematic(&bare, SIGNATURE_NAME, &Schematic::Static(block)) {
        Ok(signed) => Ok(signed),
        Err(SchematicError::Module(error)) => Err(error.into()),
        Err(_) => Err(SignatureError::NotSigned),
    }
}

/// The fingerprint of the key that signed this module, if it is one of these and nothing was changed since.
pub fn verify(module: &[u8], keys: &KeySet) -> Result<String, SignatureError> {
    // All sections are read: a module that is damaged behind its signature proves nothing.
    let mut first = None;
    for section in custom_sections(module)? {
        let section = section?;
        if first.is_none() && is_signature(&section) {
            first = Some(section);
        }
    }
    let section = first.ok_or(SignatureError::Unsigned)?;
    let (fingerprint, signature) = block(section.data)?;
    let key = keys
        .get(&fingerprint)
        .ok_or_else(|| SignatureError::UnknownKey {
            fingerprint: fingerprint.clone(),
        })?;
    if key.proves_digest(&digest_without(module, &section), &signature) {
        Ok(fingerprint)
    } else {
        Err(SignatureError::Invalid { fingerprint })
    }
}

/// Fingerprint and signature.
fn block(data: &[u8]) -> Result<(String, Vec<u8>), SignatureError> {
    let damaged = |why| SignatureError::Damaged { why };
    if data.len() > MAX_BLOCK_BYTES {
        return Err(damaged("it is larger than any signature"));
    }
    let block: Block = serde_json::from_slice(data)
        .map_err(|_| damaged("it is no JSON object with Fingerprint and Signature"))?;
    let fingerprint = block.fingerprint.to_ascii_lowercase();
    if fingerprint.len() != 64 || !fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(damaged("its Fingerprint is no SHA-256 in hex"));
    }
    let signature = BASE64
        .decode(block.signature)
        .map_err(|_| damaged("its Signature is no base64"))?;
    Ok((fingerprint, signature))
}

fn digest_without(module: &[u8], section: &CustomSection<'_>) -> Digest {
    let mut hash = Sha256::new();
    hash.update(module.get(..section.range.start).unwrap_or_default());
    hash.update(module.get(section.range.end..).unwrap_or_default());
    hash.finalize().into()
}

fn is_signature(section: &CustomSection<'_>) -> bool {
    section.name == SECTION
}

#[cfg(test)]
pub(crate) mod tests;
