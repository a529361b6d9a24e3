//! The certificate that we make ourselves where none is given: kept in a Secret of our namespace, so that restarts and other
//! replicas go on with it, and replaced in time.
//!
//! The Secret says what is served. Whoever finds it gone, unusable or near its end puts a new set there, which still knows
//! the CA of the one before; all follow it. Two that do so at once agree on the first: a new one is only created, another
//! one only replaced in the state that was looked at. A set is told to the API server before it is served, see
//! [`crate::webhook`]. Deleting the Secret has a new one made.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use atc_api::{ResourceRef, names};
use atc_engine::error::chain;
use atc_engine::release::cluster::mapping::secrets;
use atc_engine::release::cluster::{ApplyOptions, ClusterError, ErrorKind, Expect, LiveMeta};
use atc_engine::release::object::{Object, ObjectError};
use axum_server::tls_rustls::RustlsConfig;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use crate::control::Control;
use crate::objects::{self, Only, Sink};
use crate::webhook::{self, Source, TlsSet};

mod made;

use made::RENEW_BEFORE;

/// It is looked so often whether the certificate is to be replaced. 1 hour: it is done 30 days ahead.
const CHECK: Duration = Duration::from_hours(1);
/// After a failure it is tried again so soon.
const RETRY: Duration = Duration::from_secs(30);
/// Two looks are at least so far apart, should somebody else write the Secret again and again.
const PAUSE: Duration = Duration::from_secs(1);
/// Tries to write a Secret that others write meanwhile.
const TRIES: usize = 5;

/// Bytes of the hash in the Secret's name: 4, no more than tells some hosts apart.
const HASH: usize = 4;

/// Keys of the Secret.
const CA: &str = "ca.crt";
const CERT: &str = "tls.crt";
const KEY: &str = "tls.key";

/// Why there is no certificate of our own.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It can't be made.
    #[error("can't make a certificate for {}", hosts.join(", "))]
    Make {
        /// For which names.
        hosts: Vec<String>,
        /// Why.
        #[source]
        source: rcgen::Error,
    },
    /// It would be good for nobody.
    #[error(
        "a certificate for {} would not be taken: these must be names of hosts or IP addresses", .0.join(", ")
    )]
    Unfit(Vec<String>),
    /// It can't be served.
    #[error("can't serve a certificate of our own making")]
    Serve(#[source] std::io::Error),
    /// The Secret that it is kept in can't be read or written.
    #[error("can't keep the certificate in Secret \"{secret}\"")]
    Cluster {
        /// Namespace and name.
        secret: String,
        /// Why.
        #[source]
        source: ClusterError,
    },
    /// What is to be written is no object.
    #[error("can't make the Secret for the certificate")]
    Object(#[source] ObjectError),
    /// Somebody else's Secret has that name.
    #[error(
        "Secret \"{0}\" is not ours, it has no label \"{label}: {word}\", so it is neither used nor overwritten: delete it or \
         give it another name, or give certificate files",
        label = names::LABEL_OUR_KIND, word = names::KIND_CERTIFICATE
    )]
    Foreign(String),
    /// Others write the Secret again and again.
    #[error("Secret \"{0}\" for the certificate changes each time that it is written")]
    Busy(String),
}

/// The certificate of our own making.
pub(crate) struct SelfMade {
    namespace: String,
    name: String,
    /// For which names and addresses it must be good.
    hosts: Vec<String>,
    /// What the Secret holds; until it was read, what was made at the start.
    latest: Mutex<Latest>,
    /// What the server serves.
    config: RustlsConfig,
    /// The Secret is to be looked at.
    look: Notify,
}

struct Latest {
    set: Arc<TlsSet>,
    /// Whether the Secret holds it.
    kept: bool,
}

impl std::fmt::Debug for SelfMade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SelfMade")
            .field("secret", &self.secret())
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

impl SelfMade {
    /// One for these names, kept in this Secret. Until that is read, one that was made just now is served, so that `/live`
    /// answers.
    pub(crate) async fn new(
        namespace: String,
        name: String,
        hosts: Vec<String>,
    ) -> Result<Self, CertificateError> {
        let set = make(&hosts, b"")?;
        if !set.is_good_for(&hosts, SystemTime::now()) {
            return Err(CertificateError::Unfit(hosts));
        }
        let config = set.config().await.map_err(CertificateError::Serve)?;
        let set = Arc::new(set);
        Ok(Self {
            namespace,
            name,
            hosts,
            latest: Mutex::new(Latest { set, kept: false }),
            config,
            look: Notify::new(),
        })
    }

    /// What the server serves.
    pub(crate) fn config(&self) -> RustlsConfig {
        self.config.clone()
    }

    /// What is to be served.
    pub(crate) fn latest(&self) -> Arc<TlsSet> {
        self.lock().set.clone()
    }

    fn is_kept(&self) -> bool {
        self.lock().kept
    }

