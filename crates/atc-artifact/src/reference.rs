//! The name of an artifact in a registry: what stands after `oci://`, taken apart.

use core::net::IpAddr;
use std::fmt;
use std::str::FromStr;

use url::{Host, Url};

/// The tag where none is given.
const LATEST: &str = "latest";
/// How Docker Hub is called by those who name it.
const HUB_NAMES: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];
/// Where Docker Hub's registry answers.
const HUB_API: &str = "registry-1.docker.io";
/// Longest name of a repository, as the distribution specification has it: 255 letters.
const MAX_REPOSITORY: usize = 255;
/// Longest tag, as there: 128 letters.
const MAX_TAG: usize = 128;

/// An artifact in a registry: `host:port/repository:tag@sha256:digest`, host, tag and digest optional.
///
/// Without a host it lies in Docker Hub, without tag and digest its tag is `latest`; a digest counts more than a tag.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OciLocation {
    /// As it was written, after `oci://`.
    written: String,
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
    insecure: bool,
}

/// Why a text names no artifact. It holds nothing of the text, which may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// There is something before an `@`, but no digest behind it.
    #[error(
        "what stands after '@' is no digest, which is sha256: and 64 hex digits; user names and passwords belong into a docker config"
    )]
    Digest,
    /// The registry is no host with an optional port.
    #[error("the registry is not HOST or HOST:PORT")]
    Registry,
    /// There is a registry and nothing behind it.
    #[error("no repository stands after the registry")]
    NoRepository,
    /// The repository has letters that no registry takes.
    #[error(
        "the repository must consist of lower-case letters, digits and the signs . _ - /, 255 of them at most"
    )]
    Repository,
    /// The tag has letters that no registry takes.
    #[error(
        "the tag must consist of letters, digits and the signs . _ - +, 128 of them at most, and begin with a letter, a digit or _"
    )]
    Tag,
}

/// A tag that a registry can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag(String);

impl FromStr for Tag {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if is_tag(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ReferenceError::Tag)
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl OciLocation {
    /// Takes what stands after `oci://` apart.
    pub(crate) fn parse(text: &str) -> Result<Self, ReferenceError> {
        let (named, digest) = match text.rsplit_once('@') {
            Some((named, digest)) => (
                named,
                Some(parse_digest(digest).ok_or(ReferenceError::Digest)?),
            ),
            None => (text, None),
        };
        let (registry, path) = split_registry(named)?;
        let (repository, tag) = match path.rsplit_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        if registry.is_none() && tag.is_some() && is_host_like(repository) {
            return Err(ReferenceError::NoRepository);
        }
        if !is_repository(repository) {
            return Err(if repository.is_empty() {
                ReferenceError::NoRepository
            } else {
                ReferenceError::Repository
            });
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(ReferenceError::Tag);
        }
        let registry = registry.map(str::to_ascii_lowercase);
        let hub = registry
            .as_deref()
            .is_none_or(|name| HUB_NAMES.contains(&name));
        Ok(Self {
            written: text.to_owned(),
            registry: registry
                .filter(|_| !hub)
                .unwrap_or_else(|| HUB_NAMES[1].to_owned()),
            repository: if hub && !repository.contains('/') {
                format!("library/{repository}")
            } else {
                repository.to_owned()
            },
            tag: tag.map(str::to_owned),
            digest,
            insecure: false,
        })
    }

    /// The same artifact, with leave to speak plain http or to take any certificate, or without.
    #[must_use]
    pub fn with_insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }

    /// Whether plain http and any certificate are allowed whatever the host.
    pub fn is_insecure(&self) -> bool {
        self.insecure
    }

    /// `HOST` or `HOST:PORT` of the registry.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The repository's full name.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag, if one was given.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The manifest's digest (`sha256:…`), if one was given: then the content can never change.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// As it was written, but where a digest decides, without the tag that does not.
    pub(crate) fn decisive(&self) -> String {
        let Some(digest) = self.digest() else {
            return self.to_string();
        };
        let named = self.written.rsplit_once('@').map_or("", |(named, _)| named);
        let named = match self.tag().and_then(|tag| named.strip_suffix(tag)) {
            Some(repository) => repository.trim_end_matches(':'),
            None => named,
        };
        format!("oci://{named}@{digest}")
    }

