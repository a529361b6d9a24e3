//! Fetches each program once, however many ask, and remembers what it may.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::artifact::{Artifact, Content, Held, Origin};
use crate::error::ArtifactError;
use crate::file::{self, FILE_TIMEOUT};
use crate::http::{
    DEFAULT_CONNECT_TIMEOUT, DEFAULT_STALL_TIMEOUT, DEFAULT_TIMEOUT, Download, Http, Limits,
    Validators,
};
use crate::location::{HttpLocation, Location};
use crate::store::{DEFAULT_CACHE_BYTES, Store};
use crate::unpack::{DEFAULT_MAX_BYTES, unpack};
use crate::verify::{check, normal};

/// How long an answer of a server counts as current unless told otherwise: 1 min. Within it, [`Fetcher::fetch`] gives
/// what was fetched before.
pub const DEFAULT_FRESH_FOR: Duration = Duration::from_secs(60);

/// How long what was fetched before is given without another try once its server could not be reached: 30 s. A server
/// that accepts connections and stays silent would otherwise cost each caller the whole timeout.
pub const STALE_FOR: Duration = Duration::from_secs(30);

/// How many files and downloads are held in memory at once: 8. The next ones wait. With the default bound of
/// 256 MiB, packed and unpacked together, that is the most memory that hostile servers can take; usual modules have
/// 5 MiB.
pub const MAX_AT_ONCE: usize = 8;

/// How many URLs are remembered in memory: 4,096, of some 500 bytes each.
pub const MAX_KNOWN_URLS: usize = 4096;

/// How a [`Fetcher`] behaves.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// Where downloads are kept. `None`: nowhere but in memory, and there only while somebody uses them. Kept in a
    /// folder of its own below this one, which only this user can write to; a cache that does not work is logged and
    /// done without.
    pub cache_dir: Option<PathBuf>,
    /// How much is kept there, in bytes; default [`DEFAULT_CACHE_BYTES`].
    pub cache_max_bytes: u64,
    /// How large a program may be, in bytes, as stored and after unpacking; default [`DEFAULT_MAX_BYTES`].
    pub max_bytes: u64,
    /// How long connecting may take; default [`DEFAULT_CONNECT_TIMEOUT`].
    pub connect_timeout: Duration,
    /// How long a server may stay silent; default [`DEFAULT_STALL_TIMEOUT`].
    pub stall_timeout: Duration,
    /// How long a whole download may take; default [`DEFAULT_TIMEOUT`].
    pub timeout: Duration,
    /// How long an answer counts as current; default [`DEFAULT_FRESH_FOR`].
    pub fresh_for: Duration,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            cache_dir: None,
            cache_max_bytes: DEFAULT_CACHE_BYTES,
            max_bytes: DEFAULT_MAX_BYTES,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            stall_timeout: DEFAULT_STALL_TIMEOUT,
            timeout: DEFAULT_TIMEOUT,
            fresh_for: DEFAULT_FRESH_FOR,
        }
    }
}

/// Fetches programs. One for the whole process; cheap to clone.
///
/// # Guarantees
/// - However many ask for a URL at the same time, it is downloaded once, and all get the same result. The download
///   goes on when they have given up waiting.
/// - Nothing is given whose checksum, explicit or [inferred](Location::inferred_checksum), is not right, wherever the
///   bytes come from.
/// - Errors are not remembered: the next call tries again.
///
/// # Caveats
/// Local files are read each time. It must be used inside a tokio runtime with time and IO enabled.
#[derive(Clone)]
pub struct Fetcher(Arc<Inner>);

struct Inner {
    options: FetchOptions,
    http: Http,
    store: Option<Store>,
    known: Mutex<HashMap<String, Known>>,
    running: Mutex<HashMap<String, Running>>,
    gate: Semaphore,
}

/// What is remembered of a URL.
#[derive(Clone)]
struct Known {
    held: Held,
    validators: Validators,
    /// Until when this is given without asking the server; `None` if this process never asked it.
    current_until: Option<Instant>,
    /// What a cached answer is called meanwhile: [`Origin::Cache`], or [`Origin::Stale`] after a failed try.
    origin: Origin,
    used: Instant,
}

type Running = Shared<BoxFuture<'static, Result<Content, ArtifactError>>>;

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetcher")
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}

impl Fetcher {
    /// A fetcher with these options. Opens the disk cache, so it touches the disk; nothing else is done before the
    /// first fetch.
    pub fn new(options: FetchOptions) -> Self {
        let store = options
            .cache_dir
            .as_deref()
            .and_then(|dir| open_store(dir, options.cache_max_bytes));
        let limits = Limits {
            connect: options.connect_timeout,
            stall: options.stall_timeout,
            total: options.timeout,
            max_bytes: options.max_bytes,
        };
        Self(Arc::new(Inner {
            options,
            http: Http::new(limits),
            store,
            known: Mutex::default(),
            running: Mutex::default(),
            gate: Semaphore::new(MAX_AT_ONCE),
        }))
    }

