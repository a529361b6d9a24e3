//! Where a program lies: a path, a `file://`, `http://`, `https://` or `oci://` URL.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use url::Url;

use crate::reference::{OciLocation, ReferenceError};
use crate::verify::sha1_hex;

/// Where a program lies, parsed and ready to be fetched.
///
/// It prints as it was written, but for what gives access: a user name and password, and the values of well-known
/// query parameters that carry signatures or tokens, are shown as `***`. `Debug` does the same, so a location may
/// appear in any log or error.
///
/// ```
/// use atc_artifact::Location;
///
/// let private: Location = "https://joe:secret@example.com/app.wasm".parse().unwrap();
/// assert_eq!(private.to_string(), "https://***@example.com/app.wasm");
/// let local: Location = "./flights/../app.wasm".parse().unwrap();
/// assert_eq!(local.canonical(), "file://app.wasm");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Location {
    /// A local file.
    File(PathBuf),
    /// A document on a web server.
    Http(HttpLocation),
    /// An artifact in a registry.
    Oci(OciLocation),
}

/// A URL whose scheme is `http` or `https` and which has a host.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HttpLocation {
    url: Url,
    /// As it was written, without what gives access.
    shown: String,
    /// Hex SHA-1 of it as it was written.
    written: String,
}

/// Why a text is no location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// Nothing was given.
    #[error("the location of the module is empty")]
    Empty,
    /// There is no way to fetch from such a URL.
    #[error(
        "unknown scheme '{scheme}' in '{location}': use a path, file://, http://, https:// or oci://"
    )]
    Scheme {
        /// What stands before `://`.
        scheme: String,
        /// The whole text, without what gives access.
        location: String,
    },
    /// It looks like a URL and is none.
    #[error("'{location}' is not a URL")]
    Url {
        /// The whole text, without what gives access.
        location: String,
        /// What is wrong with it.
        #[source]
        source: url::ParseError,
    },
    /// It begins as a URL does, and goes on otherwise.
    #[error("'{location}' is not a URL: its scheme ends with '://'")]
    Slashes {
        /// The whole text, without what gives access.
        location: String,
    },
    /// It begins with `oci://` and names no artifact.
    #[error("'{location}' names no artifact in a registry")]
    Reference {
        /// The whole text, without what gives access.
        location: String,
        /// What is wrong with it.
        #[source]
        source: ReferenceError,
    },
}

/// Query parameters whose values give access: presigned URLs of the large clouds and the usual names of tokens.
const SECRET_PARAMETERS: [&str; 15] = [
    "access_key",
    "access_token",
    "api_key",
    "apikey",
    "auth",
    "key",
    "password",
    "secret",
    "sig",
    "signature",
    "token",
    "x-amz-credential",
    "x-amz-security-token",
    "x-amz-signature",
    "x-goog-signature",
];

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(LocationError::Empty);
        }
        let bare = bare(text);
        let text = bare.as_str();
        let Some((scheme, rest)) = split_scheme(text) else {
            return match lacks_slashes(text) {
                Some(location) => Err(LocationError::Slashes { location }),
                None => Ok(Self::File(PathBuf::from(text))),
            };
        };
        match scheme.to_ascii_lowercase().as_str() {
            "file" | "oci" if rest.is_empty() => Err(LocationError::Empty),
            "file" => Ok(Self::File(PathBuf::from(file_path(rest)))),
            "http" | "https" => match Url::parse(text) {
                Ok(url) => Ok(Self::Http(HttpLocation {
                    url,
                    shown: shown(text),
                    written: sha1_hex(text.as_bytes()),
                })),
                Err(source) => Err(LocationError::Url {
                    location: shown_unparsed(text),
                    source,
                }),
            },
            "oci" => match OciLocation::parse(rest) {
                Ok(artifact) => Ok(Self::Oci(artifact)),
                Err(source) => Err(LocationError::Reference {
                    location: shown_unparsed(text),
                    source,
                }),
            },
            other => Err(LocationError::Scheme {
                scheme: other.to_owned(),
                location: shown_unparsed(text),
            }),
        }
    }
}

