//! A place on another machine, and what it is remembered by.

use std::fmt;

use crate::location::HttpLocation;
use crate::reference::OciLocation;
use crate::verify::sha1_hex;

/// A web server's document, or a registry's artifact.
#[derive(Clone)]
pub(crate) enum Remote {
    Http(HttpLocation),
    /// With its key.
    Oci(OciLocation, String),
}

impl Remote {
    pub(crate) fn http(at: HttpLocation) -> Self {
        Self::Http(at)
    }

    pub(crate) fn oci(at: OciLocation) -> Self {
        let key = at.key();
        Self::Oci(at, key)
    }

    /// What it is remembered by: the same for the same content, whoever asks. It may hold a password.
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Http(at) => at.url().as_str(),
            Self::Oci(_, key) => key,
        }
    }

    /// The name under which the existing tool keeps it: the hex SHA-1 of the URL as it was written.
    pub(crate) fn former_name(&self) -> String {
        match self {
            Self::Http(at) => at.written_sha1().to_owned(),
            Self::Oci(at, _) => sha1_hex(at.to_string().as_bytes()),
        }
    }

    /// The host that is asked, without its port.
    pub(crate) fn host(&self) -> &str {
        match self {
            Self::Http(at) => at.url().host_str().unwrap_or_default(),
            Self::Oci(at, _) => {
                let host = at.api_host();
                match host.rsplit_once(':') {
                    // An address of version 6 has colons in brackets.
                    Some((name, port)) if !port.contains(']') => name,
                    _ => host,
                }
            }
        }
    }

    /// Whether what it gave once is what it will always give.
    pub(crate) fn is_immutable(&self) -> bool {
        matches!(self, Self::Oci(at, _) if at.digest().is_some())
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(at) => write!(f, "{at}"),
            Self::Oci(at, _) => write!(f, "{at}"),
        }
    }
}
