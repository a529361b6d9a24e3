//! Proves a module by known keys: by the signature that it carries, or by one that lies beside its artifact in a registry.

use std::sync::Arc;

use crate::artifact::Artifact;
use crate::cosign::{CosignError, verify_cosign};
use crate::error::ArtifactError;
use crate::fetcher::{Fetcher, Signatures};
use crate::key_set::KeySet;
use crate::location::Location;
use crate::oci::CosignSignature;
use crate::signature::{SignatureError, verify};

/// What proves a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The signature that it carries, by the key of this fingerprint.
    Module(String),
    /// A cosign signature of the artifact that holds it, by the key of this fingerprint.
    Artifact(String),
}

/// Why a module is not proven.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProofError {
    /// By what it carries, and it comes from no registry.
    #[error(transparent)]
    Module(#[from] SignatureError),
    /// By what it carries, and nothing lies beside it.
    #[error("{module}, and its artifact '{digest}' has no cosign signature")]
    NoSignature {
        /// What is wrong with the module's own signature.
        module: SignatureError,
        /// The digest of the artifact's manifest.
        digest: String,
    },
    /// Neither by what it carries nor by what lies beside it.
    #[error(
        "{module}, and of the {count} cosign signatures of its artifact '{digest}' none proves it"
    )]
    NotProven {
        /// What is wrong with the module's own signature.
        module: SignatureError,
        /// The digest of the artifact's manifest.
        digest: String,
        /// How many signatures lie beside it.
        count: usize,
        /// What is wrong with the last one.
        #[source]
        source: CosignError,
    },
    /// What lies beside it cannot be had.
    #[error("{module}, and the cosign signatures of its artifact cannot be read")]
    Registry {
        /// What is wrong with the module's own signature.
        module: SignatureError,
        /// Why not.
        #[source]
        source: Box<ArtifactError>,
    },
    /// The check was ended because the process is stopping.
    #[error("the check of its signatures was ended")]
    Ended,
}

/// What proves a module that came from `location`: its own signature if that is good, else one beside its artifact, for
/// which the registry is asked.
pub async fn prove(
    fetcher: &Fetcher,
    location: &Location,
    module: &Artifact,
    keys: &Arc<KeySet>,
) -> Result<Proof, ProofError> {
    let (bytes, known) = (module.bytes.clone(), Arc::clone(keys));
    // Hashing takes some milliseconds a megabyte.
    let own = tokio::task::spawn_blocking(move || verify(&bytes, &known)).await;
    match own.map_err(|_| ProofError::Ended)? {
        Ok(fingerprint) => Ok(Proof::Module(fingerprint)),
        Err(error) => prove_by_artifact(fetcher, location, module, keys, error).await,
    }
}

/// What proves a module whose own signature does not.
pub(crate) async fn prove_by_artifact(
    fetcher: &Fetcher,
    location: &Location,
    artifact: &Artifact,
    keys: &Arc<KeySet>,
    module: SignatureError,
) -> Result<Proof, ProofError> {
    let is_good = |one: &CosignSignature, digest: &str| {
        verify_cosign(&one.payload, &one.signature, digest, keys).is_ok()
    };
    let beside = fetcher.signatures_or_kept(location, artifact, is_good);
    let beside = match beside.await {
        Ok(Some(beside)) => beside,
        Ok(None) => return Err(module.into()),
        Err(source) => {
            let source = Box::new(source);
            return Err(ProofError::Registry { module, source });
        }
    };
    let keys = Arc::clone(keys);
    let judged = tokio::task::spawn_blocking(move || judge(beside, &keys, module)).await;
    let proven = judged.unwrap_or(Err(ProofError::Ended))?;
    fetcher.keep_signature(proven.digest, proven.by).await;
    Ok(Proof::Artifact(proven.fingerprint))
}

/// What proves an artifact, and by which key.
struct Proven {
    digest: String,
    by: CosignSignature,
    fingerprint: String,
}

/// The first signature that one of the keys has made of this very artifact.
fn judge(beside: Signatures, keys: &KeySet, module: SignatureError) -> Result<Proven, ProofError> {
    let Signatures { digest, all } = beside;
    let mut last = None;
    let count = all.len();
    for by in all {
        match verify_cosign(&by.payload, &by.signature, &digest, keys) {
            Ok(key) => {
                let fingerprint = key.fingerprint().to_owned();
                return Ok(Proven {
                    digest,
                    by,
                    fingerprint,
                });
            }
            Err(error) => last = Some(error),
        }
    }
    Err(match last {
        None => ProofError::NoSignature { module, digest },
        Some(source) => ProofError::NotProven {
            module,
            digest,
            count,
            source,
        },
    })
}
