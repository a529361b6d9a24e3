//! Pulls a module: its manifest, perhaps behind an index, then its layer.

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};
use tokio::time::Instant;

use super::manifest::{self, Blob, Manifest, ManifestError};
use super::session::{Ask, Session};
use super::{MAX_MANIFEST, Registries, refusal, unusable};
use crate::error::ArtifactError;
use crate::gate::Slot;
use crate::http::{Answer, read_body};
use crate::reference::{OciLocation, parse_digest};
use crate::verify::sha256_hex;

/// The header with a manifest's digest.
const CONTENT_DIGEST: &str = "docker-content-digest";

/// What a registry has under a name.
pub(crate) enum Pulled {
    /// The manifest is the one that is known.
    Same,
    /// The layer as it came; [`check_blob`] tells whether it is the right one.
    Layer {
        packed: Vec<u8>,
        layer: Blob,
        /// The digest of the manifest that the name stands for.
        digest: String,
    },
}

struct Document {
    kind: String,
    bytes: Vec<u8>,
    digest: String,
}

impl Registries {
    /// Pulls, or learns that the manifest is still the `known` one.
    pub(crate) async fn pull(
        &self,
        at: &OciLocation,
        known: Option<&str>,
        slot: &Slot,
    ) -> Result<Pulled, ArtifactError> {
        let limits = self.http.limits();
        let session = Session::new(self, at, "pull", Instant::now() + limits.total, Some(slot));
        if let Some(known) = known
            && session.tagged(at).await?.as_deref() == Some(known)
        {
            return Ok(Pulled::Same);
        }
        let document = session.manifest(at, at.version(), at.digest()).await?;
        if known == Some(document.digest.as_str()) {
            return Ok(Pulled::Same);
        }
        let layer = session.layer_of(at, &document).await?;
        if layer.size > limits.max_bytes {
            return Err(ArtifactError::TooLarge {
                location: at.to_string(),
                limit: limits.max_bytes,
                unpacked: false,
            });
        }
        let packed = session.blob(at, &layer).await?;
        Ok(Pulled::Layer {
            packed,
            layer,
            digest: document.digest,
        })
    }
}

impl Session<'_> {
    /// The digest that a name stands for now, if the registry tells it without sending the manifest.
    async fn tagged(&self, at: &OciLocation) -> Result<Option<String>, ArtifactError> {
        let asked = self
            .retry(|| async {
                let ask = manifest_ask(
                    Method::HEAD,
                    self.url(&format!("manifests/{}", at.version())).await?,
                );
                let answer = self.send(&ask).await?;
                if answer.response.status().is_success() {
                    return Ok(header_digest(answer.response.headers()));
                }
                Err(refusal(at, answer, "").await)
            })
            .await;
        match asked {
            // The manifest itself is asked for then, and its answer counts.
            Err(ArtifactError::Registry {
                status: 400..=499, ..
            }) => Ok(None),
            other => other,
        }
    }

    async fn manifest(
        &self,
        at: &OciLocation,
        name: &str,
        wanted: Option<&str>,
    ) -> Result<Document, ArtifactError> {
        let document = self
            .retry(|| async {
                let ask = manifest_ask(Method::GET, self.url(&format!("manifests/{name}")).await?);
                let answer = self.send(&ask).await?;
                let answer = successful(at, answer).await?;
                let kind = content_type(answer.response.headers());
                let bytes = read_body(answer.response, &at.to_string(), MAX_MANIFEST).await?;
                Ok((kind, bytes))
            })
            .await?;
        let (kind, bytes) = document;
        // What the registry says of it in a header does not count: this is what it sent.
        let digest = format!("sha256:{}", sha256_hex(&bytes));
        if let Some(wanted) = wanted.filter(|wanted| *wanted != digest) {
            return Err(mismatch(at, "manifest", wanted, &digest));
        }
        Ok(Document {
            kind,
            bytes,
            digest,
        })
    }

    /// The module's layer, through an index if there is one: its entries are tried one after the other.
    async fn layer_of(&self, at: &OciLocation, document: &Document) -> Result<Blob, ArtifactError> {
        let read = |document: &Document| Manifest::parse(&document.kind, &document.bytes);
        let entries = match read(document).map_err(|error| unusable(at, &error.to_string()))? {
            Manifest::Module(layer) => return Ok(layer),
            Manifest::Index(entries) => entries,
        };
        let mut reason = ManifestError::from(String::new());
        for entry in entries {
            let inner = self
                .manifest(at, &entry.digest, Some(&entry.digest))
                .await?;
            match read(&inner) {
                Ok(Manifest::Module(layer)) => return Ok(layer),
                Ok(Manifest::Index(_)) => reason = "it is an index in an index".to_owned().into(),
                Err(why) => reason = why,
            }
        }
        Err(unusable(
            at,
            &format!("no entry of its index is a flight; of the last one: {reason}"),
        ))
    }

    pub(super) async fn blob(
        &self,
        at: &OciLocation,
        layer: &Blob,
    ) -> Result<Vec<u8>, ArtifactError> {
        self.retry(|| async {
            let ask = Ask::new(
                Method::GET,
                self.url(&format!("blobs/{}", layer.digest)).await?,
            );
            let answer = self.send(&ask).await?;
            let answer = successful(at, answer).await?;
            match read_body(answer.response, &at.to_string(), layer.size).await {
                Err(ArtifactError::TooLarge { .. }) => {
                    Err(mismatch(at, "layer", &bytes(layer.size), "more").into())
                }
                other => Ok(other?),
            }
        })
        .await
    }
}

pub(super) fn manifest_ask(method: Method, url: url::Url) -> Ask {
    let mut ask = Ask::new(method, url);
    ask.headers
        .insert(ACCEPT, HeaderValue::from_static(manifest::ACCEPT));
    ask
}

pub(super) async fn successful(
    at: &OciLocation,
    answer: Answer,
) -> Result<Answer, crate::retry::Failure> {
    // A part was not asked for, so it is as wrong as an error.
    if answer.response.status() == StatusCode::OK {
        Ok(answer)
    } else {
        Err(refusal(at, answer, "").await)
    }
}

fn content_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// The digest in an answer's header. One of another algorithm counts as none.
fn header_digest(headers: &HeaderMap) -> Option<String> {
    parse_digest(headers.get(CONTENT_DIGEST)?.to_str().ok()?)
}

/// Whether these are the bytes that the manifest names. Takes milliseconds a megabyte.
pub(crate) fn check_blob(
    at: &OciLocation,
    packed: &[u8],
    layer: &Blob,
) -> Result<(), ArtifactError> {
    if packed.len() as u64 != layer.size {
        return Err(mismatch(
            at,
            "layer",
            &bytes(layer.size),
            &bytes(packed.len() as u64),
        ));
    }
    let digest = format!("sha256:{}", sha256_hex(packed));
    if digest == layer.digest {
        Ok(())
    } else {
        Err(mismatch(at, "layer", &layer.digest, &digest))
    }
}

fn bytes(size: u64) -> String {
    format!("a size of {size} bytes")
}

fn mismatch(at: &OciLocation, what: &'static str, wanted: &str, got: &str) -> ArtifactError {
    ArtifactError::Digest {
        location: at.to_string(),
        what,
        wanted: wanted.to_owned(),
        got: got.to_owned(),
    }
}