impl Location {
    /// What a release's record keeps as `source-url`: the URL as written (but for what gives access), and for a local
    /// file `file://` and the cleaned path, relative if it was given so.
    pub fn canonical(&self) -> String {
        match self {
            Self::File(path) => format!("file://{}", clean(path).display()),
            other => other.to_string(),
        }
    }

    /// The SHA-256 that the location itself promises, in lower-case hex.
    ///
    /// In the last part of a path, cut at its first dot, it stands after `sha256_` at the beginning or after
    /// `_sha256_` anywhere; in an OCI tag after `sha256_` at the beginning. What follows must be hex digits, or the
    /// name is taken for a mere name (`my_sha256_tool.wasm`).
    pub fn inferred_checksum(&self) -> Option<String> {
        let sum = match self {
            Self::Oci(artifact) => artifact.tag()?.strip_prefix("sha256_")?,
            Self::File(path) => checksum_in_name(path.file_name()?.to_str()?)?,
            Self::Http(http) => checksum_in_name(http.url.path_segments()?.next_back()?)?,
        };
        let is_hex = !sum.is_empty() && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| sum.to_ascii_lowercase())
    }

    /// Whether a release refuses other bytes from the same location once it has run some: everything but local files
    /// and OCI references without a tag or with a word as tag (`latest`), which are made to change.
    pub fn is_pinnable(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Http(_) => true,
            Self::Oci(artifact) => artifact.tag().is_some_and(is_version),
        }
    }

    /// Whether it names an artifact that is made to change, under a tag such as `latest`: then it is worth asking now and
    /// then what it means.
    pub fn is_moving(&self) -> bool {
        match self {
            Self::File(_) | Self::Http(_) => false,
            Self::Oci(artifact) => {
                artifact.digest().is_none()
                    && !self.is_pinnable()
                    && self.inferred_checksum().is_none()
            }
        }
    }

    /// The same place, where a registry may be spoken with over plain http or with whatever certificate it has. It is
    /// of no effect on other places.
    #[must_use]
    pub fn with_insecure(self, insecure: bool) -> Self {
        match self {
            Self::Oci(artifact) => Self::Oci(artifact.with_insecure(insecure)),
            other => other,
        }
    }
}

impl HttpLocation {
    /// Hex SHA-1 of the URL's text.
    pub(crate) fn written_sha1(&self) -> &str {
        &self.written
    }

    /// The whole URL, with what gives access: for the client alone.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Http(http) => write!(f, "{http}"),
            Self::Oci(artifact) => write!(f, "{artifact}"),
        }
    }
}

impl fmt::Display for HttpLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({self})")
    }
}

impl fmt::Debug for HttpLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpLocation({self})")
    }
}

/// `scheme` and what follows `://`. A colon without slashes does not make a URL: it may stand in a file's name.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let mut letters = scheme.bytes();
    let well_formed = letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    well_formed.then_some((scheme, rest))
}

/// The text as a URL is read: spaces and control characters in front, tabs and line breaks anywhere are no part of it. A path
/// stays as it is.
fn bare(text: &str) -> String {
    let inner = |letter: &char| !matches!(letter, '\t' | '\n' | '\r');
    let bare: String = text.chars().filter(inner).collect();
    let bare = bare.trim_start_matches(|letter| letter <= ' ');
    if split_scheme(bare).is_some() || lacks_slashes(bare).is_some() {
        bare.to_owned()
    } else {
        text.to_owned()
    }
}

/// What begins as `https:` and goes on without two slashes, which no path is meant to: without what gives access.
fn lacks_slashes(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once(':')?;
    let known = ["http", "https", "ftp", "ws", "wss"];
    if !known.iter().any(|known| scheme.eq_ignore_ascii_case(known)) || rest.starts_with("//") {
        return None;
    }
    Some(match rest.rsplit_once('@') {
        Some((before, _)) if before.contains('?') => format!("{scheme}:***"),
        Some((_, rest)) => format!("{scheme}:{}", shown(&format!("***@{rest}"))),
        None => shown(text),
    })
}

/// The path of a `file://` URL. What follows the slashes is the path, as releases record it: `file:///tmp/a.wasm`,
/// `file://a.wasm`; `localhost` as a host is dropped.
fn file_path(rest: &str) -> String {
    let path = rest
        .strip_prefix("localhost")
        .filter(|path| path.starts_with('/'))
        .unwrap_or(rest);
    percent_decode(path)
}

