//! Unpacks gzip, told by the bytes and never by a name, within a bound.

use std::io::Read as _;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;

use crate::error::ArtifactError;

/// How many bytes a program may have, as stored and after unpacking, unless told otherwise: 256 MiB. The largest
/// flights seen (Go with a whole package manager and the Kubernetes client inside) have 60 to 90 MiB; each byte of a
/// module costs about ten when it is compiled.
pub const DEFAULT_MAX_BYTES: u64 = 256 << 20;

/// How many times over a program may be packed: once by whoever stored it as `.gz`, once more by a server that packs
/// what it sends.
pub const MAX_PACKINGS: u32 = 2;

/// No module begins like this: theirs is `\0asm`.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The bytes without gzip around them. `location` is for errors only.
///
/// A stream of several members is unpacked whole; one that breaks off, holds a wrong sum, or is followed by something
/// that is not gzip is an error.
pub(crate) fn unpack(
    mut data: Vec<u8>,
    max_bytes: u64,
    location: &str,
) -> Result<Vec<u8>, ArtifactError> {
    for _ in 0..MAX_PACKINGS {
        if !data.starts_with(&GZIP) {
            return Ok(data);
        }
        data = unpack_once(&data, max_bytes, location)?;
    }
    if data.starts_with(&GZIP) {
        return Err(ArtifactError::Nested {
            location: location.to_owned(),
            limit: MAX_PACKINGS,
        });
    }
    Ok(data)
}

fn unpack_once(packed: &[u8], max_bytes: u64, location: &str) -> Result<Vec<u8>, ArtifactError> {
    let mut out = Vec::new();
    // One byte more than allowed tells "too large" from "just fits".
    MultiGzDecoder::new(packed)
        .take(max_bytes.saturating_add(1))
        .read_to_end(&mut out)
        .map_err(|source| ArtifactError::Gzip {
            location: location.to_owned(),
            source: Arc::new(source),
        })?;
    if out.len() as u64 > max_bytes {
        return Err(ArtifactError::TooLarge {
            location: location.to_owned(),
            limit: max_bytes,
            unpacked: true,
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