    /// The program at `location`, which must have this SHA-256 if one is given (an empty one counts as none), or the
    /// one that the location names.
    ///
    /// A URL is answered without asking its server when the checksum is known and the cache holds that content, and
    /// when the server was asked less than [`FetchOptions::fresh_for`] ago. Otherwise the server is asked, whether
    /// there is something new if it lets itself be asked so; if it cannot be reached or is in trouble
    /// ([`ArtifactError::is_transient`]), the bytes that the URL gave before are given, if they are still there
    /// ([`Origin::Stale`]).
    pub async fn fetch(
        &self,
        location: &Location,
        checksum: Option<&str>,
    ) -> Result<Artifact, ArtifactError> {
        self.get(location, checksum, false).await
    }

    /// As [`Self::fetch`], but the server is always asked and must answer. A download that is under way already is
    /// joined.
    pub async fn fetch_fresh(
        &self,
        location: &Location,
        checksum: Option<&str>,
    ) -> Result<Artifact, ArtifactError> {
        self.get(location, checksum, true).await
    }

    async fn get(
        &self,
        location: &Location,
        checksum: Option<&str>,
        fresh: bool,
    ) -> Result<Artifact, ArtifactError> {
        let wanted = checksum
            .and_then(normal)
            .or_else(|| location.inferred_checksum());
        let wanted = wanted.as_deref();
        let name = location.to_string();
        let (content, origin) = match location {
            Location::Oci(_) => return Err(ArtifactError::Unsupported { location: name }),
            Location::File(path) => (self.read_file(path).await?, Origin::File),
            Location::Http(http) if fresh => (self.download(http).await?, Origin::Server),
            Location::Http(http) => match self.cached(http, wanted).await {
                Some(hit) => hit,
                None => self.download_or_stale(http, wanted).await?,
            },
        };
        check(&content, wanted, &name)?;
        Ok(content.artifact(origin))
    }

    async fn read_file(&self, path: &Path) -> Result<Content, ArtifactError> {
        let _permit = self.0.gate.acquire().await;
        let (owned, max_bytes) = (path.to_owned(), self.0.options.max_bytes);
        let read = tokio::task::spawn_blocking(move || file::read(&owned, max_bytes));
        let location = || path.display().to_string();
        match tokio::time::timeout(FILE_TIMEOUT, read).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(ArtifactError::Ended {
                location: location(),
            }),
            Err(_) => Err(ArtifactError::Timeout {
                location: location(),
                limit: FILE_TIMEOUT,
            }),
        }
    }

    /// What may be given without asking the server.
    async fn cached(&self, http: &HttpLocation, wanted: Option<&str>) -> Option<(Content, Origin)> {
        let known = self.0.known(http.url().as_str());
        let current = known.as_ref().filter(|known| {
            known
                .current_until
                .is_some_and(|until| Instant::now() < until)
        });
        match wanted {
            None => {
                let current = current?;
                Some((self.0.content(&current.held).await?, current.origin))
            }
            Some(wanted) => {
                let held = known
                    .map(|known| known.held)
                    .filter(|held| held.digests.sha256 == wanted);
                let content = match held {
                    Some(held) => self.0.content(&held).await,
                    None => self.0.stored_content(wanted.to_owned()).await,
                };
                Some((content?, Origin::Cache))
            }
        }
    }

    async fn download_or_stale(
        &self,
        http: &HttpLocation,
        wanted: Option<&str>,
    ) -> Result<(Content, Origin), ArtifactError> {
        let error = match self.download(http).await {
            Ok(content) => return Ok((content, Origin::Server)),
            Err(error) if !error.is_transient() => return Err(error),
            Err(error) => error,
        };
        let Some((known, content)) = self.0.previous(http.url().as_str()).await else {
            return Err(error);
        };
        if wanted.is_some_and(|wanted| wanted != content.digests.sha256) {
            return Err(error);
        }
        tracing::warn!(url = %http, error = &error as &dyn std::error::Error, "using the module fetched before");
        self.0.remember(
            http.url().as_str(),
            known.held,
            known.validators,
            STALE_FOR,
            Origin::Stale,
        );
        Ok((content, Origin::Stale))
    }

    /// Downloads, or joins the download that is under way.
    async fn download(&self, http: &HttpLocation) -> Result<Content, ArtifactError> {
        let running = {
            let mut running = lock(&self.0.running);
            match running.get(http.url().as_str()) {
                Some(running) => running.clone(),
                None => {
                    let started = self.start(http.clone());
                    running.insert(http.url().as_str().to_owned(), started.clone());
                    started
                }
            }
        };
        running.await
    }

    /// Runs a download on a task of its own, so that it outlives whoever asked first.
    fn start(&self, http: HttpLocation) -> Running {
        let (inner, name) = (Arc::clone(&self.0), http.to_string());
        let task = tokio::spawn(async move {
            // Also when the download panics: who asks next must not join a task that is over.
            let _end = Entered {
                inner: Arc::clone(&inner),
                url: http.url().as_str().to_owned(),
            };
            inner.download(&http).await
        });
        async move {
            task.await
                .unwrap_or(Err(ArtifactError::Ended { location: name }))
        }
        .boxed()
        .shared()
    }
}

