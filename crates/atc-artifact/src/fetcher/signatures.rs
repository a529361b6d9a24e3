//! The signatures that lie in a registry beside the artifact that a module came from.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Fetcher, REFRESH_WAIT};
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
        self.signatures_or_kept(location, module, |_, _| false)
            .await
    }

    /// The same, but where the registry gives none because it can't be asked, or not within [`REFRESH_WAIT`], the one that has
    /// proven this artifact before is given, if the disk cache has it and it is good.
    pub(crate) async fn signatures_or_kept(
        &self,
        location: &Location,
        module: &Artifact,
        is_good: impl Fn(&CosignSignature, &str) -> bool,
    ) -> Result<Option<Signatures>, ArtifactError> {
        let Location::Oci(at) = location else {
            return Ok(None);
        };
        let remote = Remote::oci(at.clone());
        let digest = match self.manifest(&remote, &module.sha256).await {
            Some(digest) => digest,
            None => self.manifest_again(&remote, module).await?,
        };
        let asked = async {
            let slot = self.0.gate.slot(remote.host());
            slot.take().await;
            self.0.registries.signatures(at, &digest, &slot).await
        };
        let kept = self.kept_signature(&digest).await;
        let all = match kept.filter(|kept| is_good(kept, &digest)) {
            Some(kept) => match tokio::time::timeout(REFRESH_WAIT, asked).await {
                Ok(Ok(all)) => all,
                Ok(Err(error)) => {
                    tracing::warn!(location = %at, error = &error as &dyn std::error::Error, "using the signature that proved the artifact before");
                    vec![kept]
                }
                Err(_) => {
                    tracing::warn!(location = %at, "using the signature that proved the artifact before while its registry takes its time");
                    vec![kept]
                }
            },
            None => asked.await?,
        };
        Ok(Some(Signatures { digest, all }))
    }

    /// Remembers on disk what has proven an artifact, for when its registry can't be asked.
    pub(crate) async fn keep_signature(&self, digest: String, one: CosignSignature) {
        let inner = Arc::clone(&self.0);
        let kept = self.0.blocking(move || {
            let store = inner.store.as_ref()?;
            store.put_signature(&digest, &one).err()
        });
        if let Some(Some(error)) = kept.await {
            tracing::warn!(%error, "cannot keep a signature on disk");
        }
    }

    async fn kept_signature(&self, digest: &str) -> Option<CosignSignature> {
        self.0.store.as_ref()?;
        let (inner, digest) = (Arc::clone(&self.0), digest.to_owned());
        self.0
            .blocking(move || inner.store.as_ref()?.signature(&digest))
            .await?
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
