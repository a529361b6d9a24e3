//! Fetches each program once, however many ask, and remembers what it may.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::artifact::{Artifact, Content, Origin};
use crate::error::ArtifactError;
use crate::figures::{Counters, FetchFigures};
use crate::file::{self, FILE_TIMEOUT};
use crate::former;
use crate::gate::{Gate, Slot};
use crate::http::{Download, Http, Validators};
use crate::joined::Joined;
use crate::location::Location;
use crate::memory::{Known, Memory};
use crate::oci::{Blob, Pulled, Registries, check_blob};
use crate::options::FetchOptions;
use crate::reference::OciLocation;
use crate::remote::Remote;
use crate::store::Store;
use crate::unpack::unpack;
use crate::verify::{check, normal};

mod signatures;

pub use signatures::Signatures;

/// How long what was fetched before is given without another try once its server gave nothing, or not in time: 30 s.
/// Else a server that accepts connections and stays silent would cost each caller [`REFRESH_WAIT`].
pub const STALE_FOR: Duration = Duration::from_secs(30);

/// How long a server is waited for where there is something that it gave before: 2 s. An API server gives a webhook ten
/// seconds or so for all it does. The download goes on, and what it brings is given to the next one who asks.
pub const REFRESH_WAIT: Duration = Duration::from_secs(2);

/// How many local files are read at once: 4. The next ones wait. They hold as much memory as downloads do.
pub const MAX_FILES_AT_ONCE: usize = 4;

/// How many contents are read from the disk cache at once: 2. A content that another call reads meanwhile is shared.
const MAX_CACHE_READS: usize = 2;

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
    http: Arc<Http>,
    registries: Registries,
    store: Option<Store>,
    memory: Memory,
    running: Arc<Joined<Result<Content, ArtifactError>>>,
    gate: Gate,
    files: Semaphore,
    disk: Semaphore,
    counters: Counters,
}

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
        let http = Arc::new(Http::new(options.limits(), options.certificates.clone()));
        Self(Arc::new(Inner {
            registries: Registries::new(Arc::clone(&http), options.credentials.clone()),
            options,
            http,
            store,
            memory: Memory::default(),
            running: Arc::default(),
            gate: Gate::default(),
            files: Semaphore::new(MAX_FILES_AT_ONCE),
            disk: Semaphore::new(MAX_CACHE_READS),
            counters: Counters::default(),
        }))
    }

    /// The program at `location`, which must have this SHA-256 if one is given (an empty one counts as none), or the
    /// one that the location names.
    ///
    /// A URL is answered without asking its server when the checksum is known and the cache holds that content, and
    /// when the server was asked less than [`FetchOptions::fresh_for`] ago. Otherwise the server is asked, whether
    /// there is something new if it lets itself be asked so; if it gives nothing, whatever its reason, or not within
    /// [`REFRESH_WAIT`], the bytes that the URL gave before are given, if they are still there, or else those that the
    /// existing tool has kept of it in the same folder ([`Origin::Stale`]).
    /// A wrong checksum or digest stays an error.
    pub async fn fetch(
        &self,
        location: &Location,
        checksum: Option<&str>,
    ) -> Result<Artifact, ArtifactError> {
        self.get(location, checksum, false).await
    }

    /// As [`Self::fetch`], but the server is always asked and must answer. A download that is under way already is
    /// joined, and one that has ended since this was called counts as well.
    pub async fn fetch_fresh(
        &self,
        location: &Location,
        checksum: Option<&str>,
    ) -> Result<Artifact, ArtifactError> {
        self.get(location, checksum, true).await
    }

    /// What it has done so far.
    pub fn figures(&self) -> FetchFigures {
        let Inner {
            counters, store, ..
        } = &*self.0;
        let store = store.as_ref();
        FetchFigures {
            memory_hits: counters.memory_hits.get(),
            disk_hits: counters.disk_hits.get(),
            downloads: counters.downloads.get(),
            unchanged: counters.unchanged.get(),
            failures: counters.failures.get(),
            stale: counters.stale.get(),
            evictions: store.map_or(0, Store::evictions),
            disk_bytes: store.map_or(0, Store::bytes),
        }
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
        let remote = match location {
            Location::File(path) => {
                let content = self.read_file(path).await?;
                check(&content, wanted, &name)?;
                return Ok(content.artifact(Origin::File));
            }
            Location::Http(http) => Remote::http(http.clone()),
            Location::Oci(artifact) => Remote::oci(artifact.clone()),
        };
        let asked = Instant::now();
        let cached = if fresh && !remote.is_immutable() {
            None
        } else {
            self.cached(&remote, wanted).await
        };
        let (content, origin) = match cached {
            Some(hit) => hit,
            None if fresh => (self.download(&remote, asked).await?, Origin::Server),
            None => self.download_or_stale(&remote, wanted, asked).await?,
        };
        check(&content, wanted, &name)?;
        Ok(content.artifact(origin))
    }

    async fn read_file(&self, path: &Path) -> Result<Content, ArtifactError> {
        let _permit = self.0.files.acquire().await;
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
    async fn cached(&self, remote: &Remote, wanted: Option<&str>) -> Option<(Content, Origin)> {
        let inner = &self.0;
        if remote.is_immutable()
            && let Some(known) = inner.known(remote.key()).await
            && let Some(content) = inner.hit(&known.sha256).await
        {
            return Some((content, Origin::Cache));
        }
        if let Some(wanted) = wanted {
            return Some((inner.hit(wanted).await?, Origin::Cache));
        }
        let known = inner.memory.url(remote.key()).filter(Known::is_current)?;
        Some((inner.hit(&known.sha256).await?, known.origin))
    }

    async fn download_or_stale(
        &self,
        remote: &Remote,
        wanted: Option<&str>,
        asked: Instant,
    ) -> Result<(Content, Origin), ArtifactError> {
        let fits = |(_, content): &(Known, Content)| {
            wanted.is_none_or(|sum| sum == content.digests.sha256)
        };
        let previous = self.0.previous(remote.key()).await.filter(fits);
        let is_former = previous.is_none();
        let previous = match previous {
            None => self.0.former(remote).await.filter(fits),
            ours => ours,
        };
        let Some((known, content)) = previous else {
            return Ok((self.download(remote, asked).await?, Origin::Server));
        };
        match tokio::time::timeout(REFRESH_WAIT, self.download(remote, asked)).await {
            Ok(Ok(content)) => return Ok((content, Origin::Server)),
            Ok(Err(error)) if error.is_mismatch() => return Err(error),
            Ok(Err(error)) => {
                tracing::warn!(url = %remote, error = &error as &dyn std::error::Error, "using the module fetched before");
            }
            Err(_) => {
                tracing::warn!(url = %remote, "using the module fetched before while its server takes its time");
            }
        }
        if is_former {
            tracing::warn!(url = %remote, "it is the one that the existing tool has kept in the folder of modules");
            self.0.adopt(remote, &content).await;
        }
        let known = Known::new(&known.sha256, known.validators, STALE_FOR, Origin::Stale);
        self.0.memory.put_stale(remote.key(), known);
        self.0.counters.stale.one_more();
        Ok((content, Origin::Stale))
    }

    /// Downloads, or joins the download that is under way, or takes what one gave that has ended since this was asked for.
    async fn download(&self, remote: &Remote, asked: Instant) -> Result<Content, ArtifactError> {
        let (running, key) = (&self.0.running, remote.key());
        // Where nobody else is at it, what one that has ended gave is known by now.
        let ended = || {
            let known = self.0.memory.url(key)?;
            known.is_learned_since(asked).then_some(known.sha256)
        };
        let work = || {
            let (inner, remote) = (Arc::clone(&self.0), remote.clone());
            async move { inner.download(&remote).await }
        };
        let result = match running.join_or_start(key, ended, work).await {
            Ok(result) => result,
            Err(sha256) => {
                if let Some((content, _)) = self.0.content(&sha256).await {
                    return Ok(content);
                }
                // Nobody holds its bytes any more, and the disk has none.
                let nothing = || None::<Infallible>;
                let Ok(result) = running.join_or_start(key, nothing, work).await;
                result
            }
        };
        result.unwrap_or_else(|| {
            Err(ArtifactError::Ended {
                location: remote.to_string(),
            })
        })
    }
}

