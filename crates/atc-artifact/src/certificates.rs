//! Client certificates and CAs for single hosts, in the layout of docker: a folder `HOST` or `HOST:PORT` with `*.crt` (CAs
//! that are trusted beside the system's), and `NAME.cert` with `NAME.key` (what we show who we are with).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use reqwest::{Certificate, ClientBuilder, Identity};
use sha2::{Digest as _, Sha256};
use url::Url;

/// How large all files for a host may be together: 1 MiB, as a Secret may be.
pub const MAX_CERTIFICATE_BYTES: u64 = 1 << 20;

/// Files of a host's folder that are looked at: 100.
pub const MAX_CERTIFICATE_FILES: usize = 100;

/// Where client certificates and CAs for single hosts lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Certificates {
    /// Nowhere.
    #[default]
    None,
    /// Where docker and podman look for them: `$DOCKER_CONFIG/certs.d` or else `~/.docker/certs.d`,
    /// `~/.config/containers/certs.d`, `/etc/containers/certs.d`, `/etc/docker/certs.d`. The first of these that has a
    /// folder for the host counts.
    User,
    /// In this folder.
    Folder(PathBuf),
}

/// Why the files for a host cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// They could not be read.
    #[error("cannot read '{}'", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// More than any host needs.
    #[error("'{}' holds more than {MAX_CERTIFICATE_FILES} files or {MAX_CERTIFICATE_BYTES} bytes: give one with certificates only", path.display())]
    TooMuch {
        /// The folder.
        path: PathBuf,
    },
    /// A certificate without its key.
    #[error("there is no key '{}' for the client certificate '{}' (CAs end with .crt)", path.with_extension("key").display(), path.display())]
    NoKey {
        /// The certificate.
        path: PathBuf,
    },
    /// A key without its certificate.
    #[error("there is no client certificate '{}' for the key '{}'", path.with_extension("cert").display(), path.display())]
    NoCertificate {
        /// The key.
        path: PathBuf,
    },
    /// Not PEM, or of something else.
    #[error("'{}' holds no certificate in PEM", path.display())]
    NotPem {
        /// The file.
        path: PathBuf,
    },
    /// Not a pair.
    #[error("'{}' and the key beside it are no certificate and its key in PEM, without a password", path.display())]
    NoPair {
        /// The certificate.
        path: PathBuf,
    },
}

/// What lies there for one host. It may hold a private key, and is not printed.
pub(crate) struct HostFiles {
    /// Tells it from others.
    pub(crate) digest: [u8; 32],
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Certificates {
    /// What lies there for the host of this URL; `None` if nothing does.
    pub(crate) fn find(&self, url: &Url) -> Result<Option<HostFiles>, CertificateError> {
        let names = names(url);
        for folder in self.folders(|name| std::env::var_os(name)) {
            for name in &names {
                let folder = folder.join(name);
                if folder.is_dir() {
                    return HostFiles::read(&folder).map(Some);
                }
            }
        }
        Ok(None)
    }

    fn folders(&self, env: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
        let set = |name: &str| {
            let value = env(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        match self {
            Self::None => Vec::new(),
            Self::Folder(folder) => vec![folder.clone()],
            Self::User => {
                let home = set("HOME");
                let docker = home.clone().map(|home| home.join(".docker"));
                let containers = home.map(|home| home.join(".config/containers/certs.d"));
                let own = set("DOCKER_CONFIG")
                    .or(docker)
                    .map(|own| own.join("certs.d"));
                let system = ["/etc/containers/certs.d", "/etc/docker/certs.d"];
                let own = own.into_iter().chain(containers);
                own.chain(system.map(PathBuf::from)).collect()
            }
        }
    }
}

/// How a host's folder may be called: with its port, and without the usual one.
fn names(url: &Url) -> Vec<String> {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Vec::new();
    };
    // A folder is never left by what a URL calls a host.
    if url.scheme() != "https" || host.trim_matches('.').is_empty() || host.contains('/') {
        return Vec::new();
    }
    let with_port = format!("{host}:{port}");
    match url.port() {
        Some(_) => vec![with_port],
        None => vec![host.to_owned(), with_port],
    }
}

impl HostFiles {
    fn read(folder: &Path) -> Result<Self, CertificateError> {
        let too_much = || CertificateError::TooMuch {
            path: folder.to_owned(),
        };
        let mut files = BTreeMap::new();
        let mut left = MAX_CERTIFICATE_BYTES;
        let entries = fs::read_dir(folder).map_err(|source| read_error(folder, source))?;
        for (nth, entry) in entries.enumerate() {
            let path = entry.map_err(|source| read_error(folder, source))?.path();
            if nth >= MAX_CERTIFICATE_FILES {
                return Err(too_much());
            }
            let ends = |end: &str| path.extension().is_some_and(|extension| extension == end);
            if !(ends("crt") || ends("cert") || ends("key")) || !path.is_file() {
                continue;
            }
            let mut content = Vec::new();
            let file = File::open(&path).map_err(|source| read_error(&path, source))?;
            file.take(left + 1)
                .read_to_end(&mut content)
                .map_err(|source| read_error(&path, source))?;
            left = left
                .checked_sub(content.len() as u64)
                .ok_or_else(too_much)?;
            files.insert(path, content);
        }
        let mut hash = Sha256::new();
        for (path, content) in &files {
            hash.update(Sha256::digest(path.as_os_str().as_encoded_bytes()));
            hash.update(Sha256::digest(content));
        }
        let digest = hash.finalize().into();
        Ok(Self { digest, files })
    }

    /// A client that shows the certificate and trusts the CAs. Of several pairs the first by name counts.
    pub(crate) fn apply(
        &self,
        mut builder: ClientBuilder,
    ) -> Result<ClientBuilder, CertificateError> {
        let ending = |end: &'static str| {
            let files = self.files.iter();
            files
                .filter(move |(path, _)| path.extension().is_some_and(|extension| extension == end))
        };
        for (path, _) in ending("key") {
            if !self.files.contains_key(&path.with_extension("cert")) {
                return Err(CertificateError::NoCertificate { path: path.clone() });
            }
        }
        let mut identity = None;
        for (path, certificate) in ending("cert") {
            let Some(key) = self.files.get(&path.with_extension("key")) else {
                return Err(CertificateError::NoKey { path: path.clone() });
            };
            let pair = [certificate, &b"\n"[..], key].concat();
            let pair = Identity::from_pem(&pair)
                .map_err(|_| CertificateError::NoPair { path: path.clone() })?;
            identity.get_or_insert(pair);
        }
        for (path, bundle) in ending("crt") {
            let not_pem = || CertificateError::NotPem { path: path.clone() };
            let all = Certificate::from_pem_bundle(bundle).map_err(|_| not_pem())?;
            if all.is_empty() {
                return Err(not_pem());
            }
            builder = builder.tls_certs_merge(all);
        }
        Ok(match identity {
            Some(identity) => builder.identity(identity),
            None => builder,
        })
    }

    /// The first pair's certificate, for who says that it does not fit its key.
    pub(crate) fn pair(&self) -> Option<&Path> {
        let ends = |path: &&PathBuf| {
            path.extension()
                .is_some_and(|extension| extension == "cert")
        };
        self.files.keys().find(ends).map(PathBuf::as_path)
    }
}

fn read_error(path: &Path, source: io::Error) -> CertificateError {
    CertificateError::Read {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests;
