//! Speaks HTTP within bounds of time and size, following redirects by rules of its own.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, ETAG, HeaderMap, HeaderName,
    HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};
use reqwest::{Client, ClientBuilder, Method, Response, StatusCode};
use tokio::time::Instant;
use url::{Host, Url};

use crate::certificates::{CertificateError, Certificates, HostFiles};
use crate::error::{ArtifactError, demands_certificate};
use crate::gate::Slot;
use crate::location::{HttpLocation, shown_url};
use crate::memory::lock;
use crate::retry::{Failure, retry};

mod redirect;

use redirect::redirect_target;

/// How long connecting may take, name look-up and TLS included: 10 s.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may stay silent: 20 s, under the 30 s that an API server waits for a webhook.
pub const DEFAULT_STALL_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a whole download may take, redirects and further tries included: 2 min, which the largest module allowed takes at 17 Mbit/s.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);
/// How many redirects are followed: 10, as `curl` and browsers allow a few more than anybody needs.
pub const MAX_REDIRECTS: usize = 10;

/// How much of an announced length is reserved beforehand: 16 MiB. A server that lies costs no more than this.
const MAX_RESERVED: u64 = 16 << 20;
/// How much of an upload is sent at once: 64 KiB, so that a progress bar moves.
const UPLOAD_PIECE: usize = 64 << 10;
/// The largest validator (ETag, Last-Modified) that is kept: 1 KiB.
const MAX_VALIDATOR: usize = 1024;

/// How long a connection is kept for the next download from the same host: 30 s, so that a redirect chain or a burst of
/// modules needs one handshake.
const POOL_IDLE: Duration = Duration::from_secs(30);
/// How many such connections are kept for each host: 2.
const POOL_SIZE: usize = 2;
/// How many clients are kept: 32. There are three or so, and some more for each host with certificates of its own; beyond
/// that all are made anew.
const MAX_CLIENTS: usize = 32;

/// The limits of one download.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) connect: Duration,
    pub(crate) stall: Duration,
    pub(crate) total: Duration,
    pub(crate) max_bytes: u64,
    /// How often a request is sent where the server is in trouble, the first time included.
    pub(crate) tries: u32,
}

/// One request. What answers it may be where a redirect led.
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// Goes to the origin of `url` and nowhere else.
    pub(crate) authorization: Option<HeaderValue>,
    /// A request with a body is never redirected.
    pub(crate) body: Option<Upload>,
    /// Whether whatever certificate is taken.
    pub(crate) insecure: bool,
}

impl Request {
    pub(crate) fn get(url: Url) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            authorization: None,
            body: None,
            insecure: false,
        }
    }
}

/// Whoever is told how many more bytes were sent.
pub(crate) type Sent = Arc<dyn Fn(u64) + Send + Sync>;

/// A body that is sent in pieces, so that progress can be seen.
#[derive(Clone)]
pub(crate) struct Upload {
    pub(crate) bytes: Bytes,
    pub(crate) sent: Option<Sent>,
    /// Whether the answer may take longer than a server may be silent: a registry may check and copy all of it first.
    /// Whoever sends it sets an end.
    pub(crate) is_patient: bool,
    /// How many bytes the connection has taken.
    moved: Arc<AtomicU64>,
}

impl Upload {
    pub(crate) fn new(bytes: Bytes, sent: Option<Sent>) -> Self {
        Self {
            bytes,
            sent,
            is_patient: false,
            moved: Arc::default(),
        }
    }

    pub(crate) fn patient(self) -> Self {
        Self {
            is_patient: true,
            ..self
        }
    }

    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn stream(&self) -> reqwest::Body {
        let this = self.clone();
        // It may be sent again, after a challenge.
        this.moved.store(0, Ordering::Relaxed);
        let pieces = (0..this.len()).step_by(UPLOAD_PIECE).map(move |at| {
            let end = this.len().min(at + UPLOAD_PIECE);
            this.moved.fetch_add((end - at) as u64, Ordering::Relaxed);
            if let Some(sent) = &this.sent {
                sent((end - at) as u64);
            }
            Ok::<_, std::io::Error>(this.bytes.slice(at..end))
        });
        reqwest::Body::wrap_stream(futures::stream::iter(pieces))
    }
}

/// An answer, and the URL that gave it, as it may be shown.
pub(crate) struct Answer {
    pub(crate) response: Response,
    pub(crate) url: String,
    /// Whether it came from another scheme, host or port than was asked.
    pub(crate) elsewhere: bool,
}

/// What a server says to recognise a version by; sent back to ask whether there is a newer one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Validators {
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
}

