//! Starts everything in order, keeps it running, ends it.

use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use atc_api::ResourceRef;
use atc_engine::artifact::{Certificates, Credentials, ModulePolicy, PullSecret};
use atc_engine::disposition::{Disposition, backoff};
use atc_engine::error::chain;
use atc_engine::release::cluster::{
    ApplyOptions, Cluster, ClusterError, ClusterOptions, EstablishError,
};
use atc_engine::release::object::{Object, ObjectError};
use atc_engine::watch::{FaultKind, WatchHealth, WatchHub};
use atc_engine::{Engine, EngineOptions};
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::airway;
use crate::bootstrap::{self, WebhookService};
use crate::certificates::{self, CertificateError, SelfMade};
use crate::control::Control;
use crate::flights;
use crate::health::{Health, SILENCE};
use crate::hooks::{self, HookError, Hooks};
use crate::instances;
use crate::kinds::Kinds;
use crate::leftovers;
use crate::metrics::Metrics;
use crate::objects::{self, Only, Sink};
use crate::own_crds::OwnCrds;
use crate::owner::Owner;
use crate::protect::{self, Protected};
use crate::pull_secret::{self, Followed};
use crate::queue::{Cause, Limits, SharedQueue, Work};
use crate::readiness;
use crate::review;
use crate::webhook::{self, Source, TlsFiles};
use crate::webhook_url::WebhookUrl;

/// How a controller is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Host and port of the API server, for messages.
    pub server: String,
    /// HTTPS port.
    pub port: u16,
    /// Runs at once; half of them for one Airway at most.
    pub concurrency: usize,
    /// Folder for modules, fetched and precompiled.
    pub cache_dir: PathBuf,
    /// Certificate files; without them we make a certificate ourselves and keep it in a Secret of the Service's namespace.
    pub tls: Option<TlsFiles>,
    /// Name of the Service through which the API server reaches us.
    pub service_name: String,
    /// Its namespace, which is ours, also where there is no Service.
    pub service_namespace: String,
    /// Its port.
    pub service_port: u16,
    /// Where the API server reaches us instead, if we run outside of the cluster.
    pub webhook_url: Option<WebhookUrl>,
    /// Which modules may run.
    pub policy: ModulePolicy,
    /// Whether ConfigMaps may say when objects are ready.
    pub custom_readiness: bool,
    /// Name of the Secret with the credentials for registries, in the Service's namespace, if there is one.
    pub pull_secret: Option<String>,
    /// Folder with client certificates and CAs for single registries.
    pub registry_certificates: Option<PathBuf>,
}

