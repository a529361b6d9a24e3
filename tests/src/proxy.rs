//! A proxy before the apiserver that does what bad networks and busy servers do.
//!
//! Clients speak plain HTTP to it (so that it can read requests and answer them itself); it speaks TLS to the
//! apiserver. Each request gets a connection of its own behind it.

use std::{
    net::Ipv4Addr,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use controlplane::ControlPlane;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};
use tokio_rustls::TlsConnector;

/// Largest request head that is read.
const HEAD: usize = 64 * 1024;
/// Bytes that are moved at once.
const CHUNK: usize = 16 * 1024;

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It is taken and never answered.
    Stall,
    /// Its connection is closed without an answer.
    Cut,
    /// It is answered with this HTTP status, and `Retry-After` in seconds where given.
    Status(u16, Option<u32>),
    /// It reaches the apiserver this much later.
    Delay(Duration),
    /// It reaches the apiserver at the next [`Proxy::heal`].
    Hold,
    /// The apiserver does it, and the connection is closed before the answer arrives.
    LoseAnswer,
}

/// What all open connections do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Open,
    /// Nothing is moved in either direction.
    Halted,
}

#[derive(Debug)]
struct Rule {
    /// Begin of the request line, for instance `GET /api/v1/secrets`; or any part of it.
    request: String,
    fault: Fault,
    /// How many more requests it is for; nothing for all.
    left: Option<u32>,
}

/// The end of everything at one write.
#[derive(Debug)]
struct End {
    /// Writes that still go through.
    left: u32,
    /// What happens to the write after them.
    fault: Fault,
}

#[derive(Debug)]
struct State {
    rules: Mutex<Vec<Rule>>,
    end: Mutex<Option<End>>,
    ended: watch::Sender<bool>,
    seen: Mutex<Vec<String>>,
    flow: watch::Sender<Flow>,
    /// Counts up at each [`Proxy::heal`].
    heals: watch::Sender<u64>,
    /// Counts up at each [`Proxy::cut_all`].
    cuts: watch::Sender<u64>,
}

/// A running proxy; ends when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: Arc<State>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Starts one before the apiserver of a control plane.
    pub async fn start(plane: &ControlPlane) -> Result<Self> {
        let connector = connector(&plane.ca())?;
        let server = plane.server().trim_start_matches("https://").to_owned();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("no free port")?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(State {
            rules: Mutex::default(),
            end: Mutex::default(),
            ended: watch::Sender::new(false),
            seen: Mutex::default(),
            flow: watch::Sender::new(Flow::Open),
            heals: watch::Sender::new(0),
            cuts: watch::Sender::new(0),
        });
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (state, connector, server) =
                    (Arc::clone(&shared), connector.clone(), server.clone());
                tokio::spawn(async move {
                    let mut cuts = state.cuts.subscribe();
                    // Dropping the future closes both connections.
                    tokio::select! {
                        _ = connection(client, &state, connector, &server) => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
        });
        Ok(Self { port, state, task })
    }

    /// The address for a kubeconfig, see [`crate::Cluster::through`].
    pub fn server(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// From now on, requests whose first line contains `request` meet this fault.
    pub fn fail(&self, request: &str, fault: Fault) {
        lock(&self.state.rules).push(Rule {
            request: request.to_owned(),
            fault,
            left: None,
        });
    }

    /// The next `times` requests whose first line contains `request` meet this fault.
    pub fn fail_times(&self, request: &str, fault: Fault, times: u32) {
        lock(&self.state.rules).push(Rule {
            request: request.to_owned(),
            fault,
            left: Some(times),
        });
    }

    /// So many writes (dry runs are none) go through; the next one meets this fault, and from then on every request is
    /// cut: as if the one who sends them were gone.
    pub fn end_after(&self, writes: u32, fault: Fault) {
        *lock(&self.state.end) = Some(End {
            left: writes,
            fault,
        });
        self.state.ended.send_replace(false);
    }

    /// Waits until the write came that was the end.
    pub async fn ended(&self) {
        // The sender is ours.
        _ = self.state.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// No faults any more, and whatever was halted goes on.
    pub fn heal(&self) {
        lock(&self.state.rules).clear();
        *lock(&self.state.end) = None;
        self.state.ended.send_replace(false);
        self.state.flow.send_replace(Flow::Open);
        self.state.heals.send_modify(|count| *count += 1);
    }

    /// Open connections, watches among them, become silent without being closed, and new ones are as silent.
    pub fn halt(&self) {
        self.state.flow.send_replace(Flow::Halted);
    }

    /// Closes all open connections.
    pub fn cut_all(&self) {
        self.state.cuts.send_modify(|count| *count += 1);
    }

    /// The first lines of all requests so far, `METHOD /path?query`.
    pub fn requests(&self) -> Vec<String> {
        lock(&self.state.seen).clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
        self.cut_all();
    }
}

/// Speaks TLS to servers whose certificates this CA signed.
pub(crate) fn connector(ca: &Path) -> Result<TlsConnector> {
    // An error means that it is installed already.
    _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).context("the CA")?)?;
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// The fault of a request at or after the end, see [`Proxy::end_after`].
    fn at_the_end(&self, request: &str) -> Option<Fault> {
        let mut end = lock(&self.end);
        let end = end.as_mut()?;
        if *self.ended.borrow() {
            return Some(Fault::Cut);
        }
        if request.starts_with("GET ") || request.contains("dryRun=All") {
            return None;
        }
        if end.left > 0 {
            end.left -= 1;
            return None;
        }
        self.ended.send_replace(true);
        Some(end.fault.clone())
    }

    /// The fault that a request meets, if any.
    fn fault(&self, request: &str) -> Option<Fault> {
        lock(&self.seen).push(request.to_owned());
        if let Some(fault) = self.at_the_end(request) {
            return Some(fault);
        }
        let mut rules = lock(&self.rules);
        let rule = rules
            .iter_mut()
            .find(|rule| rule.left != Some(0) && request.contains(&rule.request))?;
        rule.left = rule.left.map(|left| left - 1);
        Some(rule.fault.clone())
    }
}

