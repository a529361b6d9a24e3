//! From bytes to a linked module: told apart, taken from the disk cache or compiled, linked once.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime::{InstancePre, Module as Code};

use crate::cache;
use crate::engine;
use crate::error::FlightError;
use crate::figures::count;
use crate::heap;
use crate::host::Guest;
use crate::module::Linked;
use crate::preamble;
use crate::runtime::{ModuleDigest, Runtime};

/// Compiles off the threads that flights run on, a few at a time.
pub(crate) async fn module(
    runtime: &Runtime,
    digest: ModuleDigest,
    wasm: Bytes,
) -> Result<Arc<Linked>, FlightError> {
    let max = runtime.0.options.module_max_bytes;
    if wasm.len() > max {
        let reason = format!(
            "it has {} bytes, over the limit of {max} for a module",
            wasm.len()
        );
        return Err(FlightError::compile(reason));
    }
    let loader = (runtime.clone(), wasm.clone());
    if let Some(module) = blocking(runtime, move || from_disk(&loader.0, digest, &loader.1)).await?
    {
        count(&runtime.0.counters.disk_hits);
        return Ok(module);
    }
    let permit = runtime
        .0
        .compiling
        .acquire()
        .await
        .map_err(FlightError::internal)?;
    let compiler = runtime.clone();
    let module = blocking(runtime, move || {
        let module = from_scratch(&compiler, digest, &wasm);
        drop(wasm);
        heap::give_back();
        module
    })
    .await;
    drop(permit);
    let counters = &runtime.0.counters;
    count(match &module {
        Ok(_) => &counters.compiles,
        Err(_) => &counters.failures,
    });
    module
}

/// Runs it on a thread that may block; a panic in there (a compiler's bug that a module found) is an error.
async fn blocking<T: Send + 'static>(
    runtime: &Runtime,
    work: impl FnOnce() -> Result<T, FlightError> + Send + 'static,
) -> Result<T, FlightError> {
    let ended = runtime.handle().spawn_blocking(work).await;
    ended.unwrap_or_else(|ended| {
        Err(FlightError::compile(format!(
            "the compiler failed on it: {ended}"
        )))
    })
}

/// What can be told at once, then the disk cache.
fn from_disk(
    runtime: &Runtime,
    digest: ModuleDigest,
    wasm: &[u8],
) -> Result<Option<Arc<Linked>>, FlightError> {
    let inner = &runtime.0;
    preamble::check(wasm, |module, name| {
        inner
            .offered
            .contains(&(module.to_owned(), name.to_owned()))
    })?;
    let code = inner
        .disk
        .as_ref()
        .and_then(|disk| disk.load(&inner.engine, digest));
    code.map(|code| finish(runtime, digest, &code)).transpose()
}

fn from_scratch(
    runtime: &Runtime,
    digest: ModuleDigest,
    wasm: &[u8],
) -> Result<Arc<Linked>, FlightError> {
    let engine = &runtime.0.engine;
    // Tens of milliseconds, and it tells a broken module before the seconds that compiling the sound part would take.
    Code::validate(engine, wasm).map_err(|error| FlightError::compile(format!("{error:#}")))?;
    preamble::check_code(wasm)?;
    // An engine keeps its compiler's work space, tens of MB after a Go flight, for as long as it lives: this one goes.
    let code = engine::new(runtime.0.options.compiler)
        .and_then(|compiler| compiler.precompile_module(wasm))
        .map_err(|error| FlightError::compile(format!("{error:#}")))?;
    if let Some(disk) = &runtime.0.disk {
        disk.store(digest, &code);
    }
    let code = cache::load_compiled(engine, code)
        .map_err(|error| FlightError::internal(format!("{error:#}")))?;
    finish(runtime, digest, &code)
}

fn finish(
    runtime: &Runtime,
    digest: ModuleDigest,
    code: &Code,
) -> Result<Arc<Linked>, FlightError> {
    let instance: InstancePre<Guest> = runtime
        .0
        .linker
        .instantiate_pre(code)
        .map_err(|error| FlightError::link(format!("{error:#}")))?;
    Ok(Arc::new(Linked::new(digest, instance)))
}
