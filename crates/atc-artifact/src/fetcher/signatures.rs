//! The signatures that lie in a registry beside the artifact that a module came from.

use tokio::time::Instant;

use super::Fetcher;
use crate::artifact::Artifact;
use crate::error::ArtifactError;
use crate::location::Location;
use crate::oci::CosignSignature;
use crate::remote::Remote;

/// The signatures of an artifact, not proven yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signatures {
    /// The digest of the artifact's manifest: that which was asked for, an index if it is one.
    pub digest: String,
    /// What lies beside it.
    pub all: Vec<CosignSignature>,
}

impl Fetcher {
    /// The cosign signatures of the artifact at `location` that gave this module; `None` if that is in no registry. The
    /// registry is asked each time.
    ///
    /// # Guarantees
    /// The digest is that of a manifest that gave these very bytes. Where it is not known (they were given by checksum, say),
    /// the artifact is downloaded, and must be these bytes.
    pub async fn signatures(
        &self,
        location: &Location,
        module: &Artifact,
    ) -> Result<Option<Signatures>, ArtifactError> {
        let Location::Oci(at) = location else {
            return Ok(None);
        };
        let remote = Remote::oci(at.clone());
        let digest = match self.manifest(&remote, &module.sha256).await {
            Some(digest) => digest,
            None => self.manifest_again(&remote, module).await?,
        };
        let slot = self.0.gate.slot(remote.host());
        slot.take().await;
        let all = self.0.registries.signatures(at, &digest, &slot).await?;
        Ok(Some(Signatures { digest, all }))
    }

    /// The digest of the manifest by which this place gave these bytes, if it gave them last.
    async fn manifest(&self, remote: &Remote, sha256: &str) -> Option<String> {
        let known = self.0.known(remote.key()).await?;
        // What is remembered of an artifact of a registry as its version is its manifest's digest.
        (known.sha256 == sha256).then_some(known.validators.etag)?
    }

    async fn manifest_again(
        &self,
        remote: &Remote,
        module: &Artifact,
    ) -> Result<String, ArtifactError> {
        let now = self.download(remote, Instant::now()).await?;
        let digest = self.manifest(remote, &module.sha256).await;
        digest.ok_or_else(|| ArtifactError::Checksum {
            location: remote.to_string(),
            wanted: module.sha256.clone(),
            got: now.digests.sha256.clone(),
        })
    }
}