async fn connection(
    mut client: TcpStream,
    state: &State,
    connector: TlsConnector,
    server: &str,
) -> Result<()> {
    client.set_nodelay(true)?;
    let mut flow = state.flow.subscribe();
    let mut heals = state.heals.subscribe();
    let (head, rest) = read_head(&mut client).await?;
    let line = head.lines().next().context("no request")?;
    let request = line
        .rsplit_once(' ')
        .map_or(line, |(request, _)| request)
        .to_owned();
    let fault = state.fault(&request);
    match fault {
        Some(Fault::Stall) => std::future::pending().await,
        Some(Fault::Cut) => return Ok(()),
        Some(Fault::Status(status, retry)) => return answer(&mut client, status, retry).await,
        Some(Fault::Delay(delay)) => tokio::time::sleep(delay).await,
        Some(Fault::Hold) => heals.changed().await?,
        Some(Fault::LoseAnswer) | None => {}
    }
    flow.wait_for(|flow| *flow == Flow::Open).await?;
    let stream = TcpStream::connect(server)
        .await
        .context("connect to the apiserver")?;
    stream.set_nodelay(true)?;
    let mut backend = connector
        .connect(ServerName::try_from("localhost")?, stream)
        .await
        .context("TLS")?;
    backend.write_all(one_request(&head).as_bytes()).await?;
    backend.write_all(&rest).await?;
    let (mut from_server, mut to_server) = tokio::io::split(backend);
    let (mut from_client, mut to_client) = client.split();
    if fault == Some(Fault::LoseAnswer) {
        // The body goes on; the first byte of the answer ends it.
        tokio::select! {
            _ = pour(&mut from_client, &mut to_server, flow.clone()) => {}
            _ = from_server.read_u8() => {}
        }
        return Ok(());
    }
    // The answer's end is the end: a client that has said all may keep its half open.
    let up = pour(&mut from_client, &mut to_server, flow.clone());
    let down = pour(&mut from_server, &mut to_client, flow.clone());
    tokio::pin!(up, down);
    tokio::select! {
        result = &mut down => result,
        result = &mut up => {
            // The client closed its side: it no longer waits for the answer.
            result
        }
    }
}

/// Moves bytes from one side to the other while the flow is open.
async fn pour(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut flow: watch::Receiver<Flow>,
) -> Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let size = from.read(&mut chunk).await?;
        flow.wait_for(|flow| *flow == Flow::Open).await?;
        if size == 0 {
            return Ok(to.flush().await?);
        }
        to.write_all(&chunk[..size]).await?;
        to.flush().await?;
    }
}

/// The head of a request, and what came of its body with it.
async fn read_head(client: &mut TcpStream) -> Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok((
                String::from_utf8(bytes).context("a request that is no text")?,
                rest,
            ));
        }
        if bytes.len() > HEAD || client.read_buf(&mut bytes).await? == 0 {
            bail!("no whole request");
        }
    }
}

/// The head with `Connection: close`, so that the next request comes on a connection of its own and is read as well.
/// Upgrades are left alone.
fn one_request(head: &str) -> String {
    let lower = head.to_ascii_lowercase();
    if lower.contains("\r\nupgrade:") {
        return head.to_owned();
    }
    let mut lines: Vec<&str> = head.trim_end().split("\r\n").collect();
    lines.retain(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    lines.push("Connection: close");
    lines.join("\r\n") + "\r\n\r\n"
}

async fn answer(client: &mut TcpStream, status: u16, retry: Option<u32>) -> Result<()> {
    let body = format!(
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"made by the proxy","code":{status}}}"#
    );
    let retry = retry
        .map(|seconds| format!("Retry-After: {seconds}\r\n"))
        .unwrap_or_default();
    let size = body.len();
    let head = format!(
        "HTTP/1.1 {status} Fault\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n{retry}Connection: close\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await?;
    client.write_all(body.as_bytes()).await?;
    client.shutdown().await?;
    // Read what the client still sends, or its closing with unread bytes resets the connection before it has read.
    let mut sink = vec![0; CHUNK];
    while client.read(&mut sink).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::one_request;

    #[test]
    fn heads_ask_for_one_request() {
        let head = "GET /a HTTP/1.1\r\nhost: x\r\nconnection: keep-alive\r\n\r\n";
        assert_eq!(
            one_request(head),
            "GET /a HTTP/1.1\r\nhost: x\r\nConnection: close\r\n\r\n"
        );
        let upgrade = "GET /a HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
        assert_eq!(one_request(upgrade), upgrade);
    }
}
