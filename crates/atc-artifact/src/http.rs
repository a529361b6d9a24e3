//! Downloads over HTTP, within bounds of time and size, following redirects by rules of its own.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{
    ACCEPT, CONTENT_ENCODING, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED, LOCATION,
};
use reqwest::{Client, ClientBuilder, Response, StatusCode};
use url::{Host, Url};

use crate::error::ArtifactError;
use crate::location::{HttpLocation, shown_url};

/// How long connecting may take, name look-up and TLS included: 10 s.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may stay silent: 20 s, under the 30 s that an API server waits for a webhook.
pub const DEFAULT_STALL_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a whole download may take, redirects included: 2 min, which the largest module allowed takes at 17 Mbit/s.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);
/// How many redirects are followed: 10, as `curl` and browsers allow a few more than anybody needs.
pub const MAX_REDIRECTS: usize = 10;

/// How much of an announced length is reserved beforehand: 16 MiB. A server that lies costs no more than this.
const MAX_RESERVED: u64 = 16 << 20;
/// The largest validator (ETag, Last-Modified) that is kept: 1 KiB.
const MAX_VALIDATOR: usize = 1024;

/// How long a connection is kept for the next download from the same host: 30 s, so that a redirect chain or a burst of
/// modules needs one handshake.
const POOL_IDLE: Duration = Duration::from_secs(30);
/// How many such connections are kept for each host: 2.
const POOL_SIZE: usize = 2;

/// The limits of one download.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) connect: Duration,
    pub(crate) stall: Duration,
    pub(crate) total: Duration,
    pub(crate) max_bytes: u64,
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
    /// Goes through the proxy that the environment names, if it does.
    proxied: LazyClient,
    /// Never does: for the machine itself, which a proxy cannot mean by "localhost".
    direct: LazyClient,
}

type LazyClient = OnceLock<Result<Client, Arc<reqwest::Error>>>;

impl Http {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            proxied: OnceLock::new(),
            direct: OnceLock::new(),
        }
    }

    /// Downloads, or learns that nothing is newer than what `known` stands for.
    pub(crate) async fn get(
        &self,
        location: &HttpLocation,
        known: &Validators,
    ) -> Result<Download, ArtifactError> {
        let timeout = || ArtifactError::Timeout {
            location: location.to_string(),
            limit: self.limits.total,
        };
        tokio::time::timeout(self.limits.total, self.follow(location, known))
            .await
            .map_err(|_| timeout())?
    }

    async fn follow(
        &self,
        location: &HttpLocation,
        known: &Validators,
    ) -> Result<Download, ArtifactError> {
        let mut url = location.url().clone();
        url.set_fragment(None);
        for _ in 0..=MAX_REDIRECTS {
            let shown = shown_url(&url);
            let response = self
                .client_for(&url)?
                .get(url.clone())
                .headers(request_headers(known))
                .send()
                .await
                .map_err(|source| download_error(&shown, source))?;
            match redirect_target(&response, &url)? {
                Some(next) => url = next,
                None => return self.read(response, shown).await,
            }
        }
        let (url, to) = (location.to_string(), shown_url(&url));
        Err(ArtifactError::Redirect {
            url,
            to,
            reason: "too many redirects",
        })
    }

    fn client_for(&self, url: &Url) -> Result<&Client, ArtifactError> {
        let client = if is_loopback(url) {
            self.direct
                .get_or_init(|| builder(&self.limits).no_proxy().build().map_err(Arc::new))
        } else {
            self.proxied
                .get_or_init(|| builder(&self.limits).build().map_err(Arc::new))
        };
        client.as_ref().map_err(|source| ArtifactError::Client {
            source: Arc::clone(source),
        })
    }

    async fn read(&self, mut response: Response, url: String) -> Result<Download, ArtifactError> {
        let status = response.status();
        if status == StatusCode::NOT_MODIFIED {
            return Ok(Download::NotModified);
        }
        // A part was not asked for, so it is as wrong as an error.
        if !status.is_success() || status == StatusCode::PARTIAL_CONTENT {
            return Err(ArtifactError::Status {
                url,
                status: status.as_u16(),
            });
        }
        check_encoding(response.headers(), &url)?;
        let limit = self.limits.max_bytes;
        let announced = response.content_length().unwrap_or_default();
        if announced > limit {
            return Err(ArtifactError::TooLarge {
                location: url,
                limit,
                unpacked: false,
            });
        }
        let validators = validators(response.headers());
        let mut body =
            Vec::with_capacity(usize::try_from(announced.min(MAX_RESERVED)).unwrap_or_default());
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|source| download_error(&url, source))?
        {
            if (body.len() + chunk.len()) as u64 > limit {
                return Err(ArtifactError::TooLarge {
                    location: url,
                    limit,
                    unpacked: false,
                });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Download::Body(body, validators))
    }
}

fn builder(limits: &Limits) -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("atc-artifact/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(limits.connect)
        .read_timeout(limits.stall)
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_SIZE)
        .redirect(reqwest::redirect::Policy::none())
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

/// Where the answer sends us, or nothing if it is the answer.
fn redirect_target(response: &Response, from: &Url) -> Result<Option<Url>, ArtifactError> {
    let Some(to) = response.headers().get(LOCATION) else {
        return Ok(None);
    };
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let refused = |to: String, reason| {
        Err(ArtifactError::Redirect {
            url: shown_url(from),
            to,
            reason,
        })
    };
    let Some(mut next) = to.to_str().ok().and_then(|text| from.join(text).ok()) else {
        return refused(String::new(), "its location is not a URL");
    };
    match (from.scheme(), next.scheme()) {
        ("http", "http" | "https") | ("https", "https") => {}
        ("https", "http") => return refused(shown_url(&next), "from https to http"),
        _ => return refused(shown_url(&next), "not an http or https URL"),
    }
    keep_credentials_at_home(from, &mut next);
    next.set_fragment(None);
    Ok(Some(next))
}

/// The user name and password go on to the same scheme, host and port, and nowhere else.
fn keep_credentials_at_home(from: &Url, next: &mut Url) {
    let same = from.origin() == next.origin();
    let (user, password) = if same {
        (from.username(), from.password())
    } else {
        ("", None)
    };
    // Fails only for URLs that cannot have a host, and these are http.
    let _ = next.set_username(user);
    let _ = next.set_password(password);
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
fn download_error(url: &str, source: reqwest::Error) -> ArtifactError {
    ArtifactError::Download {
        url: url.to_owned(),
        source: Arc::new(source.without_url()),
    }
}

#[cfg(test)]
mod tests;
