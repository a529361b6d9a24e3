//! A module, compiled and linked once, and a run of it.

use std::sync::Arc;
use std::time::Instant;

use atc_api::HostCluster;
use tokio::runtime::Handle;
use wasmtime::{Extern, InstancePre, Store, Trap, UpdateDeadline, WasmBacktrace};
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{I32Exit, WasiCtxBuilder, WasiView};

use crate::abi::{AbiFault, InMalloc, describe};
use crate::error::{FlightError, TrapReport, one_line};
use crate::host::{Guest, HostBroke};
use crate::invocation::{Invocation, Outcome};
use crate::limits::{Bound, Bounds, Limiter};
use crate::output::Streams;
use crate::runtime::{ModuleDigest, Runtime};
use crate::task::Task;

const START: &str = "_start";
/// Bytes of a page of guest memory.
const PAGE: u64 = 64 * 1024;
/// Entries in a run's table of WASI resources: the three streams, and what one `poll_oneoff` waits for.
const WASI_RESOURCES: usize = 4096;

/// A module ready to run, any number of times, at the same time too. Cheap to clone.
#[derive(Clone)]
pub struct Module {
    linked: Arc<Linked>,
    runtime: Runtime,
}

/// The part of a module that the runtime itself keeps, so without a way back to the runtime.
pub(crate) struct Linked {
    pub(crate) digest: ModuleDigest,
    hex: String,
    instance: InstancePre<Guest>,
}

impl Linked {
    pub(crate) fn new(digest: ModuleDigest, instance: InstancePre<Guest>) -> Self {
        Self {
            digest,
            hex: hex::encode(digest),
            instance,
        }
    }

    pub(crate) fn code_bytes(&self) -> u64 {
        let image = self.instance.module().image_range();
        (image.end as u64).saturating_sub(image.start as u64)
    }
}

impl Module {
    pub(crate) fn new(runtime: Runtime, linked: Arc<Linked>) -> Self {
        Self { linked, runtime }
    }

    /// The SHA-256 of the module's bytes, in hex.
    pub fn digest(&self) -> &str {
        &self.linked.hex
    }

    /// Bytes of its compiled form.
    pub fn code_bytes(&self) -> u64 {
        self.linked.code_bytes()
    }

    /// Where its code lies: the same for the same load.
    #[cfg(test)]
    pub(crate) fn image(&self) -> usize {
        self.linked.instance.module().image_range().start as usize
    }

    /// Runs the module once, in a fresh instance.
    ///
    /// The guest runs on the runtime's threads; what it asks of `cluster` is polled on the tokio runtime of the caller,
    /// which must have its timer on. Dropping the future stops the run.
    ///
    /// # Errors
    ///
    /// [`FlightError::Bounds`], [`FlightError::Trap`], [`FlightError::Abi`]. An exit code is none: see
    /// [`Outcome::exit`].
    pub async fn run(
        &self,
        invocation: Invocation,
        cluster: Arc<dyn HostCluster>,
    ) -> Result<Outcome, FlightError> {
        let home = Handle::try_current().map_err(FlightError::internal)?;
        let time = invocation.bounds.time;
        // An end too far away to be told as a time is none.
        let deadline = time.and_then(|time| Instant::now().checked_add(time));
        self.fits(&invocation.bounds)?;
        let streams = Streams::new(&invocation.bounds, invocation.stderr.clone());
        let flight = fly(
            self.clone(),
            invocation,
            cluster,
            home,
            streams.clone(),
            deadline,
        );
        let flight = Task::spawn(self.runtime.handle(), flight);
        let ended = match deadline {
            None => Some(flight.await),
            Some(deadline) => tokio::time::timeout_at(deadline.into(), flight).await.ok(),
        };
        let Some(ended) = ended else {
            let bound = Bound::Time {
                limit: time.unwrap_or_default(),
            };
            return Err(FlightError::Bounds {
                bound,
                stderr: streams.stderr(),
            });
        };
        let (ended, refused) =
            ended.map_err(|ended| FlightError::internal(format!("its task ended: {ended}")))?;
        let exit = match ended {
            Ok(()) => 0,
            Err(error) => exit_code(&error, &streams, refused.as_ref())?,
        };
        Ok(Outcome {
            stdout: streams.take_stdout(),
            stderr: streams.stderr(),
            exit,
            refused,
        })
    }

