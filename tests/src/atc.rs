//! The atc as a process, reached by the apiserver as if it ran in the cluster.

use std::{
    ffi::OsString,
    path::PathBuf,
    process::{Command, ExitStatus},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use controlplane::{AtcService, ControlPlane, Process};
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::OnceCell,
};

use crate::{AirwayBuilder, Api, Cluster, binary, eventually, is_ready, proxy::connector};

/// How long an atc may take until it answers `/ready`.
const START: Duration = Duration::from_mins(1);

/// A running atc. Killed when its last handle is dropped; the shared one, when the process ends.
#[derive(Debug, Clone)]
pub struct Atc<'a> {
    plane: &'a ControlPlane,
    api: Api,
    service: AtcService,
    environment: Vec<(OsString, OsString)>,
    process: Arc<Mutex<Process>>,
}

/// What all handles of the shared atc have in common: no client, since that belongs to a test's runtime.
type Shared = (AtcService, Arc<Mutex<Process>>);

impl Atc<'static> {
    /// The atc that all tests of this process share, on the shared control plane, with all that it can log. Tests that kill it, or that need
    /// another environment, start their own on a control plane of their own.
    pub async fn shared(cluster: &Cluster) -> Result<Self> {
        static SHARED: OnceCell<Shared> = OnceCell::const_new();
        let plane = controlplane::shared();
        let start = || async {
            let atc = Atc::start(plane, &cluster.api, "atc", &[("VERBOSE", "true")]).await?;
            anyhow::Ok((atc.service, atc.process))
        };
        let (service, process) = SHARED.get_or_try_init(start).await?.clone();
        Ok(Self {
            plane,
            api: cluster.api.clone(),
            service,
            environment: Vec::new(),
            process,
        })
    }
}

impl<'a> Atc<'a> {
    /// Starts one and waits until it is ready. `name` is that of its Service and its log. Its CRDs and its
    /// webhooks for Airways are not in a namespace: two at a time on one control plane stand in each other's way.
    pub async fn start(
        plane: &'a ControlPlane,
        api: &Api,
        name: &str,
        environment: &[(&str, &str)],
    ) -> Result<Self> {
        let mut atc = Self::launch(plane, api, name, environment)?;
        atc.wait_ready().await?;
        Ok(atc)
    }

    /// Starts one without waiting for anything. `$PORT` in the environment stands for the port that it listens on.
    pub fn launch(
        plane: &'a ControlPlane,
        api: &Api,
        name: &str,
        environment: &[(&str, &str)],
    ) -> Result<Self> {
        let service = plane.atc_service(name)?;
        let environment: Vec<_> = environment
            .iter()
            .map(|(k, v)| {
                let value = v.replace("$PORT", &service.port.to_string());
                ((*k).into(), value.into())
            })
            .collect();
        let process = Arc::new(Mutex::new(spawn(plane, &service, &environment)?));
        Ok(Self {
            plane,
            api: api.clone(),
            service,
            environment,
            process,
        })
    }

    /// Starts it anew after [`Atc::kill`] or [`Atc::terminate`], with the same port, certificates and caches.
    pub async fn restart(&mut self) -> Result<()> {
        self.kill();
        *self.process() = spawn(self.plane, &self.service, &self.environment)?;
        self.wait_ready().await
    }

