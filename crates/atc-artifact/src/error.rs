//! Why a program could not be had.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::certificates::CertificateError;
use crate::credentials::CredentialsError;

/// A failed fetch. Cheap to clone, since everybody who waited for one download gets the same error.
///
/// No variant holds a password: URLs are kept as [`crate::Location`] prints them.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// The file could not be opened or read.
    #[error("cannot read '{}'", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// A directory, a pipe, a device or a socket stands there.
    #[error("'{}' is {what}, not a file", path.display())]
    NotAFile {
        /// What was asked for.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The HTTP client could not be made, for example because a proxy variable or a certificate bundle is broken.
    #[error("cannot set up the HTTP client")]
    Client {
        /// What the client said.
        #[source]
        source: Arc<reqwest::Error>,
    },
    /// No answer, or an answer that broke off.
    #[error("cannot download '{url}'")]
    Download {
        /// The URL.
        url: String,
        /// What the client said.
        #[source]
        source: Arc<reqwest::Error>,
    },
    /// The server wants to know who we are before it listens.
    #[error(
        "'{url}' demands a client certificate, and takes none that is there: client.cert and client.key belong into a folder of the host's name below certs.d"
    )]
    ClientCertificate {
        /// The URL.
        url: String,
        /// What the client said.
        #[source]
        source: Arc<reqwest::Error>,
    },
    /// The certificates for the host cannot be used.
    #[error("cannot use the certificates that are there for the host of '{url}'")]
    Certificates {
        /// The URL.
        url: String,
        /// What is wrong with them.
        #[source]
        source: Arc<CertificateError>,
    },
    /// It took too long.
    #[error("cannot get '{location}' within {limit:?}")]
    Timeout {
        /// What was asked for.
        location: String,
        /// The limit.
        limit: Duration,
    },
    /// The server answered, but not with the program.
    #[error("'{url}' answered with status {status}")]
    Status {
        /// The URL that gave this answer, which may be where a redirect led.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// A registry answered, but not with what was asked for.
    #[error("the registry answered '{location}' with status {status}{}", said(.message))]
    Registry {
        /// The artifact.
        location: String,
        /// The HTTP status.
        status: u16,
        /// What the registry said of it, and what can be done; perhaps nothing.
        message: String,
    },
    /// What a registry sent as a manifest, a token or an upload's address cannot be used.
    #[error("cannot use what the registry gave for '{location}': {reason}")]
    Artifact {
        /// The artifact.
        location: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A manifest or a layer does not have the digest or the size by which it was asked for.
    #[error("wrong {what} of '{location}': wanted {wanted}, got {got}")]
    Digest {
        /// The artifact.
        location: String,
        /// The manifest, or the layer.
        what: &'static str,
        /// The digest, or the size.
        wanted: String,
        /// The real one.
        got: String,
    },
    /// Speaking with a registry failed on the way.
    #[error("cannot reach the registry of '{location}'")]
    Way {
        /// The artifact.
        location: String,
        /// Where, and why.
        #[source]
        source: Arc<ArtifactError>,
    },
    /// The credentials for a registry could not be read.
    #[error("no credentials for '{location}'")]
    Credentials {
        /// The artifact.
        location: String,
        /// Why.
        #[source]
        source: Arc<CredentialsError>,
    },
    /// A redirect that is not followed.
    #[error("'{url}' redirects to '{to}': {reason}")]
    Redirect {
        /// The URL that was asked.
        url: String,
        /// Where it sent us.
        to: String,
        /// Why we do not go there.
        reason: &'static str,
    },
    /// The body is encoded in a way we did not ask for and do not know.
    #[error("'{url}' has content encoding '{encoding}': only gzip is understood")]
    Encoding {
        /// The URL.
        url: String,
        /// Its `Content-Encoding`.
        encoding: String,
    },
    /// More bytes than allowed, as stored or after unpacking.
    #[error("'{location}' is larger than {limit} bytes{}", if *unpacked { " when unpacked" } else { "" })]
    TooLarge {
        /// What was asked for.
        location: String,
        /// The limit in bytes.
        limit: u64,
        /// Whether the unpacked form was too large, or already the packed one.
        unpacked: bool,
    },
    /// It begins like gzip, and is broken or breaks off.
    #[error("cannot unpack the gzip stream of '{location}'")]
    Gzip {
        /// What was asked for.
        location: String,
        /// What the decoder said.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// Gzip in gzip in gzip.
    #[error("'{location}' is packed with gzip more than {limit} times over")]
    Nested {
        /// What was asked for.
        location: String,
        /// The limit.
        limit: u32,
    },
    /// The bytes are not the wanted ones.
    #[error("wrong checksum of '{location}': wanted sha256 '{wanted}', got '{got}'")]
    Checksum {
        /// What was asked for.
        location: String,
        /// The wanted SHA-256 as it was given.
        wanted: String,
        /// The real one.
        got: String,
    },
    /// The download was ended because the process is stopping.
    #[error("the download of '{location}' was ended")]
    Ended {
        /// What was asked for.
        location: String,
    },
}

/// What to do about an [`ArtifactError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Another try may work: no connection, time over, a server in trouble (408, 429, 5xx).
    Unavailable,
    /// It is not there or may not be read (other 4xx, a missing file): trying again helps once somebody acts.
    Refused,
    /// What is there cannot be used: wrong checksum, too large, broken gzip.
    Invalid,
}

impl ArtifactError {
    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Way { source, .. } => source.kind(),
            Self::Download { source, .. } if is_untrusted(&**source) => ErrorKind::Refused,
            Self::Download { .. } | Self::Timeout { .. } | Self::Ended { .. } => {
                ErrorKind::Unavailable
            }
            Self::Status {
                status: 408 | 425 | 429 | 500..,
                ..
            }
            | Self::Registry {
                status: 408 | 425 | 429 | 500..,
                ..
            } => ErrorKind::Unavailable,
            Self::Status { .. }
            | Self::Registry { .. }
            | Self::Credentials { .. }
            | Self::File { .. }
            | Self::NotAFile { .. }
            | Self::Client { .. }
            | Self::ClientCertificate { .. }
            | Self::Certificates { .. } => ErrorKind::Refused,
            Self::Artifact { .. }
            | Self::Digest { .. }
            | Self::Redirect { .. }
            | Self::Encoding { .. }
            | Self::TooLarge { .. }
            | Self::Gzip { .. }
            | Self::Nested { .. }
            | Self::Checksum { .. } => ErrorKind::Invalid,
        }
    }

    /// The same error with the artifact's name in it, where it only has a URL of its registry.
    pub(crate) fn on_the_way_to(self, location: &str) -> Self {
        match &self {
            Self::Client { .. }
            | Self::ClientCertificate { .. }
            | Self::Certificates { .. }
            | Self::Download { .. }
            | Self::Status { .. }
            | Self::Redirect { .. } => {}
            Self::Timeout { location: at, .. } | Self::TooLarge { location: at, .. }
                if at != location => {}
            _ => return self,
        }
        Self::Way {
            location: location.to_owned(),
            source: Arc::new(self),
        }
    }

    /// Whether the same request is worth sending again at once: a connection that broke, a server that is busy. Not
    /// what took its whole time already.
    pub(crate) fn is_worth_another_try(&self) -> bool {
        match self {
            Self::Download { source, .. } => !source.is_timeout() && self.is_transient(),
            Self::Status { status, .. } | Self::Registry { status, .. } => {
                *status != 501 && self.is_transient()
            }
            _ => false,
        }
    }

    /// Whether what came is not what was promised: bytes from before must not hide that.
    pub(crate) fn is_mismatch(&self) -> bool {
        match self {
            Self::Way { source, .. } => source.is_mismatch(),
            Self::Digest { .. } | Self::Checksum { .. } => true,
            _ => false,
        }
    }

    /// Whether the same request may work a little later, with nobody changing anything.
    pub fn is_transient(&self) -> bool {
        self.kind() == ErrorKind::Unavailable
    }
}

