//! The signatures that lie beside an artifact, as cosign puts them there: under the tag `sha256-<digest>.sig`, or among what
//! refers to the artifact (the referrers API, or the tag that stands in for it).

use reqwest::Method;
use tokio::time::Instant;

use super::manifest::Blob;
use super::pull::{check_blob, manifest_ask, successful};
use super::session::Session;
use super::{MAX_MANIFEST, Registries, unusable};
use crate::cosign::MAX_PAYLOAD_BYTES;
use crate::error::ArtifactError;
use crate::gate::Slot;
use crate::http::read_body;
use crate::reference::OciLocation;

pub(super) mod layers;

pub use layers::{CosignLayer, MAX_SIGNATURES, cosign_layers, cosign_referrers};

/// A signature that lies beside an artifact. Whom it is of, and of what, is not proven yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CosignSignature {
    /// The text that is signed.
    pub payload: Vec<u8>,
    /// The signature, in base64.
    pub signature: String,
}

impl Registries {
    /// All signatures of the artifact whose manifest has this digest, [`MAX_SIGNATURES`] at most. What can't be read is
    /// passed over, since anybody who may push can put it beside a good one; it is an error where nothing else is there.
    pub(crate) async fn signatures(
        &self,
        at: &OciLocation,
        digest: &str,
        slot: &Slot,
    ) -> Result<Vec<CosignSignature>, ArtifactError> {
        let end = Instant::now() + self.http.limits().total;
        let session = Session::new(self, at, "pull", end, Some(slot));
        let tag = digest.replace(':', "-");
        let mut failed = None;
        let mut layers = Vec::new();
        match session.layers_tagged(at, &tag).await {
            Ok(found) => layers.extend(found),
            Err(error) => pass_over(at, &mut failed, error),
        }
        match session.referring(at, digest, &tag, &mut failed).await {
            Ok(found) => layers.extend(found),
            Err(error) => pass_over(at, &mut failed, error),
        }
        layers.truncate(MAX_SIGNATURES);
        let mut signatures = Vec::with_capacity(layers.len());
        for layer in layers {
            match session.signature(at, layer).await {
                Ok(signature) => signatures.push(signature),
                Err(error) => pass_over(at, &mut failed, error),
            }
        }
        match failed {
            Some(error) if signatures.is_empty() => Err(error),
            _ => Ok(signatures),
        }
    }
}

/// Keeps the first of the reasons for which something that lies beside an artifact is not looked at.
fn pass_over(at: &OciLocation, failed: &mut Option<ArtifactError>, error: ArtifactError) {
    tracing::debug!(location = %at, error = &error as &dyn std::error::Error, "what lies beside an artifact cannot be read");
    failed.get_or_insert(error);
}

impl Session<'_> {
    /// Something of the repository that need not be there.
    async fn beside(&self, at: &OciLocation, path: &str) -> Result<Option<Vec<u8>>, ArtifactError> {
        let asked = self
            .retry(|| async {
                let ask = manifest_ask(Method::GET, self.url(path).await?);
                let answer = successful(at, self.send(&ask).await?).await?;
                Ok(read_body(answer.response, &at.to_string(), MAX_MANIFEST).await?)
            })
            .await;
        match asked {
            Ok(bytes) => Ok(Some(bytes)),
            Err(ArtifactError::Registry { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The signatures under the tag that cosign gives them.
    async fn layers_tagged(
        &self,
        at: &OciLocation,
        tag: &str,
    ) -> Result<Vec<CosignLayer>, ArtifactError> {
        match self.beside(at, &format!("manifests/{tag}.sig")).await? {
            Some(manifest) => layers_of(at, &manifest),
            None => Ok(Vec::new()),
        }
    }

    /// The signatures among what refers to an artifact.
    async fn referring(
        &self,
        at: &OciLocation,
        digest: &str,
        tag: &str,
        failed: &mut Option<ArtifactError>,
    ) -> Result<Vec<CosignLayer>, ArtifactError> {
        let index = match self.beside(at, &format!("referrers/{digest}")).await {
            Ok(Some(index)) => Some(index),
            // A registry that knows no such question; then the tag stands in for it.
            Ok(None)
            | Err(ArtifactError::Registry {
                status: 400 | 405, ..
            }) => self.beside(at, &format!("manifests/{tag}")).await?,
            Err(error) => return Err(error),
        };
        let Some(index) = index else {
            return Ok(Vec::new());
        };
        let entries = cosign_referrers(&index).map_err(|error| unusable(at, &error.to_string()))?;
        let mut layers = Vec::new();
        for entry in entries {
            if layers.len() >= MAX_SIGNATURES {
                break;
            }
            match self.referrer(at, &entry).await {
                Ok(found) => layers.extend(found),
                Err(error) => pass_over(at, failed, error),
            }
        }
        Ok(layers)
    }

    /// The signatures in one manifest that refers to an artifact.
    async fn referrer(
        &self,
        at: &OciLocation,
        entry: &Blob,
    ) -> Result<Vec<CosignLayer>, ArtifactError> {
        let path = format!("manifests/{}", entry.digest);
        let Some(manifest) = self.beside(at, &path).await? else {
            return Ok(Vec::new());
        };
        check_blob(at, &manifest, entry)?;
        layers_of(at, &manifest)
    }

    /// A signature with the text that it signs.
    async fn signature(
        &self,
        at: &OciLocation,
        layer: CosignLayer,
    ) -> Result<CosignSignature, ArtifactError> {
        let payload = self.small_blob(at, &layer.payload).await?;
        check_blob(at, &payload, &layer.payload)?;
        Ok(CosignSignature {
            payload,
            signature: layer.signature,
        })
    }

    async fn small_blob(&self, at: &OciLocation, blob: &Blob) -> Result<Vec<u8>, ArtifactError> {
        if blob.size > MAX_PAYLOAD_BYTES as u64 {
            return Err(ArtifactError::TooLarge {
                location: at.to_string(),
                limit: MAX_PAYLOAD_BYTES as u64,
                unpacked: false,
            });
        }
        self.blob(at, blob).await
    }
}

fn layers_of(at: &OciLocation, manifest: &[u8]) -> Result<Vec<CosignLayer>, ArtifactError> {
    cosign_layers(manifest).map_err(|error| unusable(at, &error.to_string()))
}