/// A server's answer.
#[derive(Debug)]
pub(crate) enum Download {
    /// The body as it was sent, and by what to recognise it.
    Body(Vec<u8>, Validators),
    /// What the validators stand for is still current.
    NotModified,
}

/// The HTTP clients, each made when first needed: making one reads the system's certificates.
pub(crate) struct Http {
    limits: Limits,
    certificates: Certificates,
    clients: Mutex<HashMap<Way, Client>>,
}

/// How a server is spoken with.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Way {
    /// Never through a proxy: for the machine itself, which a proxy cannot mean by "localhost".
    direct: bool,
    /// Whatever certificate it has.
    insecure: bool,
    /// A long body goes out before the answer begins, so the client's own clock for silence is of no use.
    upload: bool,
    /// The files for its host, by their digest.
    certificates: Option<[u8; 32]>,
}

impl Http {
    pub(crate) fn new(limits: Limits, certificates: Certificates) -> Self {
        Self {
            limits,
            certificates,
            clients: Mutex::default(),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Downloads, or learns that nothing is newer than what `known` stands for.
    pub(crate) async fn get(
        &self,
        location: &HttpLocation,
        known: &Validators,
        slot: &Slot,
    ) -> Result<Download, ArtifactError> {
        let limits = &self.limits;
        let mut url = location.url().clone();
        url.set_fragment(None);
        let request = Request {
            headers: request_headers(known),
            ..Request::get(url)
        };
        let end = Instant::now() + limits.total;
        retry(limits, end, &location.to_string(), Some(slot), || async {
            let Answer { response, url, .. } = self.send(&request).await?;
            if response.status() == StatusCode::NOT_MODIFIED {
                return Ok(Download::NotModified);
            }
            // A part was not asked for, so it is as wrong as an error.
            let status = response.status();
            if !status.is_success() || status == StatusCode::PARTIAL_CONTENT {
                let error = ArtifactError::Status {
                    url,
                    status: status.as_u16(),
                };
                return Err(Failure::answered(error, response.headers()));
            }
            check_encoding(response.headers(), &url)?;
            let validators = validators(response.headers());
            let body = read_body(response, &url, limits.max_bytes).await?;
            Ok(Download::Body(body, validators))
        })
        .await
    }

    /// Sends a request and follows where the answers lead. Whatever status the last one has is the caller's matter.
    pub(crate) async fn send(&self, request: &Request) -> Result<Answer, ArtifactError> {
        let mut url = request.url.clone();
        let mut authorization = request.authorization.as_ref();
        for _ in 0..=MAX_REDIRECTS {
            let shown = shown_url(&url);
            let mut builder = self
                .client_for(&url, request)?
                .request(request.method.clone(), url.clone())
                .headers(request.headers.clone());
            if let Some(value) = authorization {
                builder = builder.header(AUTHORIZATION, value);
            }
            if let Some(body) = &request.body {
                builder = builder
                    .header(CONTENT_LENGTH, body.len())
                    .body(body.stream());
            }
            let sending = builder.send();
            let response = match &request.body {
                Some(body) => while_it_moves(body, self.limits.stall, &shown, sending).await?,
                None => sending.await,
            };
            let response = response.map_err(|source| download_error(&shown, source))?;
            let Some(next) = redirect_target(&response, &url)? else {
                return Ok(Answer {
                    response,
                    url: shown,
                    elsewhere: url.origin() != request.url.origin(),
                });
            };
            if request.body.is_some() {
                return Err(ArtifactError::Redirect {
                    url: shown,
                    to: shown_url(&next),
                    reason: "what is uploaded is not sent elsewhere",
                });
            }
            if next.origin() != url.origin() {
                authorization = None;
            }
            url = next;
        }
        Err(ArtifactError::Redirect {
            url: shown_url(&request.url),
            to: shown_url(&url),
            reason: "too many redirects",
        })
    }

    fn client_for(&self, url: &Url, request: &Request) -> Result<Client, ArtifactError> {
        let unusable = |source| ArtifactError::Certificates {
            url: shown_url(url),
            source: Arc::new(source),
        };
        let files = self.certificates.find(url).map_err(unusable)?;
        let way = Way {
            direct: is_loopback(url),
            insecure: request.insecure,
            upload: request.body.is_some(),
            certificates: files.as_ref().map(|files| files.digest),
        };
        let mut clients = lock(&self.clients);
        if let Some(client) = clients.get(&way) {
            return Ok(client.clone());
        }
        let mut builder = builder(&self.limits, way);
        if let Some(files) = &files {
            builder = files.apply(builder).map_err(unusable)?;
        }
        let client = builder.build().map_err(|source| {
            match files.as_ref().and_then(HostFiles::pair) {
                // What does not fit together is seen only here.
                Some(path) => unusable(CertificateError::NoPair {
                    path: path.to_owned(),
                }),
                None => ArtifactError::Client {
                    source: Arc::new(source),
                },
            }
        })?;
        if clients.len() >= MAX_CLIENTS {
            clients.clear();
        }
        clients.insert(way, client.clone());
        Ok(client)
    }
}

/// Waits for an answer as long as the body goes out, and then as long as the upload is patient.
async fn while_it_moves<T>(
    upload: &Upload,
    stall: Duration,
    url: &str,
    answer: impl Future<Output = T>,
) -> Result<T, ArtifactError> {
    let mut answer = std::pin::pin!(answer);
    let mut seen = 0;
    loop {
        if let Ok(answer) = tokio::time::timeout(stall, &mut answer).await {
            return Ok(answer);
        }
        let moved = upload.moved.load(Ordering::Relaxed);
        if upload.is_patient && moved >= upload.len() as u64 {
            return Ok(answer.await);
        }
        if moved == seen {
            return Err(ArtifactError::Timeout {
                location: url.to_owned(),
                limit: stall,
            });
        }
        seen = moved;
    }
}

/// The body of an answer, which must have no more than `limit` bytes.
pub(crate) async fn read_body(
    mut response: Response,
    url: &str,
    limit: u64,
) -> Result<Vec<u8>, ArtifactError> {
    let too_large = || ArtifactError::TooLarge {
        location: url.to_owned(),
        limit,
        unpacked: false,
    };
    let announced = response.content_length().unwrap_or_default();
    if announced > limit {
        return Err(too_large());
    }
    let mut body =
        Vec::with_capacity(usize::try_from(announced.min(MAX_RESERVED)).unwrap_or_default());
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|source| download_error(url, source))?
    {
        if (body.len() + chunk.len()) as u64 > limit {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn builder(limits: &Limits, way: Way) -> ClientBuilder {
    let builder = Client::builder()
        .user_agent(concat!("atc-artifact/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(limits.connect)
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_SIZE)
        .tls_danger_accept_invalid_certs(way.insecure)
        .redirect(reqwest::redirect::Policy::none());
    let builder = if way.direct {
        builder.no_proxy()
    } else {
        builder
    };
    if way.upload {
        builder
    } else {
        builder.read_timeout(limits.stall)
    }
}

fn request_headers(known: &Validators) -> HeaderMap {
    let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("*/*"))]);
    for (name, value) in [
        (IF_NONE_MATCH, &known.etag),
        (IF_MODIFIED_SINCE, &known.last_modified),
    ] {
        if let Some(value) = value
            .as_deref()
            .and_then(|text| HeaderValue::from_str(text).ok())
        {
            headers.insert(name, value);
        }
    }
    headers
}

fn validators(headers: &HeaderMap) -> Validators {
    let text = |name: HeaderName| {
        let value = headers.get(name)?.to_str().ok()?;
        (!value.is_empty() && value.len() <= MAX_VALIDATOR).then(|| value.to_owned())
    };
    Validators {
        etag: text(ETAG),
        last_modified: text(LAST_MODIFIED),
    }
}

fn check_encoding(headers: &HeaderMap, url: &str) -> Result<(), ArtifactError> {
    for value in headers.get_all(CONTENT_ENCODING) {
        let value = String::from_utf8_lossy(value.as_bytes());
        for encoding in value.split(',').map(str::trim) {
            if !["", "identity", "gzip", "x-gzip"].contains(&encoding.to_ascii_lowercase().as_str())
            {
                return Err(ArtifactError::Encoding {
                    url: url.to_owned(),
                    encoding: encoding.to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// Whether the URL means this very machine.
fn is_loopback(url: &Url) -> bool {
    let loopback = |address: IpAddr| address.to_canonical().is_loopback();
    match url.host() {
        Some(Host::Ipv4(address)) => loopback(address.into()),
        Some(Host::Ipv6(address)) => loopback(address.into()),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

/// The client's error without the URL, which it would print with its password.
pub(crate) fn download_error(url: &str, source: reqwest::Error) -> ArtifactError {
    let (url, source) = (url.to_owned(), Arc::new(source.without_url()));
    if demands_certificate(&*source) {
        return ArtifactError::ClientCertificate { url, source };
    }
    ArtifactError::Download { url, source }
}

#[cfg(test)]
mod tests;
