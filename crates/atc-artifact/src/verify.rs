//! Digests of contents and their comparison with what was wanted.

use sha1::{Digest as _, Sha1};
use sha2::Sha256;

use crate::artifact::Content;
use crate::error::ArtifactError;

/// Hex SHA-256, 64 lower-case digits.
pub fn sha256_hex(data: &[u8]) -> String {
    hex::encode(Sha256::digest(data))
}

/// Hex SHA-1, 40 lower-case digits.
pub fn sha1_hex(data: &[u8]) -> String {
    hex::encode(Sha1::digest(data))
}

/// A wanted SHA-256 in the form that digests have here: trimmed, lower case, without a `sha256:` in front. Nothing
/// wanted (an unset field of a manifest is an empty string) is `None`.
pub(crate) fn normal(checksum: &str) -> Option<String> {
    let trimmed = checksum.trim().to_ascii_lowercase();
    let bare = trimmed.strip_prefix("sha256:").unwrap_or(&trimmed);
    (!bare.is_empty()).then(|| bare.to_owned())
}

/// The content if it is the wanted one; `location` is for the error only.
pub(crate) fn check(
    content: &Content,
    wanted: Option<&str>,
    location: &str,
) -> Result<(), ArtifactError> {
    match wanted {
        Some(wanted) if wanted != content.digests.sha256 => Err(ArtifactError::Checksum {
            location: location.to_owned(),
            wanted: wanted.to_owned(),
            got: content.digests.sha256.clone(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
