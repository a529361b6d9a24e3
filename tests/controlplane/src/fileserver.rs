//! A small HTTP server of files held in memory, which counts how often each is fetched.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};

/// How long a client may take to send its request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves what it was given on a free port of this machine, until the process ends.
#[derive(Debug, Clone)]
pub struct FileServer {
    port: u16,
    files: Arc<Mutex<HashMap<String, File>>>,
}

#[derive(Debug, Default)]
struct File {
    content: Arc<Vec<u8>>,
    hits: u64,
}

impl FileServer {
    /// Starts a server without files.
    ///
    /// # Errors
    ///
    /// When there is no free port.
    pub fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
        let server = Self {
            port: listener.local_addr()?.port(),
            files: Arc::default(),
        };
        let files = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let files = files.clone();
                thread::spawn(move || _ = files.answer(&stream));
            }
        });
        Ok(server)
    }

    /// Serves `content` as `/name` from now on, and returns its URL. Its count goes on.
    pub fn put(&self, name: &str, content: impl Into<Vec<u8>>) -> String {
        self.files().entry(name.to_owned()).or_default().content = Arc::new(content.into());
        self.url(name)
    }

    /// Serves `/name` no longer.
    pub fn remove(&self, name: &str) {
        self.files().remove(name);
    }

    /// The URL of a file, whether it is there or not.
    pub fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}", self.port)
    }

    /// How often a file was fetched.
    pub fn hits(&self, name: &str) -> u64 {
        self.files().get(name).map_or(0, |file| file.hits)
    }

    fn files(&self) -> MutexGuard<'_, HashMap<String, File>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One request a connection.
    fn answer(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut head = BufReader::new(stream).lines();
        let request = head.next().transpose()?.unwrap_or_default();
        while head
            .next()
            .transpose()?
            .is_some_and(|line| !line.is_empty())
        {}
        let mut words = request.split(' ');
        let (method, path) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let name = path
            .trim_start_matches('/')
            .split('?')
            .next()
            .unwrap_or_default();
        let content = self.files().get_mut(name).map(|file| {
            file.hits += u64::from(method == "GET");
            Arc::clone(&file.content)
        });
        let (status, content) = match content {
            Some(content) => ("200 OK", content),
            None => ("404 Not Found", Arc::new(b"not found".to_vec())),
        };
        let size = content.len();
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
        )?;
        if method != "HEAD" {
            stream.write_all(&content)?;
        }
        stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpStream,
    };

    use super::FileServer;

    fn get(server: &FileServer, name: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        write!(stream, "GET /{name} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn serves_and_counts() {
        let server = FileServer::start().unwrap();
        assert!(server.put("a/b.wasm", "bytes").ends_with("/a/b.wasm"));
        assert!(get(&server, "a/b.wasm").ends_with("\r\n\r\nbytes"));
        assert!(get(&server, "a/b.wasm?x=1").starts_with("HTTP/1.1 200"));
        assert!(get(&server, "other").starts_with("HTTP/1.1 404"));
        assert_eq!((server.hits("a/b.wasm"), server.hits("other")), (2, 0));
    }
}