    /// Waits until it says that it is ready and its Airways are served.
    pub async fn wait_ready(&mut self) -> Result<()> {
        let begin = std::time::Instant::now();
        loop {
            self.process().check()?;
            let served = self
                .api
                .get("/apis/yoke.cd/v1alpha1/airways")
                .await
                .is_ok_and(|found| found.is_some());
            if served && self.answers("/ready") {
                return Ok(());
            }
            if begin.elapsed() > START {
                bail!(
                    "the atc is not ready after {START:?}; its last words:\n{}",
                    self.process().log_tail(20)
                );
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    /// Whether a path of its HTTPS server answers 200.
    pub fn answers(&self, path: &str) -> bool {
        let url = format!("https://localhost:{}{path}", self.service.port);
        let ca = self.service.certificates.join("ca.crt");
        tokio::task::block_in_place(|| self.plane.probe(&ca, &url))
    }

    /// Creates the Airway, and waits until it is ready and its kind is served.
    ///
    /// # Panics
    ///
    /// When that took more than 30 s.
    pub async fn airway(&self, airway: &AirwayBuilder) -> Result<()> {
        let path = "/apis/yoke.cd/v1alpha1/airways";
        self.api
            .post(path, &airway.build())
            .await
            .context("create the Airway")?;
        let (airways, kinds) = (format!("{path}/{}", airway.name()), airway.path("default"));
        eventually(
            Duration::from_secs(30),
            &format!("Airway {} is ready", airway.name()),
            || async {
                let ready = self
                    .api
                    .get(&airways)
                    .await?
                    .is_some_and(|found| is_ready(&found));
                let served = self.api.get(&kinds).await?.is_some();
                Ok((ready && served).then_some(()))
            },
        )
        .await;
        Ok(())
    }

    /// Deletes the Airway, and waits until it and its kind are gone.
    ///
    /// # Panics
    ///
    /// When that took more than 60 s.
    pub async fn remove_airway(&self, airway: &AirwayBuilder) -> Result<()> {
        let path = format!("/apis/yoke.cd/v1alpha1/airways/{}", airway.name());
        self.api.delete(&path).await?;
        eventually(
            Duration::from_mins(1),
            &format!("Airway {} is gone", airway.name()),
            || async { Ok(self.api.get(&path).await?.is_none().then_some(())) },
        )
        .await;
        Ok(())
    }

    /// What it answers to a GET of a path of its HTTPS server: status and body. Asked once, whatever the answer is.
    pub async fn get(&self, path: &str) -> Result<(u16, String)> {
        self.ask("GET", path, "").await
    }

    /// The same for a POST of JSON: what the API server does with a review.
    pub async fn post(&self, path: &str, body: &Value) -> Result<(u16, String)> {
        self.ask("POST", path, &body.to_string()).await
    }

    async fn ask(&self, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        let stream = TcpStream::connect(("localhost", self.service.port)).await?;
        let connector = connector(&self.service.certificates.join("ca.crt"))?;
        let mut stream = connector
            .connect(ServerName::try_from("localhost")?, stream)
            .await?;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        let status = head.split(' ').nth(1).context("no status")?.parse()?;
        Ok((status, body.to_owned()))
    }

    /// Ends it with SIGKILL.
    pub fn kill(&mut self) {
        self.process().kill();
    }

    /// Ends it with SIGTERM.
    pub fn terminate(&mut self) -> Result<ExitStatus> {
        tokio::task::block_in_place(|| self.process().terminate())
    }

    /// Whether it runs.
    pub fn alive(&mut self) -> bool {
        self.process().ended().is_none()
    }

    /// Its process, for signals.
    pub fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its log so far: one JSON value a line; lines that are none are left out.
    pub fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.process().log()).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Has whoever asks it trust these CAs (PEM) from now on: for one that makes its certificate itself.
    pub fn trust(&self, ca: &str) -> Result<()> {
        let path = self.service.certificates.join("ca.crt");
        std::fs::write(&path, ca).with_context(|| format!("write \"{}\"", path.display()))
    }

    /// The folder of its caches.
    pub fn cache(&self) -> PathBuf {
        self.service.cache.clone()
    }

    /// Its resident memory in KiB.
    pub fn memory_kib(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process().id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .context("no VmRSS")?;
        line.split_whitespace()
            .next()
            .context("no VmRSS")?
            .parse()
            .context("VmRSS")
    }
}

fn spawn(
    plane: &ControlPlane,
    service: &AtcService,
    environment: &[(OsString, OsString)],
) -> Result<Process> {
    let mut command = Command::new(binary("atc")?);
    command
        .envs(service.environment())
        .envs(environment.iter().map(|(k, v)| (k, v)));
    plane.keep(&format!("atc-{}", service.name), command)
}
