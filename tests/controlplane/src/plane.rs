//! One control plane: its folder, its ports, its processes.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{
    Programs, files,
    keeper::{Keeper, Process},
};

/// How long the apiserver may take until it is ready. Alone on two cores it takes 2 s; the rest is for busy machines.
const READY: &str = "60s";
/// How often a start is tried: a free port may be taken by someone else before its program binds it.
const TRIES: u32 = 3;

/// One of the programs that make a control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// The store.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager: Jobs, Deployments, garbage collector, EndpointSlices.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// kwok, the kubelet of the node `fake`.
    Kwok,
}

impl Component {
    fn program(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
        }
    }
}

/// What to start.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// With kube-controller-manager, kube-scheduler, kwok and one fake node; without, etcd and kube-apiserver alone.
    pub full: bool,
    /// Further arguments of kube-apiserver, for instance `--runtime-config=…`.
    pub apiserver_arguments: Vec<String>,
}

/// A running control plane. Ends, and leaves nothing, when it is dropped or the owning process ends.
#[derive(Debug)]
pub struct ControlPlane {
    // Before the keeper: processes hold its pipe.
    processes: Mutex<BTreeMap<Component, Process>>,
    keeper: Keeper,
    programs: Programs,
    options: Options,
    folder: PathBuf,
    ports: Ports,
}

#[derive(Debug)]
struct Ports {
    etcd: u16,
    etcd_peer: u16,
    apiserver: u16,
    controller_manager: u16,
    scheduler: u16,
    kwok: u16,
}

impl ControlPlane {
    /// Finds or builds the programs and starts them; returns when the apiserver is ready.
    ///
    /// # Errors
    ///
    /// When the programs cannot be had (see [`Programs::find`]) or one ends early: its last words are in the error.
    pub fn start(options: &Options) -> Result<Self> {
        let programs = Programs::find(options.full)?;
        let mut tried = 1;
        loop {
            match Self::attempt(programs.clone(), options.clone()) {
                Err(error)
                    if tried < TRIES && format!("{error:#}").contains("address already in use") =>
                {
                    tried += 1;
                }
                result => return result,
            }
        }
    }

    fn attempt(programs: Programs, options: Options) -> Result<Self> {
        let folder = new_folder()?;
        let keeper = Keeper::new(&folder)?;
        let plane = Self {
            processes: Mutex::default(),
            keeper,
            programs,
            options,
            folder,
            ports: Ports::free()?,
        };
        plane.start_component(Component::Etcd)?;
        plane.write_files()?;
        plane.start_component(Component::ApiServer)?;
        plane.wait_ready()?;
        if plane.options.full {
            for component in [
                Component::ControllerManager,
                Component::Scheduler,
                Component::Kwok,
            ] {
                plane.start_component(component)?;
            }
            plane.request("POST", "/api/v1/nodes", &files::node())?;
        }
        Ok(plane)
    }

    fn write_files(&self) -> Result<()> {
        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"];
        self.certificate("apiserver", &names)?;
        self.helper(&["key", &self.file("sa.key")])?;
        let write = |name: &str, text: String| {
            fs::write(self.folder.join(name), text).with_context(|| format!("write \"{name}\""))
        };
        write("tokens.csv", files::tokens())?;
        write("audit.yaml", files::audit_policy())?;
        let ca = self.ca();
        for (name, token) in [
            ("kubeconfig", files::ADMIN_TOKEN),
            ("kubeconfig-atc", files::ATC_TOKEN),
            ("kubeconfig-user", files::USER_TOKEN),
        ] {
            write(name, files::kubeconfig(&self.server(), &ca, token))?;
        }
        Ok(())
    }

