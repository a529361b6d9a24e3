//! A registry inside the test: right by default, and wrong as a test wants it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::oci::manifest::{CONFIG, LAYER, MANIFEST};
use crate::verify::sha256_hex;

/// What is sent.
#[derive(Clone)]
pub(super) enum Reply {
    /// A whole answer: status line, header lines, body.
    Whole(&'static str, String, Vec<u8>),
    /// The length of the body is told, and only so much of it sent.
    Cut(Vec<u8>, usize),
    /// Zeros without an end, after these bytes.
    Endless(Vec<u8>),
    /// A header line after the other, for ever.
    SlowHead,
    /// One byte of the body each 10 ms, for ever.
    SlowBody,
    Silence,
    /// The connection is closed at once.
    Nothing,
    /// What a registry without faults says, but only after so long.
    Late(Duration),
}

pub(super) fn reply(status: &'static str, headers: &str, body: &[u8]) -> Reply {
    Reply::Whole(status, headers.to_owned(), body.to_vec())
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) authorization: Option<String>,
    body: Vec<u8>,
}

/// How users prove themselves.
#[derive(Clone, Default)]
pub(super) enum Auth {
    #[default]
    Open,
    Basic(&'static str),
    /// Tokens, for everybody or for `user:password`; each lives so long.
    Bearer(Option<&'static str>, Duration),
}

struct Fault {
    method: &'static str,
    part: String,
    reply: Reply,
    times: usize,
}

#[derive(Default)]
struct State {
    blobs: HashMap<String, Vec<u8>>,
    manifests: HashMap<String, (String, Vec<u8>)>,
    auth: Auth,
    tokens: HashMap<String, tokio::time::Instant>,
    token_field: &'static str,
    /// Whether a greeting of TLS is never answered.
    silent_tls: bool,
    faults: Vec<Fault>,
    calls: Vec<Call>,
}

/// A registry on a port of its own until it is dropped.
pub(super) struct Registry {
    pub(super) port: u16,
    state: Arc<Mutex<State>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

impl Registry {
    pub(super) async fn start() -> Self {
        Self::with(Auth::Open).await
    }

    pub(super) async fn with(auth: Auth) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State {
            auth,
            token_field: "token",
            ..State::default()
        }));
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared), port));
            }
        });
        Self { port, state, task }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(super) fn oci(&self, name: &str) -> String {
        format!("oci://{}/{name}", self.host())
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.host())
    }

    pub(super) fn token_field(&self, name: &'static str) {
        self.state().token_field = name;
    }

    pub(super) fn silent_tls(&self, is_silent: bool) {
        self.state().silent_tls = is_silent;
    }

    /// From now on this token is good.
    pub(super) fn good_token(&self, token: &str) {
        let until = tokio::time::Instant::now() + Duration::from_mins(1);
        self.state().tokens.insert(token.to_owned(), until);
    }

    /// From now on no token is good that was given before.
    pub(super) fn revoke_tokens(&self) {
        let mut state = self.state();
        let now = tokio::time::Instant::now();
        state.tokens.values_mut().for_each(|until| *until = now);
    }

    pub(super) fn auth(&self, auth: Auth) {
        self.state().auth = auth;
    }

    /// Keeps a blob; its descriptor.
    pub(super) fn blob(&self, kind: &str, bytes: &[u8]) -> Value {
        self.state().blobs.insert(digest(bytes), bytes.to_vec());
        json!({ "mediaType": kind, "digest": digest(bytes), "size": bytes.len() })
    }

    /// Keeps a manifest under `repository:tag` and by its digest, which is returned.
    pub(super) fn manifest(&self, name: &str, document: &Value) -> String {
        let bytes = document.to_string().into_bytes();
        let (repository, tag) = name.split_once(':').unwrap();
        let kind = document["mediaType"]
            .as_str()
            .unwrap_or(MANIFEST)
            .to_owned();
        let sum = digest(&bytes);
        for name in [tag, &sum] {
            let key = format!("{repository}/manifests/{name}");
            self.state()
                .manifests
                .insert(key, (kind.clone(), bytes.clone()));
        }
        sum
    }

    /// Keeps a module as stow would; the digests of its manifest and of its layer.
    pub(super) fn put(&self, name: &str, packed: &[u8]) -> (String, String) {
        let document = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": self.blob(CONFIG, b"{}"), "layers": [self.blob(LAYER, packed)],
        });
        (self.manifest(name, &document), digest(packed))
    }

    /// The next `times` requests of this method whose path holds `part` get this instead.
    pub(super) fn fault(&self, method: &'static str, part: &str, times: usize, reply: Reply) {
        let part = part.to_owned();
        self.state().faults.push(Fault {
            method,
            part,
            reply,
            times,
        });
    }

    pub(super) fn mend(&self) {
        self.state().faults.clear();
    }

    pub(super) fn calls(&self, method: &str, part: &str) -> Vec<Call> {
        let state = self.state();
        let fit =
            |call: &&Call| (method.is_empty() || call.method == method) && call.path.contains(part);
        state.calls.iter().filter(fit).cloned().collect()
    }

    pub(super) fn forget_calls(&self) {
        self.state().calls.clear();
    }

    pub(super) fn tags(&self, repository: &str) -> Vec<String> {
        let start = format!("{repository}/manifests/");
        let state = self.state();
        let mut tags: Vec<String> = state
            .manifests
            .keys()
            .filter_map(|key| Some(key.strip_prefix(&start)?.to_owned()))
            .collect();
        tags.retain(|tag| !tag.contains(':'));
        tags.sort();
        tags
    }

    pub(super) fn stored(&self, key: &str) -> Vec<u8> {
        let state = self.state();
        state
            .blobs
            .get(key)
            .or_else(|| state.manifests.get(key).map(|(_, bytes)| bytes))
            .unwrap()
            .clone()
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>, port: u16) {
    let Some(call) = read(&mut stream).await else {
        let is_silent = state.lock().unwrap().silent_tls;
        if is_silent {
            std::future::pending::<()>().await;
        }
        return;
    };
    let reply = {
        let mut state = state.lock().unwrap();
        state.calls.push(call.clone());
        let fits = |fault: &&mut Fault| {
            fault.times > 0 && fault.method == call.method && call.path.contains(&fault.part)
        };
        match state.faults.iter_mut().find(fits) {
            Some(fault) => {
                fault.times -= 1;
                fault.reply.clone()
            }
            None => answer(&mut state, &call, port),
        }
    };
    let reply = match reply {
        Reply::Late(time) => {
            tokio::time::sleep(time).await;
            answer(&mut state.lock().unwrap(), &call, port)
        }
        other => other,
    };
    let _ = send(&mut stream, &call, reply).await;
    let _ = stream.shutdown().await;
}