/// Where a content that was kept is from.
enum Kept {
    Memory,
    Disk,
}

/// What came from a server, as it came.
struct Received {
    bytes: Vec<u8>,
    validators: Validators,
    /// What a registry said that the bytes are.
    blob: Option<(OciLocation, Blob)>,
}

impl Inner {
    async fn download(self: &Arc<Self>, remote: &Remote) -> Result<Content, ArtifactError> {
        let downloaded = self.download_uncounted(remote).await;
        if downloaded.is_err() {
            self.counters.failures.one_more();
        }
        downloaded
    }

    async fn download_uncounted(
        self: &Arc<Self>,
        remote: &Remote,
    ) -> Result<Content, ArtifactError> {
        let slot = self.gate.slot(remote.host());
        slot.take().await;
        let previous = self.previous(remote.key()).await;
        let known = previous.as_ref().map(|(known, _)| &known.validators);
        let received = self.receive(remote, known, &slot).await?;
        let (content, validators) = match (received, previous) {
            (Some(body), _) => {
                let validators = body.validators.clone();
                let content = self.take_in(remote, body).await?;
                self.counters.downloads.one_more();
                (content, validators)
            }
            (None, Some((known, content))) => {
                self.counters.unchanged.one_more();
                (content, known.validators)
            }
            (None, None) => {
                return Err(ArtifactError::Status {
                    url: remote.to_string(),
                    status: 304,
                });
            }
        };
        let known = Known::new(
            &content.digests.sha256,
            validators,
            self.options.fresh_for,
            Origin::Cache,
        );
        self.memory.put_url(remote.key(), known);
        Ok(content)
    }

