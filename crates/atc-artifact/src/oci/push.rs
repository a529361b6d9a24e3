//! Pushes a module as an artifact: its blobs, unless they are there already, and one manifest under all its tags.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flate2::{Compression, GzBuilder};
use reqwest::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode};
use tokio::time::Instant;
use url::Url;

use super::manifest::{self, Blob, CONFIG, CONFIG_CONTENT, LAYER, MANIFEST};
use super::session::{Ask, Session};
use super::{Registries, refusal, unusable};
use crate::error::ArtifactError;
use crate::http::{Http, Limits, Sent, Upload};
use crate::options::FetchOptions;
use crate::reference::{OciLocation, Tag};
use crate::retry::Failure;
use crate::verify::sha256_hex;

/// How long a push may take: 10 min, which the largest module allowed takes at 4 Mbit/s.
pub const PUSH_TIMEOUT: Duration = Duration::from_mins(10);

/// Pushes modules to registries.
pub struct Pusher(Registries);

/// What was pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// Where exactly this artifact can be pulled from: `oci://host/repository@sha256:…`.
    pub digest_url: String,
    /// Hex SHA-256 of the module, unpacked.
    pub module_sha256: String,
    /// All tags that now mean this artifact, in order.
    pub tags: Vec<String>,
}

impl Pusher {
    /// A pusher with these bounds and credentials; it may take [`PUSH_TIMEOUT`].
    pub fn new(options: &FetchOptions) -> Self {
        let limits = Limits {
            total: PUSH_TIMEOUT,
            ..options.limits()
        };
        let http = Arc::new(Http::new(limits, options.certificates.clone()));
        Self(Registries::new(http, options.credentials.clone()))
    }

    /// Pushes a module, unpacked, to a repository under the tag of `to`, these tags, `sha256_` and its digest, and
    /// `latest`. `sent` is told how many bytes of the packed module went out.
    ///
    /// The same module makes the same artifact, byte for byte.
    pub async fn push(
        &self,
        to: &OciLocation,
        module: Bytes,
        tags: &[Tag],
        sent: Option<Sent>,
    ) -> Result<Pushed, ArtifactError> {
        let packing = tokio::task::spawn_blocking(move || (sha256_hex(&module), pack(&module)));
        let (module_sha256, packed) = packing.await.map_err(|_| ArtifactError::Ended {
            location: to.to_string(),
        })?;
        let config = Bytes::from_static(CONFIG_CONTENT.as_bytes());
        let (config_blob, layer_blob) = (blob(&config), blob(&packed));
        let text = manifest::write(&config_blob, &layer_blob);
        let digest = blob(text.as_bytes()).digest;

        let own = to.tag().map(str::to_owned);
        let all: BTreeSet<String> = tags
            .iter()
            .map(Tag::to_string)
            .chain(own)
            .chain([format!("sha256_{module_sha256}"), "latest".to_owned()])
            .collect();

        let end = Instant::now() + self.0.http.limits().total;
        let session = Session::new(&self.0, to, "pull,push", end, None);
        session.put_blob(to, &config_blob, config, None).await?;
        session.put_blob(to, &layer_blob, packed, sent).await?;
        for tag in &all {
            session.put_manifest(to, tag, &text, &digest).await?;
        }
        Ok(Pushed {
            digest_url: format!("{}@{digest}", to.repository_url()),
            module_sha256,
            tags: all.into_iter().collect(),
        })
    }
}

impl Session<'_> {
    async fn put_blob(
        &self,
        to: &OciLocation,
        blob: &Blob,
        content: Bytes,
        sent: Option<Sent>,
    ) -> Result<(), ArtifactError> {
        self.retry(|| async {
            let head = Ask::new(
                Method::HEAD,
                self.url(&format!("blobs/{}", blob.digest)).await?,
            );
            let answer = self.send(&head).await?;
            match answer.response.status() {
                StatusCode::OK => return Ok(()),
                StatusCode::NOT_FOUND => {}
                _ => return Err(refusal(to, answer, "").await),
            }
            let start = self.url("blobs/uploads/").await?;
            let answer = self.send(&Ask::new(Method::POST, start.clone())).await?;
            match answer.response.status() {
                StatusCode::CREATED => return Ok(()),
                StatusCode::ACCEPTED => {}
                _ => return Err(refusal(to, answer, "").await),
            }
            let place = answer.response.headers().get(LOCATION);
            let mut ask = Ask::new(Method::PUT, upload_place(to, &start, place)?);
            ask.url
                .query_pairs_mut()
                .append_pair("digest", &blob.digest);
            ask.headers.insert(
                CONTENT_TYPE,
                HeaderValue::from_static("application/octet-stream"),
            );
            ask.body = Some(Upload::new(content.clone(), sent.clone()).patient());
            let answer = self.send(&ask).await?;
            if answer.response.status() == StatusCode::CREATED {
                Ok(())
            } else {
                Err(refusal(to, answer, "").await)
            }
        })
        .await
    }

    async fn put_manifest(
        &self,
        to: &OciLocation,
        tag: &str,
        text: &str,
        digest: &str,
    ) -> Result<(), ArtifactError> {
        self.retry(|| async {
            let mut ask = Ask::new(Method::PUT, self.url(&format!("manifests/{tag}")).await?);
            ask.headers.insert(CONTENT_TYPE, HeaderValue::from_static(MANIFEST));
            ask.body = Some(Upload::new(Bytes::copy_from_slice(text.as_bytes()), None).patient());
            let answer = self.send(&ask).await?;
            let hint = match answer.response.status() {
                // Some registries say so in other words.
                StatusCode::OK | StatusCode::CREATED | StatusCode::ACCEPTED => return Ok(()),
                StatusCode::BAD_REQUEST | StatusCode::METHOD_NOT_ALLOWED | StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                    format!(
                        "if it takes only some media types, allow '{MANIFEST}', '{CONFIG}' and '{LAYER}' ({digest})"
                    )
                }
                _ => String::new(),
            };
            Err::<(), Failure>(refusal(to, answer, &hint).await)
        })
        .await
    }
}

/// Where the registry wants an upload. It may be on another host, but never on a connection that protects less.
fn upload_place(
    to: &OciLocation,
    asked: &Url,
    place: Option<&HeaderValue>,
) -> Result<Url, ArtifactError> {
    let url = place
        .and_then(|place| asked.join(place.to_str().ok()?).ok())
        .ok_or_else(|| unusable(to, "it does not say where to upload to"))?;
    match (asked.scheme(), url.scheme()) {
        ("http", "http" | "https") | ("https", "https") => Ok(url),
        _ => Err(unusable(
            to,
            "it wants the upload over a connection without TLS",
        )),
    }
}

fn blob(bytes: &[u8]) -> Blob {
    Blob {
        digest: format!("sha256:{}", sha256_hex(bytes)),
        size: bytes.len() as u64,
    }
}

/// Gzip without a name, a time or a system in it.
fn pack(module: &[u8]) -> Bytes {
    let mut encoder = GzBuilder::new()
        .operating_system(255)
        .write(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = encoder.write_all(module);
    Bytes::from(encoder.finish().unwrap_or_default())
}