    fn keep(&self, set: TlsSet) {
        *self.lock() = Latest {
            set: Arc::new(set),
            kept: true,
        };
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The Secret that it is kept in.
    pub(crate) fn reference(&self) -> ResourceRef {
        secrets().reference(&self.namespace, &self.name)
    }

    fn secret(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Whether it is good now and at that time: one that was made by a clock ahead of ours may be good only then.
    fn is_good(&self, set: &TlsSet, at: SystemTime) -> bool {
        set.is_good_for(&self.hosts, SystemTime::now()) && set.is_good_for(&self.hosts, at)
    }

    /// Whether what is to be served is not to be replaced for a while.
    fn lasts(&self) -> bool {
        self.is_good(&self.latest(), SystemTime::now() + RENEW_BEFORE)
    }
}

fn make(hosts: &[String], before: &[u8]) -> Result<TlsSet, CertificateError> {
    made::make(hosts, SystemTime::now(), before).map_err(|source| CertificateError::Make {
        hosts: hosts.to_vec(),
        source,
    })
}

/// The set in a Secret, if it is all there.
fn read(secret: &Value) -> Option<TlsSet> {
    let part = |key: &str| {
        let bytes = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    };
    Some(TlsSet::new(part(CA)?, part(CERT)?, part(KEY)?))
}

/// The Secret to write. One that is there keeps its type, which nobody can change.
fn written(namespace: &str, name: &str, set: &TlsSet, live: Option<&Value>) -> Value {
    let part = |bytes: &[u8]| STANDARD.encode(bytes);
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": live.and_then(|live| live["type"].as_str()).unwrap_or("Opaque"),
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": { (names::LABEL_OUR_KIND): names::KIND_CERTIFICATE },
        },
        "data": { (CA): part(set.ca()), (CERT): part(set.cert()), (KEY): part(set.key()) },
    })
}

/// Whether an atc made this Secret, or somebody for it.
fn is_ours(secret: &Value) -> bool {
    LiveMeta::of(secret).label(names::LABEL_OUR_KIND) == Some(names::KIND_CERTIFICATE)
}

/// The Secret's name for a host that is not that of a Service: two hosts have two. What tells hosts apart that are written alike
/// is a hash.
pub(crate) fn name_for_host(service: &str, host: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let word = host.replace(|c| !is_plain(c), "-");
    let name = format!("{service}-certificate-{}", word.trim_matches('-'));
    if word == host {
        return name;
    }
    let hash = Sha256::digest(host);
    let hash = hash.iter().take(HASH);
    let hash = hash.fold(0_u32, |sum, byte| (sum << 8) | u32::from(*byte));
    format!("{name}-{hash:08x}")
}

/// Agrees with whoever else serves: takes what the Secret holds, or puts there what was made. Once that has succeeded, what
/// is served follows it. Before the first configuration is written that names a CA.
pub(crate) async fn agree(control: &Arc<Control>) -> Result<(), CertificateError> {
    let Some(made) = control.certificates.clone().filter(|made| !made.is_kept()) else {
        return Ok(());
    };
    // One that is good now will do, though it be replaced soon: those who know it are told of the next one in time.
    settle(control, &made, SystemTime::now()).await?;
    let set = made.latest();
    set.serve(&made.config)
        .await
        .map_err(CertificateError::Serve)?;
    control.service.set_ca_bundle(set.ca().to_vec());
    let first = (*set).clone();
    let source = Source::Made(made.clone());
    tokio::spawn(webhook::follow(
        control.clone(),
        made.config(),
        source,
        first,
    ));
    tokio::spawn(watch(control.clone(), made.clone()));
    tokio::spawn(renew(control.clone(), made));
    Ok(())
}

/// Brings what the Secret holds and what is to be served together; what is not good at that time is replaced.
async fn settle(
    control: &Control,
    made: &SelfMade,
    good_at: SystemTime,
) -> Result<(), CertificateError> {
    let cluster = control.engine.cluster();
    let refused = |source| CertificateError::Cluster {
        secret: made.secret(),
        source,
    };
    for _ in 0..TRIES {
        let live = cluster.get(&secrets(), &made.namespace, &made.name).await;
        let live = live.map_err(refused)?;
        if live.as_ref().is_some_and(|live| !is_ours(live)) {
            return Err(CertificateError::Foreign(made.secret()));
        }
        let kept = live.as_ref().and_then(read);
        if let Some(set) = kept.as_ref().filter(|set| made.is_good(set, good_at)) {
            made.keep(set.clone());
            return Ok(());
        }
        let now = made.latest();
        let set = if made.is_kept() {
            // What is served goes on being known while the next one is told.
            make(&made.hosts, now.ca())?
        } else if let Some(kept) = &kept {
            make(&made.hosts, kept.ca())?
        } else {
            (*now).clone()
        };
        let object = written(&made.namespace, &made.name, &set, live.as_ref());
        let object = Object::try_from(object).map_err(CertificateError::Object)?;
        let done = match &live {
            None => cluster.create(&object, names::MANAGER_ATC).await.map(drop),
            Some(live) => {
                let live = LiveMeta::of(live);
                let options = ApplyOptions {
                    force: true,
                    manager: Some(names::MANAGER_ATC.to_owned()),
                    expect: Expect::Present {
                        uid: live.uid().to_owned(),
                        resource_version: live.resource_version().to_owned(),
                    },
                    ..ApplyOptions::default()
                };
                cluster.apply(&object, &options).await.map(drop)
            }
        };
        match done {
            Ok(()) => {
                tracing::info!(
                    secret = made.secret(),
                    hosts = made.hosts.join(", "),
                    "made a certificate"
                );
                made.keep(set);
                return Ok(());
            }
            Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::Stale) => {}
            Err(error) => return Err(refused(error)),
        }
    }
    Err(CertificateError::Busy(made.secret()))
}