    /// What the server has, or nothing if that is what is known already.
    async fn receive(
        &self,
        remote: &Remote,
        known: Option<&Validators>,
        slot: &Slot,
    ) -> Result<Option<Received>, ArtifactError> {
        match remote {
            Remote::Http(http, ..) => {
                let known = known.cloned().unwrap_or_default();
                Ok(match self.http.get(http, &known, slot).await? {
                    Download::Body(bytes, validators) => Some(Received {
                        bytes,
                        validators,
                        blob: None,
                    }),
                    Download::NotModified => None,
                })
            }
            Remote::Oci(at, ..) => {
                let known = known.and_then(|known| known.etag.as_deref());
                Ok(match self.registries.pull(at, known, slot).await? {
                    Pulled::Layer {
                        packed,
                        layer,
                        digest,
                    } => Some(Received {
                        bytes: packed,
                        // A manifest's digest says what an ETag says.
                        validators: Validators {
                            etag: Some(digest),
                            last_modified: None,
                        },
                        blob: Some((at.clone(), layer)),
                    }),
                    Pulled::Same => None,
                })
            }
        }
    }

    /// Checks, unpacks, digests and stores a body.
    async fn take_in(
        self: &Arc<Self>,
        remote: &Remote,
        body: Received,
    ) -> Result<Content, ArtifactError> {
        let (inner, remote) = (Arc::clone(self), remote.clone());
        let location = remote.to_string();
        self.blocking(move || {
            if let Some((at, layer)) = &body.blob {
                check_blob(at, &body.bytes, layer)?;
            }
            let name = remote.to_string();
            let content = Content::digest(unpack(body.bytes, inner.options.max_bytes, &name)?);
            if let Some(Err(error)) = inner
                .store
                .as_ref()
                .map(|store| store.put(remote.key(), &content, &body.validators))
            {
                tracing::warn!(%error, "cannot keep a downloaded module on disk");
            }
            inner.memory.put_content(&content);
            Ok(content)
        })
        .await
        .unwrap_or(Err(ArtifactError::Ended { location }))
    }

    /// What the URL gave last, in this process or an earlier one, with its bytes.
    async fn previous(self: &Arc<Self>, url: &str) -> Option<(Known, Content)> {
        let known = self.known(url).await?;
        let (content, _) = self.content(&known.sha256).await?;
        Some((known, content))
    }

    /// What the existing tool has kept of a URL in the same folder.
    async fn former(self: &Arc<Self>, remote: &Remote) -> Option<(Known, Content)> {
        let dir = self.options.cache_dir.clone()?;
        let _permit = self.disk.acquire().await;
        let (name, max_bytes) = (remote.former_name(), self.options.max_bytes);
        let content = self
            .blocking(move || former::read(&dir, &name, max_bytes))
            .await??;
        let (sha256, unasked) = (&content.digests.sha256, Validators::default());
        let known = Known::new(sha256, unasked, STALE_FOR, Origin::Stale);
        Some((known, content))
    }

    /// Keeps it as what the URL gave, so that it is looked for once; unless the server gave something meanwhile.
    async fn adopt(self: &Arc<Self>, remote: &Remote, content: &Content) {
        self.memory.put_content(content);
        let (inner, remote, content) = (Arc::clone(self), remote.clone(), content.clone());
        let keep = move || {
            let store = inner.store.as_ref()?;
            match store.entry(remote.key()) {
                Some(_) => None,
                None => Some(store.put(remote.key(), &content, &Validators::default())),
            }
        };
        if let Some(Some(Err(error))) = self.blocking(keep).await {
            tracing::warn!(%error, "cannot keep a module on disk");
        }
    }

    /// What the URL gave last, in this process or an earlier one; its bytes may be gone.
    async fn known(self: &Arc<Self>, url: &str) -> Option<Known> {
        match self.memory.url(url) {
            Some(known) => Some(known),
            None => self.stored_entry(url).await,
        }
    }

    /// A content that is given without asking its server.
    async fn hit(self: &Arc<Self>, sha256: &str) -> Option<Content> {
        let (content, from) = self.content(sha256).await?;
        match from {
            Kept::Memory => self.counters.memory_hits.one_more(),
            Kept::Disk => self.counters.disk_hits.one_more(),
        }
        Some(content)
    }

    async fn stored_entry(self: &Arc<Self>, url: &str) -> Option<Known> {
        self.store.as_ref()?;
        let (inner, url) = (Arc::clone(self), url.to_owned());
        let entry = self
            .blocking(move || inner.store.as_ref()?.entry(&url))
            .await??;
        Some(entry.into())
    }

    /// A content that somebody holds, or that the disk cache has.
    async fn content(self: &Arc<Self>, sha256: &str) -> Option<(Content, Kept)> {
        if let Some(content) = self.memory.content(sha256) {
            return Some((content, Kept::Memory));
        }
        self.store.as_ref()?;
        let _permit = self.disk.acquire().await;
        let (inner, sha256) = (Arc::clone(self), sha256.to_owned());
        self.blocking(move || {
            let read = || {
                inner
                    .store
                    .as_ref()?
                    .content(&sha256, inner.options.max_bytes)
            };
            if let Some(content) = inner.memory.content(&sha256) {
                return Some((content, Kept::Memory));
            }
            let content = read()?;
            inner.memory.put_content(&content);
            Some((content, Kept::Disk))
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

#[cfg(test)]
mod tests;
