//! One wasmtime engine, its ticker, its threads and its modules: one per process.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use wasmtime::{Engine, Linker, Store};
use wasmtime_wasi::{I32Exit, p1};

use crate::cache::DiskCache;
use crate::duration::GoDuration;
use crate::error::FlightError;
use crate::figures::{Counters, RuntimeFigures, count};
use crate::host::{self, Guest, NoCluster};
use crate::limits::{Bounds, Limiter};
use crate::loaded::{Loaded, Loading};
use crate::module::Module;
use crate::ticker::Ticker;
use crate::{compile, engine};

/// How modules are compiled and kept.
#[derive(Clone, Debug)]
pub struct RuntimeOptions {
    /// A folder for compiled modules, created if need be; inside, a folder of our own with access for us alone. `None`,
    /// the default, keeps nothing between processes. Where it can't be used (read only, open to others), a warning is
    /// logged and nothing is kept.
    pub cache_dir: Option<PathBuf>,
    /// Bytes in that folder; the least recently used go first. Default: 1 GiB, a hundred Go modules.
    pub cache_max_bytes: u64,
    /// Modules held in memory while nobody uses them. Default: 64.
    pub loaded_modules: usize,
    /// Bytes of compiled code held in memory while nobody uses it. Default: 256 MiB, twenty Go modules.
    pub loaded_max_bytes: u64,
    /// Bytes of a module before compilation. Default: 128 MiB; a Go flight has 4 to 60, and compiling takes some 25 bytes
    /// of memory for each.
    pub module_max_bytes: usize,
    /// Modules compiled at the same time. Default: 2, so that one that takes long does not hold up all others.
    pub compiles: NonZeroUsize,
    /// How long anybody waits for a module to be compiled. Default: 5 min, fifty times what the largest take.
    pub compile_time: Duration,
    /// Threads that flights run on. Default: one per core.
    pub threads: Option<NonZeroUsize>,
    /// Whether code is to be fast or soon there.
    pub compiler: Compiler,
}

/// What the compiler aims at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compiler {
    /// Fast code: for modules that run again and again.
    #[default]
    Fast,
    /// A compile that takes a third of the time, for code that is a third larger and slower: for a module that runs once.
    Quick,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            cache_dir: None,
            cache_max_bytes: 1 << 30,
            loaded_modules: 64,
            loaded_max_bytes: 256 << 20,
            module_max_bytes: 128 << 20,
            compiles: NonZeroUsize::MIN.saturating_add(1),
            compile_time: Duration::from_mins(5),
            threads: None,
            compiler: Compiler::default(),
        }
    }
}

/// Compiles and runs flights. Cheap to clone; make one per process.
///
/// Flights run on threads of the runtime's own, in slices of 10 ms, so that a guest that never rests takes turns with
/// other guests and never holds up the program around them.
#[derive(Clone)]
pub struct Runtime(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<Guest>,
    /// What the linker offers, as module and name.
    pub(crate) offered: HashSet<(String, String)>,
    pub(crate) ticker: Ticker,
    pub(crate) disk: Option<DiskCache>,
    pub(crate) compiling: Semaphore,
    pub(crate) options: RuntimeOptions,
    pub(crate) counters: Counters,
    loaded: Loaded,
    threads: Threads,
}

/// The tokio runtime of the flights; let go of without waiting, which also is allowed inside another one.
struct Threads {
    owned: Option<tokio::runtime::Runtime>,
    handle: Handle,
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(owned) = self.owned.take() {
            owned.shutdown_background();
        }
    }
}

/// Identifies a module: the SHA-256 of its bytes.
pub type ModuleDigest = [u8; 32];

impl Runtime {
    /// A runtime of these options.
    ///
    /// # Errors
    ///
    /// [`FlightError::Internal`] where threads or the engine can't be had.
    pub fn new(options: RuntimeOptions) -> Result<Self, FlightError> {
        let engine = engine::new(options.compiler)
            .map_err(|error| FlightError::internal(format!("{error:#}")))?;
        let threads = threads(&options).map_err(FlightError::internal)?;
        let ticker = Ticker::start(&engine).map_err(FlightError::internal)?;
        let linker = link(&engine).map_err(|error| FlightError::internal(format!("{error:#}")))?;
        let offered = offered(&engine, &linker, threads.handle());
        let disk = options
            .cache_dir
            .as_ref()
            .and_then(|dir| DiskCache::open(dir, options.cache_max_bytes, &engine));
        let loaded = Loaded::new(options.loaded_modules, options.loaded_max_bytes);
        let compiling = Semaphore::new(options.compiles.get().min(Semaphore::MAX_PERMITS));
        let threads = Threads {
            handle: threads.handle().clone(),
            owned: Some(threads),
        };
        Ok(Self(Arc::new(Inner {
            engine,
            linker,
            offered,
            ticker,
            disk,
            compiling,
            options,
            counters: Counters::default(),
            loaded,
            threads,
        })))
    }

