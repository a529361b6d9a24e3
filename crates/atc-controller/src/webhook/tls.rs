//! The certificate that we serve and the CAs by which it is known, followed while the process runs.
//!
//! They come from three files, or are of our own making. The three are taken as one set, and only where they belong together:
//! a set that is half written keeps the last good one. Where the CA changes, both CAs are told to the API server first. The new
//! certificate is served one look after all that asks us was seen to name the new CA, so that reviews go on in between.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use atc_engine::error::chain;
use axum_server::tls_rustls::RustlsConfig;
use rustls::CertificateError::{
    Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
    NotValidYetContext,
};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem};
use rustls::server::VerifierBuilderError;
use rustls::sign::CertifiedKey;
use rustls::{Error, RootCertStore};

use super::told;
use crate::certificates::SelfMade;
use crate::control::Control;

/// The files are looked at so often: the kubelet swaps a link, which no watch of the file itself shows. 5 s: the API server
/// takes up what it is told within that.
const RELOAD: Duration = Duration::from_secs(5);
/// So many looks go by at most until a new CA is seen to be known. 6, which is 30 s: an Airway that can't be brought to say it
/// must not keep a certificate that ends.
const PATIENCE: u32 = 6;

/// Where the certificate and its key are.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// PEM of the CA that clients trust.
    pub ca: PathBuf,
    /// PEM of the certificate chain.
    pub cert: PathBuf,
    /// PEM of its key.
    pub key: PathBuf,
}

/// Whether there is a certificate in a CA file. Without one the API server could not be told whom to trust.
pub(crate) fn has_certificate(pem: &[u8]) -> bool {
    CertificateDer::pem_slice_iter(pem)
        .next()
        .is_some_and(|first| first.is_ok())
}

/// Where the certificate comes from.
pub(crate) enum Source {
    /// Files that somebody else looks after.
    Files(TlsFiles),
    /// We make it.
    Made(Arc<SelfMade>),
}

impl Source {
    /// The certificate of our own making, if it is one.
    pub(crate) fn made(&self) -> Option<Arc<SelfMade>> {
        match self {
            Self::Files(_) => None,
            Self::Made(made) => Some(made.clone()),
        }
    }

    async fn read(&self) -> std::io::Result<TlsSet> {
        match self {
            Self::Files(files) => TlsSet::read(files).await,
            Self::Made(made) => Ok((*made.latest()).clone()),
        }
    }

    /// What causes an edit of the CA, for the log.
    fn word(&self) -> &'static str {
        match self {
            Self::Files(_) => "the CA file",
            Self::Made(_) => "the CA",
        }
    }
}

/// CAs, a certificate chain and its key, all PEM. No `Debug`: one of them is a key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TlsSet {
    ca: Vec<u8>,
    cert: Vec<u8>,
    key: Vec<u8>,
}