/// `%20` and the like as the bytes they mean; what is not well formed, or is no UTF-8 afterwards, stays as it is.
fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let escaped = (byte == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        let decoded = escaped
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(decoded.unwrap_or(byte));
        at += if decoded.is_some() { 3 } else { 1 };
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// The path without `.`, without doubled slashes and with `..` resolved as far as the text allows.
fn clean(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => match out.components().next_back() {
                Some(Component::Normal(_)) => {
                    out.pop();
                }
                Some(Component::RootDir) => {}
                _ => out.push(".."),
            },
            other => out.push(other),
        }
    }
    if out.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        out
    }
}

/// A text that is no valid URL, for an error: a password in it may hold a slash, so all up to the last `@` is hidden; and what
/// follows, where that `@` may stand in the value of a parameter.
fn shown_unparsed(text: &str) -> String {
    match (split_scheme(text), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((before, _))) if before.contains('?') => format!("{scheme}://***"),
        (Some((scheme, _)), Some((_, rest))) => shown(&format!("{scheme}://***@{rest}")),
        _ => shown(text),
    }
}

/// A URL's text with user name and password, and the values of telling query parameters, replaced.
fn shown(text: &str) -> String {
    let (scheme, rest) = split_scheme(text).unwrap_or(("", text));
    // However many slashes there are: for a URL parser the host comes behind the last of them.
    let bare = rest.trim_start_matches(['/', '\\']);
    let (slashes, rest) = rest.split_at(rest.len() - bare.len());
    let authority_end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(authority_end);
    let mut out = if scheme.is_empty() {
        slashes.to_owned()
    } else {
        format!("{scheme}://{slashes}")
    };
    match authority.rsplit_once('@') {
        Some((_, host)) => {
            out.push_str("***@");
            out.push_str(host);
        }
        None => out.push_str(authority),
    }
    let (before, fragment) = tail
        .split_once('#')
        .map_or((tail, None), |(before, after)| (before, Some(after)));
    match before.split_once('?') {
        Some((path, query)) => {
            out.push_str(path);
            for (nth, pair) in query.split('&').enumerate() {
                out.push(if nth == 0 { '?' } else { '&' });
                match pair.split_once('=') {
                    Some((key, _)) if is_secret_parameter(key) => {
                        out.push_str(key);
                        out.push_str("=***");
                    }
                    _ => out.push_str(pair),
                }
            }
        }
        None => out.push_str(before),
    }
    if let Some(fragment) = fragment {
        out.push('#');
        out.push_str(fragment);
    }
    out
}

/// What [`Location`] shows of a URL that a server named.
pub(crate) fn shown_url(url: &Url) -> String {
    shown(url.as_str())
}

fn is_secret_parameter(key: &str) -> bool {
    SECRET_PARAMETERS.contains(&key.to_ascii_lowercase().as_str())
}

fn checksum_in_name(name: &str) -> Option<&str> {
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    stem.strip_prefix("sha256_")
        .or_else(|| stem.split_once("_sha256_").map(|(_, sum)| sum))
}

/// A semantic version, perhaps with `v` in front, perhaps without minor and patch: `1`, `v1`, `1.2`, `1.2.3-pre+b`.
fn is_version(tag: &str) -> bool {
    let bare = tag.strip_prefix('v').unwrap_or(tag);
    let (rest, build) = bare
        .split_once('+')
        .map_or((bare, None), |(rest, build)| (rest, Some(build)));
    let (core, pre) = rest
        .split_once('-')
        .map_or((rest, None), |(core, pre)| (core, Some(pre)));
    let words = |text: Option<&str>| {
        text.is_none_or(|text| {
            text.split('.').all(|word| {
                !word.is_empty()
                    && word
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            })
        })
    };
    let numbers: Vec<&str> = core.split('.').collect();
    numbers.len() <= 3
        && numbers.iter().all(|number| {
            !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit())
                && (number.len() == 1 || !number.starts_with('0'))
        })
        && words(pre)
        && words(build)
}

#[cfg(test)]
mod tests;