    /// The module of these bytes: from memory, from the disk cache, or compiled; once, however many ask at the same
    /// time.
    ///
    /// # Errors
    ///
    /// [`FlightError::Compile`] and [`FlightError::Link`] for a module that can't be used here.
    pub async fn module(&self, wasm: &Bytes) -> Result<Module, FlightError> {
        self.module_with_digest(Sha256::digest(wasm).into(), wasm)
            .await
    }

    /// As [`Runtime::module`] for whoever knows the SHA-256 of the bytes already: hashing 5 MB takes longer than a run.
    ///
    /// The digest must be that of the bytes; another one would give this module to whoever asks for that.
    pub async fn module_with_digest(
        &self,
        digest: ModuleDigest,
        wasm: &Bytes,
    ) -> Result<Module, FlightError> {
        let mut waiting = match self.0.loaded.get(digest) {
            Loading::Ready(linked) => {
                count(&self.0.counters.memory_hits);
                return Ok(Module::new(self.clone(), linked));
            }
            Loading::Underway(waiting) => waiting,
            Loading::Yours(job, waiting) => {
                let (runtime, wasm) = (self.clone(), wasm.clone());
                self.handle().spawn(async move {
                    let linked = compile::module(&runtime, digest, wasm).await;
                    job.done(&runtime.0.loaded, linked);
                });
                waiting
            }
        };
        let limit = self.0.options.compile_time;
        let done = match tokio::time::timeout(limit, waiting.wait_for(Option::is_some)).await {
            Ok(Ok(done)) => done.clone(),
            Ok(Err(_)) => None,
            Err(_) => {
                return Err(FlightError::compile(format!(
                    "compiling it takes longer than {}",
                    GoDuration(limit)
                )));
            }
        };
        let linked =
            done.unwrap_or_else(|| Err(FlightError::internal("the compile ended early")))?;
        Ok(Module::new(self.clone(), linked))
    }

    /// What it has done so far.
    pub fn figures(&self) -> RuntimeFigures {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (counters, disk) = (&self.0.counters, self.0.disk.as_ref());
        RuntimeFigures {
            memory_hits: get(&counters.memory_hits),
            disk_hits: get(&counters.disk_hits),
            compiles: get(&counters.compiles),
            failures: get(&counters.failures),
            evictions: disk.map_or(0, DiskCache::evictions),
            disk_bytes: disk.map_or(0, DiskCache::bytes),
        }
    }

    /// The module of this digest if it is in memory: then its bytes need not even be fetched.
    pub fn loaded(&self, digest: ModuleDigest) -> Option<Module> {
        Some(Module::new(self.clone(), self.0.loaded.peek(digest)?))
    }

    /// Where flights run.
    pub(crate) fn handle(&self) -> &Handle {
        &self.0.threads.handle
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime")
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}

fn threads(options: &RuntimeOptions) -> std::io::Result<tokio::runtime::Runtime> {
    /// Blocking threads beside the compiles: loading from disk.
    const LOADS: usize = 4;
    let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    tokio::runtime::Builder::new_multi_thread()
        .thread_name("flight")
        .worker_threads(options.threads.unwrap_or_else(cores).get())
        .max_blocking_threads(options.compiles.get().saturating_add(LOADS))
        // A task may take a slice of 10 ms each time: look at timers, sockets and newcomers after each of them, not
        // after 61 as is the default, which would be most of a second.
        .event_interval(1)
        .global_queue_interval(1)
        .enable_time()
        .build()
}

fn link(engine: &Engine) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    p1::add_to_linker_async(&mut linker, |guest: &mut Guest| &mut guest.wasi)?;
    // wasmtime's own turns every code above 125 into a trap, and codes are for the user to see.
    linker.allow_shadowing(true);
    linker.func_wrap(
        "wasi_snapshot_preview1",
        "proc_exit",
        |code: i32| -> wasmtime::Result<()> { Err(I32Exit(code).into()) },
    )?;
    linker.allow_shadowing(false);
    host::link(&mut linker)?;
    Ok(linker)
}

fn offered(engine: &Engine, linker: &Linker<Guest>, home: &Handle) -> HashSet<(String, String)> {
    let mut store = Store::new(
        engine,
        Guest {
            wasi: wasmtime_wasi::WasiCtxBuilder::new().build_p1(),
            limiter: Limiter::new(&Bounds::default()),
            cluster: Arc::new(NoCluster),
            home: home.clone(),
            lookups: 0,
            lookups_left: 0,
            in_malloc: false,
        },
    );
    linker
        .iter(&mut store)
        .map(|(module, name, _)| (module.to_owned(), name.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests;