/// Why a set of files is not taken.
#[derive(Debug, thiserror::Error)]
enum Misfit {
    #[error("{0} can't be read as PEM")]
    Unreadable(&'static str, #[source] pem::Error),
    #[error("the key does not belong to the certificate")]
    Key(#[source] Error),
    #[error("the CA is not usable")]
    Roots(#[source] VerifierBuilderError),
    #[error("the certificate is not known by the CA")]
    Ca(#[source] Error),
}

impl TlsSet {
    /// Of these texts.
    pub(crate) fn new(ca: String, cert: String, key: String) -> Self {
        Self {
            ca: ca.into_bytes(),
            cert: cert.into_bytes(),
            key: key.into_bytes(),
        }
    }

    /// The CAs.
    pub(crate) fn ca(&self) -> &[u8] {
        &self.ca
    }

    /// The certificate chain.
    pub(crate) fn cert(&self) -> &[u8] {
        &self.cert
    }

    /// Its key.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Has a server serve it from now on.
    pub(crate) async fn serve(&self, config: &RustlsConfig) -> std::io::Result<()> {
        let (cert, key) = (self.cert.clone(), self.key.clone());
        config.reload_from_pem(cert, key).await
    }

    /// Whether whoever trusts its CAs, and no others, takes it for each of these hosts at that time.
    pub(crate) fn is_good_for(&self, hosts: &[String], at: SystemTime) -> bool {
        let since = at.duration_since(SystemTime::UNIX_EPOCH);
        let at = UnixTime::since_unix_epoch(since.unwrap_or_default());
        self.check().is_ok()
            && hosts.iter().all(|host| {
                let name = ServerName::try_from(host.as_str());
                name.is_ok_and(|name| matches!(self.verify(&name, at), Ok(Ok(()))))
            })
    }

    #[cfg(test)]
    pub(crate) fn with_ca_of(&self, other: &Self) -> Self {
        let mut set = self.clone();
        set.ca.clone_from(&other.ca);
        set
    }

    /// Reads the files.
    pub(super) async fn read(files: &TlsFiles) -> std::io::Result<Self> {
        Ok(Self {
            ca: tokio::fs::read(&files.ca).await?,
            cert: tokio::fs::read(&files.cert).await?,
            key: tokio::fs::read(&files.key).await?,
        })
    }

    /// What a server needs of it.
    pub(crate) async fn config(&self) -> std::io::Result<RustlsConfig> {
        RustlsConfig::from_pem(self.cert.clone(), self.key.clone()).await
    }

    /// Whether the three belong together. For whom the certificate is valid, and until when, is not asked here: another
    /// set would not be better for it.
    fn check(&self) -> Result<(), Misfit> {
        let chain = certificates("the certificate", &self.cert)?;
        let Some(own) = chain.first().cloned() else {
            return Err(Misfit::Ca(Error::NoCertificatesPresented));
        };
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| Misfit::Unreadable("the key", error))?;
        let provider = default_provider();
        CertifiedKey::from_der(chain, key, &provider).map_err(Misfit::Key)?;
        if certificates("the CA", &self.ca)?.contains(&own) {
            // Signed by itself, and trusted as it is.
            return Ok(());
        }
        let name = ServerName::IpAddress(std::net::Ipv4Addr::LOCALHOST.into());
        match self.verify(&name, UnixTime::now())? {
            Ok(())
            | Err(Error::InvalidCertificate(
                NotValidForName
                | NotValidForNameContext { .. }
                | Expired
                | ExpiredContext { .. }
                | NotValidYet
                | NotValidYetContext { .. },
            )) => Ok(()),
            Err(error) => Err(Misfit::Ca(error)),
        }
    }

    /// Whether whoever trusts the CAs takes the certificate for that host at that time.
    fn verify(&self, name: &ServerName<'_>, at: UnixTime) -> Result<Result<(), Error>, Misfit> {
        let chain = certificates("the certificate", &self.cert)?;
        let cas = certificates("the CA", &self.ca)?;
        let Some((own, others)) = chain.split_first() else {
            return Err(Misfit::Ca(Error::NoCertificatesPresented));
        };
        let provider = default_provider();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(cas);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.into())
            .build()
            .map_err(Misfit::Roots)?;
        let answer = verifier.verify_server_cert(own, others, name, &[], at);
        Ok(answer.map(drop))
    }
}

fn certificates(what: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Misfit> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    all.map_err(|error| Misfit::Unreadable(what, error))
}

/// What is to be done about a set.
#[derive(Default)]
struct Act {
    /// CAs to tell the API server.
    bundle: Option<Vec<u8>>,
    /// Serve the current set.
    serve: bool,
}

/// Which set is served, and which one comes.
struct Rotation {
    current: TlsSet,
    /// Its CA has been told, it is not served yet.
    coming: Option<Coming>,
}

/// A set that is served as soon as its CA is known.
struct Coming {
    set: TlsSet,
    /// Since it was told.
    looks: u32,
    /// All that asks us named its CA at the last look.
    known: bool,
}

impl Coming {
    /// Whether it is to be served: a look after its CA was seen to be known, or if that takes too long.
    fn look(&mut self, known: bool) -> bool {
        let served = self.known || self.looks >= PATIENCE;
        if served && !self.known {
            tracing::warn!(
                "not all webhook configurations and CRDs name the new CA yet; its certificate is served all the same"
            );
        }
        self.known = known;
        self.looks += 1;
        served
    }
}

impl Rotation {
    /// Whether this is the set that comes.
    fn awaits(&self, read: &TlsSet) -> bool {
        self.coming
            .as_ref()
            .is_some_and(|coming| coming.set == *read)
    }

    /// Takes what the files hold now. `known`: all that asks us names the CA of the set that comes.
    fn next(&mut self, read: TlsSet, known: bool) -> Result<Act, Misfit> {
        if read == self.current {
            let back = self.coming.take().map(|_| read.ca);
            return Ok(Act {
                bundle: back,
                serve: false,
            });
        }
        read.check()?;
        let coming = self.coming.as_mut();
        let coming = coming.filter(|coming| coming.set == read && read.ca != self.current.ca);
        let is_due = coming.map(|coming| coming.look(known));
        if is_due == Some(false) {
            return Ok(Act::default());
        }
        if is_due.is_some() || read.ca == self.current.ca {
            let bundle = self.coming.take().map(|_| read.ca.clone());
            self.current = read;
            return Ok(Act {
                bundle,
                serve: true,
            });
        }
        let bundle = [&*read.ca, b"\n", &*self.current.ca].concat();
        self.coming = Some(Coming {
            set: read,
            looks: 0,
            known: false,
        });
        Ok(Act {
            bundle: Some(bundle),
            serve: false,
        })
    }
}

/// Follows what is to be served until the process stops. What is not usable is said once.
pub(crate) async fn follow(
    control: Arc<Control>,
    config: RustlsConfig,
    source: Source,
    first: TlsSet,
) {
    if let Err(misfit) = first.check() {
        tracing::warn!(
            error = chain(&misfit),
            "certificate, key and CA do not belong together: the API server will refuse to ask for reviews"
        );
    }
    let mut rotation = Rotation {
        current: first,
        coming: None,
    };
    let mut said = None;
    loop {
        tokio::select! {
            () = control.stop.cancelled() => return,
            () = tokio::time::sleep(RELOAD) => {}
        }
        let trouble = match source.read().await {
            Ok(read) => {
                let known = rotation.awaits(&read) && is_known(&control, &read).await;
                match rotation.next(read, known) {
                    Ok(act) => {
                        let done = perform(&control, &config, &rotation, act, source.word()).await;
                        done.err()
                    }
                    Err(misfit) => Some(chain(&misfit)),
                }
            }
            Err(error) => Some(chain(&error)),
        };
        if let Some(error) = trouble.as_ref().filter(|_| trouble != said) {
            tracing::warn!(
                error,
                "the new certificate is not usable, keeping the one before"
            );
        }
        said = trouble;
    }
}

/// Whether all that asks us names the CAs of a set. What can't be seen is not known.
async fn is_known(control: &Control, set: &TlsSet) -> bool {
    let why = match tokio::time::timeout(RELOAD, told::is_told(control, &set.ca)).await {
        Ok(Ok(told)) => return told,
        Ok(Err(error)) => chain(&error),
        Err(_) => "the API server takes its time".to_owned(),
    };
    tracing::warn!(why, "can't see whether the new CA is known");
    false
}

async fn perform(
    control: &Control,
    config: &RustlsConfig,
    rotation: &Rotation,
    act: Act,
    word: &str,
) -> Result<(), String> {
    if act.serve {
        let taken = rotation.current.serve(config).await;
        taken.map_err(|error| chain(&error))?;
        tracing::info!("took up a new certificate");
    }
    if let Some(bundle) = act.bundle {
        tracing::info!("the CAs changed, telling the API server");
        control.tell_ca(bundle, word);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
