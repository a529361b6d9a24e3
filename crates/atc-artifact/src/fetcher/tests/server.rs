//! A small HTTP server for tests: every answer is written byte by byte as a test wants it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What is sent when a path is asked for.
#[derive(Clone)]
pub(super) enum Answer {
    /// Raw bytes, head and body; then the connection is closed.
    Raw(Vec<u8>),
    /// As `Raw`, but only after this long.
    Late(Duration, Vec<u8>),
    /// One byte each 10 ms, for ever.
    Trickle,
    /// Nothing, for ever.
    Silence,
}

/// 200 with this body and these further header lines.
pub(super) fn ok(body: &[u8], headers: &str) -> Answer {
    Answer::Raw(whole("200 OK", body, headers))
}

/// Any status with this body.
pub(super) fn status(line: &str, headers: &str) -> Answer {
    Answer::Raw(whole(line, b"words", headers))
}

pub(super) fn whole(status: &str, body: &[u8], headers: &str) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// One request as it came: its first line and headers.
pub(super) type Request = String;

#[derive(Default)]
struct Shared {
    answers: Mutex<HashMap<String, Answer>>,
    requests: Mutex<Vec<Request>>,
}

/// A server on a port of its own until it is dropped.
pub(super) struct Server {
    pub(super) port: u16,
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::<Shared>::default();
        let state = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&state)));
            }
        });
        Self { port, shared, task }
    }

    /// From now on this path gives this answer; its URL.
    pub(super) fn on(&self, path: &str, answer: Answer) -> String {
        self.shared
            .answers
            .lock()
            .unwrap()
            .insert(path.to_owned(), answer);
        self.url(path)
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The requests so far whose first line holds this path.
    pub(super) fn requests(&self, path: &str) -> Vec<Request> {
        let wanted = format!("GET {path} ");
        self.shared
            .requests
            .lock()
            .unwrap()
            .iter()
            .filter(|one| one.starts_with(&wanted))
            .cloned()
            .collect()
    }

    pub(super) fn hits(&self, path: &str) -> usize {
        self.requests(path).len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    shared.requests.lock().unwrap().push(head);
    let answer = shared.answers.lock().unwrap().get(&path).cloned();
    let answer = answer.unwrap_or_else(|| status("404 Not Found", ""));
    let bytes = match answer {
        Answer::Raw(bytes) => bytes,
        Answer::Late(time, bytes) => {
            tokio::time::sleep(time).await;
            bytes
        }
        Answer::Silence => return std::future::pending().await,
        Answer::Trickle => {
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n")
                .await;
            while stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            return;
        }
    };
    let _ = stream.write_all(&bytes).await;
    let _ = stream.shutdown().await;
}