    /// By what the manifest is asked for.
    pub(crate) fn version(&self) -> &str {
        self.digest().or(self.tag()).unwrap_or(LATEST)
    }

    /// The host that answers for the registry.
    pub(crate) fn api_host(&self) -> &str {
        if HUB_NAMES.contains(&self.registry.as_str()) {
            HUB_API
        } else {
            &self.registry
        }
    }

    /// The repository as a URL, without tag and digest.
    pub(crate) fn repository_url(&self) -> String {
        format!("oci://{}/{}", self.registry, self.repository)
    }

    /// What the artifact is remembered by. What came over a connection that proves nothing is remembered apart.
    pub(crate) fn key(&self) -> String {
        let insecure = if self.insecure { "insecure+" } else { "" };
        format!("{insecure}{} {}", self.repository_url(), self.version())
    }

    /// The schemes to speak with the registry, in the order in which they are tried.
    pub(crate) fn schemes(&self) -> &'static [&'static str] {
        if self.insecure || is_local(&self.registry) {
            &["https", "http"]
        } else {
            &["https"]
        }
    }
}

/// As [`crate::Location`]: there is nothing in it that gives access.
impl fmt::Display for OciLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oci://{}", self.written)
    }
}

impl fmt::Debug for OciLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OciLocation({self})")
    }
}

/// `sha256:` and 64 hex digits, in lower case.
pub(crate) fn parse_digest(text: &str) -> Option<String> {
    let hex = text.strip_prefix("sha256:")?;
    let well_formed = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    well_formed.then(|| text.to_ascii_lowercase())
}

/// The first part of the path is a registry if it could not be part of a repository's name in Docker Hub.
fn split_registry(named: &str) -> Result<(Option<&str>, &str), ReferenceError> {
    let Some((first, rest)) = named.split_once('/') else {
        return Ok((None, named));
    };
    let upper = first.bytes().any(|byte| byte.is_ascii_uppercase());
    if !(is_host_like(first) || first.contains([':', '[']) || upper) {
        return Ok((None, named));
    }
    let url = Url::parse(&format!("https://{first}/")).map_err(|_| ReferenceError::Registry)?;
    let odd = first.contains(['?', '#', '\\', '%', '@'])
        || first.ends_with(':')
        || first.contains(char::is_whitespace);
    if odd || url.host().is_none() || url.path() != "/" {
        return Err(ReferenceError::Registry);
    }
    Ok((Some(first), rest))
}

fn is_host_like(text: &str) -> bool {
    text == "localhost" || text.contains('.')
}

fn is_repository(text: &str) -> bool {
    text.len() <= MAX_REPOSITORY
        && text.split('/').all(|part| {
            let signs = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
            // A part of dots alone would be taken for a step up in the path of a URL.
            part.bytes().all(signs) && part.bytes().any(|byte| byte != b'.')
        })
}

fn is_tag(text: &str) -> bool {
    let first = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= MAX_TAG
        && text.bytes().next().is_some_and(first)
        && text
            .bytes()
            .all(|byte| first(byte) || matches!(byte, b'.' | b'-' | b'+'))
}

/// Whether the registry is one of this machine or of a private network, which may speak plain http: `localhost`,
/// `*.localhost`, `*.local`, loopback addresses and those of RFC 1918.
fn is_local(registry: &str) -> bool {
    let Ok(url) = Url::parse(&format!("https://{registry}/")) else {
        return false;
    };
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback() || address.is_private(),
        Some(Host::Ipv6(address)) => match IpAddr::from(address).to_canonical() {
            IpAddr::V4(mapped) => mapped.is_loopback() || mapped.is_private(),
            IpAddr::V6(address) => address.is_loopback(),
        },
        Some(Host::Domain(name)) => {
            let parts = name.trim_end_matches('.').rsplit_once('.');
            let (above, last) = parts.map_or((None, name), |(above, last)| (Some(above), last));
            last == "localhost" || (last == "local" && above.is_some())
        }
        None => false,
    }
}

#[cfg(test)]
mod tests;