/// Replaces the certificate in time, and looks after the Secret.
async fn renew(control: Arc<Control>, made: Arc<SelfMade>) {
    let mut pause = if made.lasts() { CHECK } else { Duration::ZERO };
    loop {
        tokio::select! {
            () = control.stop.cancelled() => return,
            () = made.look.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
        let until = SystemTime::now() + RENEW_BEFORE;
        pause = match settle(&control, &made, until).await {
            Ok(()) => CHECK,
            Err(error) => {
                tracing::warn!(error = chain(&error), "the certificate is not looked after");
                RETRY
            }
        };
        tokio::time::sleep(PAUSE).await;
    }
}

/// Follows the Secret: whatever happens to it is looked at.
async fn watch(control: Arc<Control>, made: Arc<SelfMade>) {
    let client = control.engine.cluster().client().clone();
    let sink = SecretSink(made.clone());
    let only = Only::Named {
        namespace: &made.namespace,
        name: &made.name,
    };
    objects::run(client, secrets(), only, &sink, control.stop.clone()).await;
}

struct SecretSink(Arc<SelfMade>);

impl Sink for SecretSink {
    fn upsert(&self, _: ResourceRef, object: Value) {
        if read(&object).is_none_or(|set| set != *self.0.latest()) {
            self.0.look.notify_one();
        }
    }

    fn remove(&self, _: &ResourceRef) {
        self.0.look.notify_one();
    }

    fn synced(&self) {
        // It may have gone while nobody watched.
        self.0.look.notify_one();
    }

    fn alive(&self, _: Instant) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_holds_a_whole_set_or_none() {
        let set = make(&["atc.n.svc".to_owned()], b"").expect("a set");
        let secret = written("n", "s", &set, None);
        assert!(is_ours(&secret) && secret["type"] == "Opaque");
        let typed = json!({ "type": "kubernetes.io/tls" });
        assert!(!is_ours(&typed));
        assert_eq!(written("n", "s", &set, Some(&typed))["type"], typed["type"]);
        assert!(read(&secret).is_some_and(|found| found == set));
        for key in [CA, CERT, KEY] {
            let mut half = secret.clone();
            half["data"][key] = Value::Null;
            assert!(read(&half).is_none(), "{key}");
            half["data"][key] = "?".into();
            assert!(read(&half).is_none(), "{key}");
        }
        assert!(read(&Value::Null).is_none());
    }

    #[test]
    fn hosts_that_are_written_alike_have_secrets_of_their_own() {
        let name = |host: &str| name_for_host("atc", host);
        assert_eq!(name("localhost"), "atc-certificate-localhost");
        assert_eq!(name("a-b"), "atc-certificate-a-b");
        let hosts = ["a-b", "a.b", "1::2", "1--2", "1..2", "::1", "1"];
        let names: std::collections::BTreeSet<_> = hosts.map(name).into();
        assert_eq!(names.len(), hosts.len(), "{names:?}");
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(names.iter().all(|name| name.chars().all(is_name)));
    }

    #[tokio::test]
    async fn a_set_that_is_not_good_yet_is_not_good_later_either() {
        let hosts = vec!["localhost".to_owned()];
        let ours = SelfMade::new("n".into(), "s".into(), hosts.clone())
            .await
            .expect("one");
        let at = |then: SystemTime| made::make(&hosts, then, b"").expect("a set");
        let now = SystemTime::now();
        let day = Duration::from_hours(24);
        let until = now + RENEW_BEFORE;
        assert!(ours.is_good(&at(now), until));
        assert!(!ours.is_good(&at(now + 2 * day), until));
        assert!(!ours.is_good(&at(now - 80 * day), until));
    }

    #[tokio::test]
    async fn what_no_certificate_can_be_good_for_is_refused() {
        let new = |host: &str| SelfMade::new("n".into(), "s".into(), vec![host.to_owned()]);
        assert!(new("localhost").await.is_ok());
        assert!(new("::1").await.is_ok());
        for bad in ["", "a b"] {
            let error = new(bad).await.expect_err(bad).to_string();
            assert!(error.contains("names of hosts"), "{error}");
        }
    }
}
