//! Manifests that cosign writes: where the signatures of an artifact stand in them. Nothing here is proven; whoever has the
//! keys does that with what the layers hold.

use serde::Deserialize;

use super::super::manifest::{Blob, Descriptor, ManifestError};

/// Signatures of one artifact that are looked at: 32. Each costs a request; most artifacts have one.
pub const MAX_SIGNATURES: usize = 32;

/// How long a signature in base64 may be: 16 KiB. One of the longest RSA keys that are in use has less than 3 KiB.
const MAX_SIGNATURE_BYTES: usize = 16 << 10;

/// The layer of a signature.
pub(in crate::oci) const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The manifest of signatures, as an index of referrers calls it.
pub(in crate::oci) const SIGNATURES: &str = "application/vnd.dev.cosign.artifact.sig.v1+json";
/// The annotation that holds a signature in base64.
pub(in crate::oci) const SIGNATURE: &str = "dev.cosignproject.cosign/signature";

/// A signature, and where the text is that it signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CosignLayer {
    /// The text.
    pub payload: Blob,
    /// Its signature, in base64.
    pub signature: String,
}

/// The signatures in a manifest that cosign wrote, in their order, [`MAX_SIGNATURES`] at most. Other layers are left out, and
/// what is too long for a signature.
pub fn cosign_layers(manifest: &[u8]) -> Result<Vec<CosignLayer>, ManifestError> {
    #[derive(Deserialize)]
    struct Manifest {
        layers: Option<Vec<Descriptor>>,
    }
    let manifest: Manifest = read(manifest, "manifest")?;
    let layers = manifest.layers.unwrap_or_default().into_iter();
    let layers = layers.filter(|layer| layer.media_type == SIMPLE_SIGNING);
    let signed = layers.filter_map(|layer| {
        let signature = layer
            .annotation(SIGNATURE)
            .filter(|signature| signature.len() <= MAX_SIGNATURE_BYTES)?;
        Some(CosignLayer {
            payload: layer.blob().ok()?,
            signature: signature.to_owned(),
        })
    });
    Ok(signed.take(MAX_SIGNATURES).collect())
}

/// The manifests of signatures in an index of what refers to an artifact, [`MAX_SIGNATURES`] at most.
pub fn cosign_referrers(index: &[u8]) -> Result<Vec<Blob>, ManifestError> {
    #[derive(Deserialize)]
    struct Index {
        manifests: Option<Vec<Descriptor>>,
    }
    let index: Index = read(index, "index of referrers")?;
    let entries = index.manifests.unwrap_or_default().into_iter();
    let signatures = entries.filter(|entry| entry.artifact_type.as_deref() == Some(SIGNATURES));
    let blobs = signatures.filter_map(|entry| entry.blob().ok());
    Ok(blobs.take(MAX_SIGNATURES).collect())
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8], what: &str) -> Result<T, ManifestError> {
    serde_json::from_slice(bytes).map_err(|error| {
        format!("the {what} of its signatures is not of the right form ({error})").into()
    })
}

#[cfg(test)]
mod tests;