    /// The folder with everything of this control plane; removed at its end.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The programs that it was started with.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// The apiserver's address, `https://127.0.0.1:PORT`.
    pub fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.apiserver)
    }

    /// The certificate that signed the apiserver's.
    pub fn ca(&self) -> PathBuf {
        self.folder.join("apiserver/ca.crt")
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// The kubeconfig of the atc's user, whose calls are counted in the audit log.
    pub fn atc_kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig-atc")
    }

    /// The kubeconfig of the user `user`, who may do nothing until a test grants it.
    pub fn user_kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig-user")
    }

    /// The audit log of the atc's user: one JSON event a line.
    pub fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    /// Starts a component that is not running, on the port that it had before.
    ///
    /// # Errors
    ///
    /// When it runs already or its program cannot be started.
    pub fn start_component(&self, component: Component) -> Result<()> {
        let mut processes = self.processes();
        if processes
            .get_mut(&component)
            .is_some_and(|p| p.ended().is_none())
        {
            bail!("{} runs already", component.program());
        }
        let name = component.program();
        let mut command = Command::new(self.programs.path(name)?);
        command
            .args(self.arguments(component)?)
            .current_dir(&self.folder);
        // None of these programs may see the user's cluster, and none needs a proxy to reach this machine.
        for name in [
            "KUBECONFIG",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "http_proxy",
            "https_proxy",
            "all_proxy",
        ] {
            command.env_remove(name);
        }
        command.env("HOME", &self.folder);
        processes.insert(component, self.keeper.spawn(name, command)?);
        Ok(())
    }

    /// Kills a component, as an outage would.
    pub fn stop_component(&self, component: Component) {
        if let Some(mut process) = self.processes().remove(&component) {
            process.kill();
        }
    }

    /// Halts a component without ending it (SIGSTOP): its connections stay open and silent.
    ///
    /// # Errors
    ///
    /// When it does not run.
    pub fn pause_component(&self, component: Component) -> Result<()> {
        self.signal(component, "STOP")
    }

    /// Lets a halted component go on.
    ///
    /// # Errors
    ///
    /// When it does not run.
    pub fn resume_component(&self, component: Component) -> Result<()> {
        self.signal(component, "CONT")
    }

    fn signal(&self, component: Component, name: &str) -> Result<()> {
        let mut processes = self.processes();
        let process = processes.get_mut(&component);
        process
            .with_context(|| format!("{} does not run", component.program()))?
            .signal(name)
    }

    /// Starts a process that ends with this control plane; its output goes to `<folder>/<name>.log`.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn keep(&self, name: &str, command: Command) -> Result<Process> {
        self.keeper.spawn(name, command)
    }

    /// Fails, with its last words, when a component has ended that was not stopped.
    ///
    /// # Errors
    ///
    /// See above.
    pub fn check(&self) -> Result<()> {
        self.processes().values_mut().try_for_each(Process::check)
    }

    /// Waits until the apiserver says that it is ready, at most 60 s.
    ///
    /// # Errors
    ///
    /// When it is not ready in time, or a component has ended.
    pub fn wait_ready(&self) -> Result<()> {
        let url = format!("{}/readyz", self.server());
        let mut waiter =
            self.helper_command(&["wait", READY, &self.ca_text(), files::ADMIN_TOKEN, &url]);
        let mut waiter = waiter
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        loop {
            if waiter.try_wait()?.is_some() {
                break;
            }
            if let Err(error) = self.check() {
                _ = waiter.kill();
                _ = waiter.wait();
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let answer = waiter.wait_with_output()?;
        if !answer.status.success() {
            bail!(
                "kube-apiserver is not ready: {}",
                String::from_utf8_lossy(&answer.stderr).trim()
            );
        }
        Ok(())
    }

    /// Whether an HTTPS server on this machine, whose certificate `ca` signed, answers 200 at once.
    pub fn probe(&self, ca: &Path, url: &str) -> bool {
        self.helper(&["wait", "0s", &ca.to_string_lossy(), "", url])
            .is_ok()
    }

    /// Makes one request as administrator; `path` begins with `/api` or `/apis`. The answer is null when it has no
    /// body. For set-up only: it costs a process.
    ///
    /// # Errors
    ///
    /// When the apiserver cannot be reached or answers with another status than 2xx; its words are in the error.
    pub fn request(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        let kind = match method {
            "PATCH" => "application/apply-patch+yaml",
            _ => "application/json",
        };
        let url = format!("{}{path}", self.server());
        let mut command = self.helper_command(&[
            "request",
            method,
            kind,
            &self.ca_text(),
            files::ADMIN_TOKEN,
            &url,
        ]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        child
            .stdin
            .take()
            .context("no standard input")?
            .write_all(body.as_bytes())?;
        let answer = child.wait_with_output()?;
        if !answer.status.success() {
            bail!("{}", String::from_utf8_lossy(&answer.stderr).trim());
        }
        if answer.stdout.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&answer.stdout).with_context(|| format!("{method} {path}: no JSON"))
    }

    /// Watches a list as administrator; `path` has its query but for `watch`. Events come as JSON values until the
    /// process is dropped or the apiserver ends the watch.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn watch(&self, path: &str) -> Result<(Process, impl Iterator<Item = Value> + use<>)> {
        let sign = if path.contains('?') { '&' } else { '?' };
        let url = format!("{}{path}{sign}watch=true", self.server());
        let command = self.helper_command(&["watch", &self.ca_text(), files::ADMIN_TOKEN, &url]);
        let (process, output) = self.keeper.spawn_piped("watch", command)?;
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        Ok((
            process,
            lines.filter_map(|line| serde_json::from_str(&line).ok()),
        ))
    }

    /// Creates a namespace with a new name that begins with `prefix`, and returns the name.
    ///
    /// # Errors
    ///
    /// When the apiserver refuses it.
    pub fn namespace(&self, prefix: &str) -> Result<String> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("{prefix}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let body = serde_json::json!({ "metadata": { "name": name } }).to_string();
        self.request("POST", "/api/v1/namespaces", &body)?;
        Ok(name)
    }

    /// Writes `<folder>/<name>/{ca.crt,server.crt,server.key}`, new ones at each call, and returns that folder.
    ///
    /// # Errors
    ///
    /// When the files cannot be written.
    pub fn certificate(&self, name: &str, valid_for: &[&str]) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        let text = folder.to_string_lossy().into_owned();
        let mut arguments = vec!["certificate", &text];
        arguments.extend(valid_for);
        self.helper(&arguments)?;
        Ok(folder)
    }

    /// Go's ECDSA signature of a text with the private key (PKCS 8, PEM) in a file, in base64.
    ///
    /// # Errors
    ///
    /// When the file holds no such key.
    pub fn sign(&self, key: &Path, text: &[u8]) -> Result<String> {
        let mut child = self
            .helper_command(&["sign", &key.to_string_lossy()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        child.stdin.take().context("no stdin")?.write_all(text)?;
        let answer = child.wait_with_output()?;
        if !answer.status.success() {
            bail!("helper sign: it failed ({})", answer.status);
        }
        Ok(String::from_utf8(answer.stdout)?)
    }

    fn helper(&self, arguments: &[&str]) -> Result<()> {
        let answer = self
            .helper_command(arguments)
            .stdin(Stdio::null())
            .output()?;
        if !answer.status.success() {
            bail!(
                "helper {}: {}",
                arguments[0],
                String::from_utf8_lossy(&answer.stderr).trim()
            );
        }
        Ok(())
    }

    fn helper_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.programs.helper());
        command.args(arguments);
        command
    }

    fn processes(&self) -> MutexGuard<'_, BTreeMap<Component, Process>> {
        self.processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    fn ca_text(&self) -> String {
        self.ca().to_string_lossy().into_owned()
    }

    fn arguments(&self, component: Component) -> Result<Vec<String>> {
        let file = |name: &str| self.file(name);
        let ports = &self.ports;
        let etcd = format!("http://127.0.0.1:{}", ports.etcd);
        let kubeconfig = file("kubeconfig");
        let arguments = match component {
            Component::Etcd => vec![
                format!("--data-dir={}", file("etcd")),
                format!("--listen-client-urls={etcd}"),
                format!("--advertise-client-urls={etcd}"),
                format!("--listen-peer-urls=http://127.0.0.1:{}", ports.etcd_peer),
                // The data is thrown away with the control plane.
                "--unsafe-no-fsync".into(),
                "--log-level=warn".into(),
            ],
            Component::ApiServer => {
                let mut arguments = vec![
                    format!("--etcd-servers={etcd}"),
                    format!("--secure-port={}", ports.apiserver),
                    "--bind-address=127.0.0.1".into(),
                    "--advertise-address=127.0.0.1".into(),
                    // Else 127.0.0.1 is refused as the address of the service `kubernetes`.
                    "--endpoint-reconciler-type=none".into(),
                    format!("--tls-cert-file={}", file("apiserver/server.crt")),
                    format!("--tls-private-key-file={}", file("apiserver/server.key")),
                    format!("--service-account-key-file={}", file("sa.key")),
                    format!("--service-account-signing-key-file={}", file("sa.key")),
                    "--service-account-issuer=https://kubernetes.default.svc".into(),
                    "--service-cluster-ip-range=10.0.0.0/16".into(),
                    "--authorization-mode=RBAC".into(),
                    format!("--token-auth-file={}", file("tokens.csv")),
                    "--allow-privileged=true".into(),
                    format!("--audit-policy-file={}", file("audit.yaml")),
                    format!("--audit-log-path={}", file("audit.log")),
                    // The size of what is measured is the atc's, not that of the apiserver's own limits.
                    "--max-requests-inflight=4000".into(),
                    "--max-mutating-requests-inflight=2000".into(),
                ];
                arguments.extend(self.options.apiserver_arguments.iter().cloned());
                arguments
            }
            Component::ControllerManager => vec![
                format!("--kubeconfig={kubeconfig}"),
                format!("--authentication-kubeconfig={kubeconfig}"),
                format!("--authorization-kubeconfig={kubeconfig}"),
                format!("--service-account-private-key-file={}", file("sa.key")),
                format!("--root-ca-file={}", file("apiserver/ca.crt")),
                format!("--cert-dir={}", file("controller-manager")),
                format!("--secure-port={}", ports.controller_manager),
                "--bind-address=127.0.0.1".into(),
                "--use-service-account-credentials=true".into(),
                "--leader-elect=false".into(),
                "--kube-api-qps=500".into(),
                "--kube-api-burst=1000".into(),
            ],
            Component::Scheduler => vec![
                format!("--kubeconfig={kubeconfig}"),
                format!("--authentication-kubeconfig={kubeconfig}"),
                format!("--authorization-kubeconfig={kubeconfig}"),
                format!("--cert-dir={}", file("scheduler")),
                format!("--secure-port={}", ports.scheduler),
                "--bind-address=127.0.0.1".into(),
                "--leader-elect=false".into(),
            ],
            Component::Kwok => vec![
                format!("--kubeconfig={kubeconfig}"),
                "--manage-all-nodes=true".into(),
                // Its stages write no heartbeats: without a lease the node is lost after 50 s, and its pods not ready.
                "--node-lease-duration-seconds=40".into(),
                format!("--config={}", self.programs.stages()?.display()),
                format!("--server-address=127.0.0.1:{}", ports.kwok),
            ],
        };
        Ok(arguments)
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // Those that write to the apiserver first, then what they write to.
        let mut processes = std::mem::take(&mut *self.processes());
        while let Some((_, process)) = processes.pop_last() {
            drop(process);
        }
    }
}

impl Ports {
    /// Ports that nobody listens on. All are held until the last is known, so that they differ.
    fn free() -> Result<Self> {
        let mut held = Vec::new();
        let mut next = || -> Result<u16> {
            let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port")?;
            let port = listener.local_addr()?.port();
            held.push(listener);
            Ok(port)
        };
        Ok(Self {
            etcd: next()?,
            etcd_peer: next()?,
            apiserver: next()?,
            controller_manager: next()?,
            scheduler: next()?,
            kwok: next()?,
        })
    }
}

/// A new private folder under the system's temporary one.
fn new_folder() -> Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let base = std::env::temp_dir();
    let begin = Instant::now();
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = base.join(format!("atc-controlplane-{}-{number}", std::process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(e)
                if e.kind() == std::io::ErrorKind::AlreadyExists
                    && begin.elapsed() < Duration::from_secs(5) => {}
            Err(e) => return Err(e).with_context(|| format!("create \"{}\"", folder.display())),
        }
    }
}