    /// Whether what the module declares is within the bounds: told here with both numbers, where wasmtime would name
    /// one.
    fn fits(&self, bounds: &Bounds) -> Result<(), FlightError> {
        let needs = self.linked.instance.module().resources_required();
        let memory = needs
            .max_initial_memory_size
            .unwrap_or_default()
            .saturating_mul(PAGE);
        let tables = needs.max_initial_table_size.unwrap_or_default();
        let bound = if memory > bounds.memory_limit() {
            Bound::Memory {
                wanted: memory,
                limit: bounds.memory_limit(),
            }
        } else if tables > bounds.table_elements {
            Bound::TableElements {
                wanted: tables,
                limit: bounds.table_elements,
            }
        } else {
            return Ok(());
        };
        Err(FlightError::Bounds {
            bound,
            stderr: String::new(),
        })
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Module")
            .field("digest", &self.linked.hex)
            .finish_non_exhaustive()
    }
}

/// What the guest's end looked like from inside, and what it had been refused.
type Ended = (wasmtime::Result<()>, Option<Bound>);

/// The run itself, on a thread of the flights.
async fn fly(
    module: Module,
    invocation: Invocation,
    cluster: Arc<dyn HostCluster>,
    home: Handle,
    streams: Streams,
    deadline: Option<Instant>,
) -> Ended {
    let Invocation {
        stdin,
        args,
        env,
        bounds,
        stderr: _,
    } = invocation;
    let mut wasi = WasiCtxBuilder::new();
    wasi.args(&args)
        .envs(&env)
        .stdin(MemoryInputPipe::new(stdin))
        .stdout(streams.guest_stdout())
        .stderr(streams.guest_stderr());
    let guest = Guest {
        wasi: wasi.build_p1(),
        limiter: Limiter::new(&bounds),
        cluster,
        home,
        lookups: bounds.lookups,
        lookups_left: bounds.lookups,
        in_malloc: false,
    };
    let mut store = Store::new(&module.runtime.0.engine, guest);
    store
        .data_mut()
        .wasi
        .ctx()
        .table
        .set_max_capacity(WASI_RESOURCES);
    store.limiter(|guest| &mut guest.limiter);
    store.set_epoch_deadline(1);
    let limit = bounds.time.unwrap_or_default();
    store.epoch_deadline_callback(move |_| match deadline {
        Some(deadline) if Instant::now() >= deadline => Err(Bound::Time { limit }.into()),
        _ => Ok(UpdateDeadline::Yield(1)),
    });
    let ticking = module.runtime.0.ticker.tick();
    let ended = start(&mut store, &module.linked.instance).await;
    drop(ticking);
    (ended, store.data_mut().limiter.refused.take())
}

/// Instantiates (a start section runs then) and calls `_start` where there is one.
async fn start(store: &mut Store<Guest>, linked: &InstancePre<Guest>) -> wasmtime::Result<()> {
    let instance = linked.instantiate_async(&mut *store).await?;
    let Some(export) = instance.get_export(&mut *store, START) else {
        return Ok(());
    };
    let found = describe(&export, &*store);
    let Extern::Func(function) = export else {
        return Err(AbiFault::StartType { found }.into());
    };
    match function.typed::<(), ()>(&*store) {
        Ok(function) => function.call_async(store, ()).await,
        Err(_) => Err(AbiFault::StartType { found }.into()),
    }
}

/// What an error that ended the guest means: an exit code, or one of ours.
fn exit_code(
    error: &wasmtime::Error,
    streams: &Streams,
    refused: Option<&Bound>,
) -> Result<i32, FlightError> {
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return Ok(exit.0);
    }
    let stderr = streams.stderr();
    if let Some(bound) = error
        .downcast_ref::<Bound>()
        .cloned()
        .or_else(|| streams.overflow())
    {
        return Err(FlightError::Bounds { bound, stderr });
    }
    if let Some(fault) = error.downcast_ref::<AbiFault>().cloned() {
        return Err(FlightError::Abi { fault, stderr });
    }
    if let Some(broke) = error.downcast_ref::<HostBroke>() {
        return Err(FlightError::internal(broke));
    }
    let mut reason = one_line(match error.downcast_ref::<Trap>() {
        Some(trap) => trap.to_string(),
        None => error.root_cause().to_string(),
    });
    if error.downcast_ref::<InMalloc>().is_some() {
        reason = format!("{reason} {InMalloc}");
    }
    Err(FlightError::Trap(Box::new(TrapReport {
        reason,
        frames: error
            .downcast_ref::<WasmBacktrace>()
            .map(frames)
            .unwrap_or_default(),
        refused: refused.cloned(),
        stderr,
        stdout: streams.take_stdout(),
    })))
}

/// The names in a backtrace, demangled, which only its printed form has: lines like `0: module!function`.
fn frames(backtrace: &WasmBacktrace) -> Vec<String> {
    let text = backtrace.to_string();
    let lines = text.lines().skip(1).zip(backtrace.frames());
    let named = lines.filter_map(|(line, frame)| {
        let module = format!("{}!", frame.module().name().unwrap_or("<unknown>"));
        Some(line.split_once(module.as_str())?.1.to_owned())
    });
    named.collect()
}

#[cfg(test)]
mod tests;