/// A request, or nothing if it is none: a greeting of TLS, for example.
async fn read(stream: &mut TcpStream) -> Option<Call> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
        if head[0] == 0x16 {
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let header = |name: &str| {
        let line = head
            .lines()
            .find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let length: usize = header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let authorization = header("authorization");
    Some(Call {
        method,
        path,
        authorization,
        body,
    })
}

async fn send(stream: &mut TcpStream, call: &Call, reply: Reply) -> std::io::Result<()> {
    let head = |length: usize| {
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n")
    };
    match reply {
        Reply::Whole(status, headers, body) => {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
            );
            stream.write_all(head.as_bytes()).await?;
            if call.method != "HEAD" {
                stream.write_all(&body).await?;
            }
        }
        Reply::Cut(body, keep) => {
            stream.write_all(head(body.len()).as_bytes()).await?;
            stream.write_all(&body[..keep]).await?;
        }
        Reply::Endless(start) => {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
                .await?;
            stream.write_all(&start).await?;
            loop {
                stream.write_all(&[0; 8192]).await?;
            }
        }
        Reply::SlowHead => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n").await?;
            loop {
                stream.write_all(b"X-More: y\r\n").await?;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Reply::SlowBody => {
            stream.write_all(head(1_000_000).as_bytes()).await?;
            loop {
                stream.write_all(b"x").await?;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        Reply::Silence => std::future::pending().await,
        Reply::Nothing | Reply::Late(_) => {}
    }
    Ok(())
}

/// What a registry without faults answers.
fn answer(state: &mut State, call: &Call, port: u16) -> Reply {
    let (path, query) = call.path.split_once('?').unwrap_or((&call.path, ""));
    if path == "/token" {
        return token(state, call);
    }
    if let Some(challenge) = challenge(state, call, port) {
        let body = br#"{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}"#;
        return reply(
            "401 Unauthorized",
            &format!("WWW-Authenticate: {challenge}\r\n"),
            body,
        );
    }
    let Some(rest) = path.strip_prefix("/v2/").filter(|rest| !rest.is_empty()) else {
        return reply("200 OK", "", b"{}");
    };
    let missing = || {
        reply(
            "404 Not Found",
            "",
            br#"{"errors":[{"code":"NOT_FOUND","message":"not found"}]}"#,
        )
    };
    if let Some((_, sum)) = rest.split_once("/blobs/sha256:") {
        let found = state.blobs.get(&format!("sha256:{sum}"));
        return found.map_or_else(missing, |bytes| reply("200 OK", "", bytes));
    }
    match (call.method.as_str(), rest.split_once("/blobs/uploads/")) {
        ("POST", Some((repository, _))) => {
            return reply(
                "202 Accepted",
                &format!("Location: /v2/{repository}/blobs/uploads/1?state=x\r\n"),
                b"",
            );
        }
        ("PUT", Some(_)) => {
            let sum = digest(&call.body);
            if !query.contains("state=x") || !query.contains(&sum.replace(':', "%3A")) {
                return reply(
                    "400 Bad Request",
                    "",
                    br#"{"errors":[{"code":"DIGEST_INVALID"}]}"#,
                );
            }
            state.blobs.insert(sum, call.body.clone());
            return reply("201 Created", "", b"");
        }
        _ => {}
    }
    if call.method == "PUT" {
        let sum = digest(&call.body);
        let (repository, _) = rest.split_once("/manifests/").unwrap();
        for key in [rest, &format!("{repository}/manifests/{sum}")] {
            state
                .manifests
                .insert(key.to_owned(), (MANIFEST.to_owned(), call.body.clone()));
        }
        return reply("201 Created", "", b"");
    }
    let Some((kind, bytes)) = state.manifests.get(rest) else {
        return missing();
    };
    let headers = format!(
        "Content-Type: {kind}\r\nDocker-Content-Digest: {}\r\n",
        digest(bytes)
    );
    reply("200 OK", &headers, bytes)
}

fn basic(text: &str) -> String {
    format!("Basic {}", STANDARD.encode(text))
}

fn challenge(state: &State, call: &Call, port: u16) -> Option<String> {
    let given = call.authorization.as_deref();
    match &state.auth {
        Auth::Open => None,
        Auth::Basic(user) => {
            (given != Some(&basic(user))).then(|| r#"Basic realm="registry""#.to_owned())
        }
        Auth::Bearer(..) => {
            let token = given.and_then(|given| given.strip_prefix("Bearer "));
            let good = token.is_some_and(|token| {
                state
                    .tokens
                    .get(token)
                    .is_some_and(|until| tokio::time::Instant::now() < *until)
            });
            let scope = "repository:app:pull";
            (!good).then(|| {
                format!(
                    r#"Bearer realm="http://127.0.0.1:{port}/token",service="reg",scope="{scope}""#
                )
            })
        }
    }
}

fn token(state: &mut State, call: &Call) -> Reply {
    let Auth::Bearer(user, life) = state.auth else {
        return reply("404 Not Found", "", b"");
    };
    let identity = String::from_utf8_lossy(&call.body).contains("refresh_token=identity");
    if user.is_some_and(|user| call.authorization != Some(basic(user))) && !identity {
        return reply(
            "401 Unauthorized",
            "",
            br#"{"errors":[{"code":"UNAUTHORIZED","message":"wrong password"}]}"#,
        );
    }
    let token = format!("t{}", state.tokens.len());
    state
        .tokens
        .insert(token.clone(), tokio::time::Instant::now() + life);
    let body = json!({ state.token_field: token, "expires_in": life.as_secs() });
    reply("200 OK", "", body.to_string().as_bytes())
}
