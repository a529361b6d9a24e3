//! Signatures of registry artifacts that cosign made with a key: whether one proves an artifact.
//!
//! Such a signature lies beside the artifact: a text that names the artifact's digest ("simple signing"), and the
//! signature of that text. Where they are got from is the caller's matter.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;

use crate::key::PublicKey;
use crate::key_set::KeySet;

/// How large a signed text may be: 64 KiB. Usual ones have some 300 bytes; users may add annotations.
pub const MAX_PAYLOAD_BYTES: usize = 64 << 10;

/// What stands in `critical.type`.
const TYPE: &str = "cosign container image signature";

/// Why a signature does not prove an artifact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CosignError {
    /// The signature is no base64.
    #[error("the cosign signature is no base64")]
    Encoding,
    /// None of the keys made it.
    #[error("invalid cosign signature: none of the {keys} known keys has made it")]
    Invalid {
        /// How many keys were tried.
        keys: usize,
    },
    /// What was signed is something else.
    #[error("what the cosign signature signs is no statement about an artifact: {why}")]
    Payload {
        /// What is wrong with it.
        why: &'static str,
    },
    /// It is a good signature of another artifact.
    #[error("the cosign signature is of another artifact: wanted '{wanted}', got '{got}'")]
    OtherArtifact {
        /// The artifact's digest.
        wanted: String,
        /// That of the artifact that was signed.
        got: String,
    },
}

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

/// The key that made this signature of the artifact whose manifest has this digest (`sha256:…`).
///
/// The text is believed only after its signature was found good.
pub fn verify_cosign<'a>(
    payload: &[u8],
    signature: &str,
    digest: &str,
    keys: &'a KeySet,
) -> Result<&'a PublicKey, CosignError> {
    let bad = |why| CosignError::Payload { why };
    if payload.len() > MAX_PAYLOAD_BYTES {
        return Err(bad("it is too large"));
    }
    let signature = BASE64
        .decode(signature.trim())
        .map_err(|_| CosignError::Encoding)?;
    let key = keys
        .keys()
        .find(|key| key.proves_text(payload, &signature))
        .ok_or_else(|| CosignError::Invalid {
            keys: keys.keys().count(),
        })?;
    let payload: Payload =
        serde_json::from_slice(payload).map_err(|_| bad("it is not in the form of cosign"))?;
    if payload.critical.kind != TYPE {
        return Err(bad("it is of another type"));
    }
    if payload.critical.image.digest != digest {
        return Err(CosignError::OtherArtifact {
            wanted: digest.to_owned(),
            got: payload.critical.image.digest,
        });
    }
    Ok(key)
}

#[cfg(test)]
mod tests;