/// Words behind a status, if there are any.
fn said(message: &str) -> String {
    if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    }
}

/// Whether the server's certificate was refused: that does not pass by itself. By the words of the TLS library, since the
/// HTTP client has no type for it; the outermost error, which may name a URL, is not looked at.
pub(crate) fn is_untrusted(error: &dyn std::error::Error) -> bool {
    has_source(error, |words| words.contains("certificate"))
}

/// Whether the server is not content with the certificate of the client, or with none: TLS has an alert for each way, and
/// servers do not agree which one to send.
pub(crate) fn demands_certificate(error: &dyn std::error::Error) -> bool {
    has_source(error, |words| {
        words.contains("fatal alert")
            && (words.contains("Certificate") || words.contains("UnknownCA"))
    })
}

fn has_source(error: &dyn std::error::Error, fits: impl Fn(&str) -> bool) -> bool {
    let mut next = error.source();
    while let Some(error) = next {
        if fits(&error.to_string()) {
            return true;
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_places_are_no_words_of_tls() {
        let named = ArtifactError::Timeout {
            location: "https://certificate.example/m".to_owned(),
            limit: Duration::from_secs(1),
        };
        assert!(!is_untrusted(&named));
        let refused = std::io::Error::other("invalid peer certificate: UnknownIssuer");
        let refused = ArtifactError::File {
            path: "x".into(),
            source: Arc::new(refused),
        };
        assert!(is_untrusted(&refused) && !demands_certificate(&refused));
        for (alert, demanded) in [
            ("CertificateRequired", true),
            ("BadCertificate", true),
            ("UnknownCA", true),
            ("HandshakeFailure", false),
        ] {
            let alert = std::io::Error::other(format!("received fatal alert: {alert}"));
            let alert = ArtifactError::File {
                path: "x".into(),
                source: Arc::new(alert),
            };
            assert_eq!(demands_certificate(&alert), demanded, "{alert:?}");
        }
    }
}