/// Why a controller ended.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The CA file can't be read.
    #[error("can't read the CA file \"{}\"", path.display())]
    Ca {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The CA file has no certificate.
    #[error(
        "the CA file \"{}\" has no certificate in PEM: the API server could not be told whom to trust",
        path.display()
    )]
    NoCa {
        /// Which.
        path: PathBuf,
    },
    /// There is no certificate of our own.
    #[error("there is no certificate to serve")]
    Certificate(#[source] CertificateError),
    /// The Service has no name.
    #[error("name and namespace of the Service (SVC_NAME, SVC_NAMESPACE) must not be empty")]
    NoService,
    /// The engine can't be set up.
    #[error("can't start the engine")]
    Engine(#[source] atc_engine::EngineError),
    /// The HTTPS server ended.
    #[error("can't serve HTTPS on port {port}")]
    Server {
        /// Which.
        port: u16,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Requests in flight to the API server: beyond 16 the client's own cost grows and nothing gets faster (measured).
const IN_FLIGHT: usize = 16;
/// How long one of our own CRDs may take to be served before the installation is tried again.
const ESTABLISH: Duration = Duration::from_secs(30);
/// A removal waits so long in its turn, then comes back: whoever holds its objects up holds up no other instance.
const PRUNE_WAIT: Duration = Duration::from_secs(5);
/// What is running when the process stops may take so long to end.
const DRAIN: Duration = Duration::from_secs(5);
/// The webhooks of ours are deleted within this time at the end, or stay.
const FAREWELL: Duration = Duration::from_secs(3);

/// Runs a controller until `stop` is cancelled.
///
/// # Errors
/// What keeps it from running at all; what may pass is waited for, and said by `/ready`.
pub async fn run(
    client: kube::Client,
    settings: Settings,
    stop: CancellationToken,
) -> Result<(), AppError> {
    if settings.service_name.is_empty() || settings.service_namespace.is_empty() {
        return Err(AppError::NoService);
    }
    let (ca, source) = match settings.tls.clone() {
        Some(files) => (given_ca(&files).await?, Source::Files(files)),
        // The CA is known when the Secret was read.
        None => (Vec::new(), Source::Made(self_made(&settings).await?)),
    };
    let cluster = Cluster::new(
        client.clone(),
        ClusterOptions {
            in_flight: IN_FLIGHT,
            ..ClusterOptions::default()
        },
    );
    let pull_secret = PullSecret::default();
    let options = EngineOptions {
        credentials: match settings.pull_secret {
            Some(_) => Credentials::Secret(pull_secret.clone()),
            None => Credentials::Anonymous,
        },
        certificates: settings
            .registry_certificates
            .map_or(Certificates::None, Certificates::Folder),
        cache_dir: Some(settings.cache_dir.clone()),
        policy: settings.policy.clone(),
        evaluations: settings.concurrency,
        prune_wait: PRUNE_WAIT,
        reserved: source
            .made()
            .map(|made| made.reference())
            .into_iter()
            .chain(bootstrap::own_objects())
            .collect(),
        ..EngineOptions::default()
    };
    let engine = Engine::new(cluster.clone(), options).map_err(AppError::Engine)?;
    engine
        .readiness()
        .share(Some(settings.service_namespace.clone()));
    let service = WebhookService {
        name: settings.service_name.clone(),
        namespace: settings.service_namespace.clone(),
        port: settings.service_port,
        url: settings.webhook_url.clone(),
        ca_bundle: RwLock::new(ca),
        username: std::sync::OnceLock::new(),
    };
    let queue = SharedQueue::new(Limits::new(settings.concurrency));
    let hub = WatchHub::new(client);
    let control = Arc::new(Control {
        metrics: Metrics::new(engine.clone(), queue.clone(), hub.clone()),
        engine,
        hub,
        queue,
        kinds: Kinds::default(),
        service,
        certificates: source.made(),
        hooks: Hooks::default(),
        own_crds: OwnCrds::default(),
        health: Health::default(),
        listed: Notify::new(),
        protected: Protected::default(),
        stop: stop.clone(),
    });
    let mut server = tokio::spawn(webhook::serve(control.clone(), settings.port, source));
    let worker = tokio::spawn(work(control.clone()));
    tokio::spawn(wake(control.clone()));
    tokio::spawn(leftovers::follow(control.clone()));
    let credentials = settings.pull_secret.map(|name| Followed {
        namespace: settings.service_namespace,
        name,
        secret: pull_secret,
    });
    tokio::spawn(start(
        control.clone(),
        settings.server,
        settings.custom_readiness,
        credentials,
    ));

    let ended = tokio::select! {
        () = stop.cancelled() => None,
        ended = &mut server => Some(ended),
    };
    stop.cancel();
    let _ = tokio::time::timeout(DRAIN, worker).await;
    let _ = tokio::time::timeout(FAREWELL, hooks::farewell(&control)).await;
    if ended.is_none() {
        // Reviews that are under way get their answer.
        let _ = tokio::time::timeout(FAREWELL, server).await;
    }
    match ended {
        Some(Ok(Err(source))) => Err(AppError::Server {
            port: settings.port,
            source,
        }),
        _ => Ok(()),
    }
}

/// The CAs that are given.
async fn given_ca(files: &TlsFiles) -> Result<Vec<u8>, AppError> {
    let path = || files.ca.clone();
    let read = tokio::fs::read(&files.ca).await;
    let ca = read.map_err(|source| AppError::Ca {
        path: path(),
        source,
    })?;
    if webhook::has_certificate(&ca) {
        Ok(ca)
    } else {
        Err(AppError::NoCa { path: path() })
    }
}

/// A certificate of our own making, for the names by which the API server reaches us.
async fn self_made(settings: &Settings) -> Result<Arc<SelfMade>, AppError> {
    let (service, namespace) = (&settings.service_name, &settings.service_namespace);
    let (mut hosts, secret) = match &settings.webhook_url {
        Some(url) => {
            // Another URL is another Secret: two that differ in it do not replace each other's.
            let host = url.host();
            let secret = certificates::name_for_host(service, &host);
            (vec![host], secret)
        }
        None => (
            vec![
                format!("{service}.{namespace}.svc"),
                format!("{service}.{namespace}"),
                service.clone(),
            ],
            format!("{service}-certificate"),
        ),
    };
    if !hosts.iter().any(|host| host == "localhost") {
        hosts.push("localhost".to_owned());
    }
    let made = SelfMade::new(namespace.clone(), secret, hosts).await;
    made.map(Arc::new).map_err(AppError::Certificate)
}

/// Installs what must be there, however long it takes, then watches Airways.
async fn start(
    control: Arc<Control>,
    server: String,
    custom_readiness: bool,
    credentials: Option<Followed>,
) {
    let mut failures = 0;
    while let Err(error) = install(&control).await {
        failures += 1;
        let mut why = chain(&error);
        if is_unreachable(&error) {
            let hint = format!(
                "; the API server is looked for at {server}: check that it runs there, and can be reached from here"
            );
            why.push_str(&hint);
        }
        tracing::warn!(error = why, "can't install CRDs and webhooks, trying again");
        control.health.installing(Some(why));
        let pause = backoff(failures, rand::random()).min(Duration::from_secs(5));
        tokio::select! {
            () = control.stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
    control.health.installing(None);
    tracing::info!("CRDs and webhooks are installed");
    tokio::spawn(protect::settle(control.clone()));
    let sink = AirwaySink {
        control: control.clone(),
    };
    if let Some(followed) = credentials {
        // The first modules are pulled with it.
        pull_secret::begin(&control, followed).await;
    }
    if custom_readiness {
        // What instances are told first must not be taken back a moment later.
        readiness::begin(&control).await;
    }
    flights::serve(&control);
    let client = control.engine.cluster().client().clone();
    objects::run(
        client,
        airway::mapping(),
        Only::All,
        &sink,
        control.stop.clone(),
    )
    .await;
}

/// Why our own CRDs and webhooks are not there.
#[derive(Debug, thiserror::Error)]
enum InstallError {
    #[error("there is no certificate to be asked by")]
    Certificate(#[source] CertificateError),
    #[error("can't ask the API server who we are")]
    Identity(#[source] review::ReviewError),
    #[error("can't write a CustomResourceDefinition of ours as JSON")]
    Write(#[source] serde_json::Error),
    #[error("can't make an object of ours")]
    Object(#[source] ObjectError),
    #[error("can't install it")]
    Cluster(#[source] ClusterError),
    #[error("our kinds are not served")]
    Served(#[source] EstablishError),
    #[error("our webhooks do not stand")]
    Hooks(#[source] HookError),
}

/// Whether there was no connection, or it broke.
fn is_unreachable(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(cause) = next {
        let kube = cause.downcast_ref::<kube::Error>();
        if let Some(kube::Error::Service(_) | kube::Error::HyperError(_)) = kube {
            return true;
        }
        if let Some(ClusterError::Unreachable { .. }) = cause.downcast_ref() {
            return true;
        }
        next = cause.source();
    }
    false
}

async fn install(control: &Arc<Control>) -> Result<(), InstallError> {
    let cluster = control.engine.cluster();
    if control.service.username.get().is_none() {
        let name = review::own_name(cluster.client().clone())
            .await
            .map_err(InstallError::Identity)?;
        let _ = control.service.username.set(name);
    }
    let options = ApplyOptions {
        force: true,
        ..ApplyOptions::default()
    };
    let agreed = certificates::agree(control).await;
    agreed.map_err(InstallError::Certificate)?;
    hooks::begin(control).await.map_err(InstallError::Hooks)?;
    // Before there can be a Flight that names an account, it is asked who may.
    let accounts = control.service.of_accounts();
    let accounts = hooks::bring(control, accounts).await;
    accounts.map_err(InstallError::Hooks)?;
    let crds = bootstrap::crds().map_err(InstallError::Write)?;
    for value in crds {
        let object = Object::try_from(value).map_err(InstallError::Object)?;
        cluster
            .apply(&object, &options)
            .await
            .map_err(InstallError::Cluster)?;
        cluster
            .wait_established(object.name(), ESTABLISH)
            .await
            .map_err(InstallError::Served)?;
    }
    // The other webhooks fail closed for all: they come only when our kinds are served.
    hooks::stand(control).await.map_err(InstallError::Hooks)?;
    Ok(())
}

struct AirwaySink {
    control: Arc<Control>,
}

impl Sink for AirwaySink {
    fn upsert(&self, reference: ResourceRef, object: Value) {
        let name: Arc<str> = reference.name.as_str().into();
        if self.control.kinds.upsert(&name, object) {
            self.control
                .edited(&Owner::Airway(name), reference.to_string());
        }
    }

    fn remove(&self, reference: &ResourceRef) {
        let owner = Owner::Airway(reference.name.as_str().into());
        if let Some(kind) = self.control.kinds.remove(&reference.name) {
            kind.stop();
            for target in kind.references() {
                let instance = Owner::Instance {
                    airway: reference.name.as_str().into(),
                    target,
                };
                protect::forget(&self.control, &instance);
                self.control.queue.forget(&instance);
                self.control.hub.forget(&instance);
            }
        }
        self.control.queue.forget(&owner);
        self.control.hub.forget(&owner);
        self.control.metrics.forget(&reference.name);
    }

    fn synced(&self) {
        self.control.health.airways_listed();
    }

    fn alive(&self, at: Instant) {
        self.control.health.airways_alive(at);
    }
}

/// Turns wakes of the watches into work.
async fn wake(control: Arc<Control>) {
    loop {
        let wake = tokio::select! {
            () = control.stop.cancelled() => return,
            wake = control.hub.next() => wake,
        };
        let cause = Cause::of_wake(&wake, &control.hub, |changed| {
            control.is_own(&wake.owner, changed)
        });
        control.queue.push(&wake.owner, wake.effect, cause);
    }
}

/// Runs what is due until the process stops; then waits for what is running.
async fn work(control: Arc<Control>) {
    let run = |owner, work| one(control.clone(), owner, work);
    control.queue.drive(&control.stop, run).await;
}

async fn one(control: Arc<Control>, owner: Owner, work: Work) -> Disposition {
    match &owner {
        Owner::Process => match hooks::stand(&control).await {
            Ok(again) => again.map_or(Disposition::Wait, Disposition::After),
            Err(error) => {
                tracing::warn!(error = chain(&error), "our webhooks do not stand");
                Disposition::Retry
            }
        },
        Owner::Airway(name) => airway::reconcile(&control, name).await,
        Owner::Instance { airway, target } => {
            Box::pin(instances::run(&control, airway, target, &work)).await
        }
    }
}

impl Control {
    /// `Ok` when work can be done, else why not.
    pub(crate) fn readiness(&self, now: Instant) -> Result<(), String> {
        // One kind that can't be watched (its server, its conversion, our rights) is no reason to stop all others: only
        // a connection that tells nothing is.
        let lost = |watch: &WatchHealth| {
            let reached = watch
                .fault
                .as_ref()
                .is_some_and(|fault| fault.kind != FaultKind::Unreachable);
            watch.silence > SILENCE && !reached
        };
        let silent = self.hub.health().into_iter().find(lost).map(|watch| {
            let kind = watch.resource.group_kind;
            let fault = watch
                .fault
                .map_or_else(|| "no word from the API server".into(), |f| f.message);
            format!(
                "the watch of {kind} has been silent for {} s: {fault}",
                watch.silence.as_secs()
            )
        });
        self.health.ready(now, silent)
    }

    /// Whether an owner made this itself, or is it.
    fn is_own(&self, owner: &Owner, changed: &ResourceRef) -> bool {
        match owner {
            Owner::Process | Owner::Airway(_) => true,
            Owner::Instance { airway, target } => self
                .kinds
                .get(airway)
                .and_then(|kind| kind.instance(target))
                .is_some_and(|instance| changed == target || instance.made(changed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_not_there_is_told_from_one_that_says_no() {
        let gone = || kube::Error::Service("connection refused".into());
        let unreachable = ClusterError::Unreachable {
            doing: "apply",
            object: "x".to_owned(),
            source: Box::new(gone()),
        };
        let asked = InstallError::Identity;
        for (error, wanted) in [
            (
                asked(review::ReviewError::Refused("SelfSubjectReview", gone())),
                true,
            ),
            (InstallError::Cluster(unreachable), true),
            (asked(review::ReviewError::Nameless), false),
            (
                asked(review::ReviewError::Silent("SelfSubjectReview")),
                false,
            ),
        ] {
            assert_eq!(is_unreachable(&error), wanted, "{error}");
        }
    }
}