/// Takes a download off the list of running ones when it ends, in whatever way.
struct Entered {
    inner: Arc<Inner>,
    url: String,
}

impl Drop for Entered {
    fn drop(&mut self) {
        lock(&self.inner.running).remove(&self.url);
    }
}

impl Inner {
    async fn download(self: &Arc<Self>, http: &HttpLocation) -> Result<Content, ArtifactError> {
        let url = http.url().as_str();
        let _permit = self.gate.acquire().await;
        let previous = self.previous(url).await;
        let known = previous
            .as_ref()
            .map(|(known, _)| known.validators.clone())
            .unwrap_or_default();
        let (content, validators) = match (self.http.get(http, &known).await?, previous) {
            (Download::Body(body, validators), _) => {
                (self.take_in(http, body, &validators).await?, validators)
            }
            (Download::NotModified, Some((known, content))) => (content, known.validators),
            (Download::NotModified, None) => {
                return Err(ArtifactError::Status {
                    url: http.to_string(),
                    status: 304,
                });
            }
        };
        self.remember(
            url,
            content.downgrade(),
            validators,
            self.options.fresh_for,
            Origin::Cache,
        );
        Ok(content)
    }

    /// Unpacks, digests and stores a body.
    async fn take_in(
        self: &Arc<Self>,
        http: &HttpLocation,
        body: Vec<u8>,
        validators: &Validators,
    ) -> Result<Content, ArtifactError> {
        let (inner, http, validators) = (Arc::clone(self), http.clone(), validators.clone());
        let location = http.to_string();
        self.blocking(move || {
            let content =
                Content::digest(unpack(body, inner.options.max_bytes, &http.to_string())?);
            if let Some(Err(error)) = inner
                .store
                .as_ref()
                .map(|store| store.put(http.url().as_str(), &content, &validators))
            {
                tracing::warn!(%error, "cannot keep a downloaded module on disk");
            }
            Ok(content)
        })
        .await
        .unwrap_or(Err(ArtifactError::Ended { location }))
    }

    /// What the URL gave last, in this process or an earlier one, with its bytes.
    async fn previous(self: &Arc<Self>, url: &str) -> Option<(Known, Content)> {
        let known = match self.known(url) {
            Some(known) => known,
            None => self.stored_entry(url).await?,
        };
        let content = self.content(&known.held).await?;
        Some((known, content))
    }

    async fn stored_entry(self: &Arc<Self>, url: &str) -> Option<Known> {
        self.store.as_ref()?;
        let (inner, url) = (Arc::clone(self), url.to_owned());
        let entry = self
            .blocking(move || inner.store.as_ref()?.entry(&url))
            .await??;
        Some(Known {
            held: Held::new(entry.digests),
            validators: entry.validators,
            current_until: None,
            origin: Origin::Cache,
            used: Instant::now(),
        })
    }

    async fn content(self: &Arc<Self>, held: &Held) -> Option<Content> {
        match held.upgrade() {
            Some(content) => Some(content),
            None => self.stored_content(held.digests.sha256.clone()).await,
        }
    }

    async fn stored_content(self: &Arc<Self>, sha256: String) -> Option<Content> {
        self.store.as_ref()?;
        let inner = Arc::clone(self);
        self.blocking(move || {
            inner
                .store
                .as_ref()?
                .content(&sha256, inner.options.max_bytes)
        })
        .await?
    }

    /// Runs what blocks; `None` if the process is stopping.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        tokio::task::spawn_blocking(work).await.ok()
    }

    fn known(&self, url: &str) -> Option<Known> {
        let mut all = lock(&self.known);
        let known = all.get_mut(url)?;
        known.used = Instant::now();
        Some(known.clone())
    }

    fn remember(
        &self,
        url: &str,
        held: Held,
        validators: Validators,
        current_for: Duration,
        origin: Origin,
    ) {
        let now = Instant::now();
        let current_until = now.checked_add(current_for);
        let mut all = lock(&self.known);
        all.insert(
            url.to_owned(),
            Known {
                held,
                validators,
                current_until,
                origin,
                used: now,
            },
        );
        if all.len() > MAX_KNOWN_URLS {
            let oldest = all
                .iter()
                .min_by_key(|(_, known)| known.used)
                .map(|(url, _)| url.clone());
            if let Some(oldest) = oldest {
                all.remove(&oldest);
            }
        }
    }
}

fn open_store(dir: &Path, max_bytes: u64) -> Option<Store> {
    match Store::open(dir, max_bytes) {
        Ok(store) => Some(store),
        Err(error) => {
            tracing::warn!(dir = %dir.display(), %error, "going on without a cache of modules on disk");
            None
        }
    }
}

/// No code panics while it holds one of these locks, and what they guard is whole between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
