//! The two host imports, linked to whatever implements [`HostCluster`].

use std::sync::Arc;

use atc_api::{BoxFuture, HostCluster, HostFailure, LookupRequest, RestMappingRequest, State};
use tokio::runtime::Handle;
use wasmtime::{Caller, Linker};
use wasmtime_wasi::p1::WasiP1Ctx;

use crate::abi;
use crate::limits::{Bound, Limiter};
use crate::task::Task;

/// What one store holds besides the guest.
pub(crate) struct Guest {
    pub(crate) wasi: WasiP1Ctx,
    pub(crate) limiter: Limiter,
    pub(crate) cluster: Arc<dyn HostCluster>,
    /// The tokio runtime of whoever asked for the run: look-ups are polled there, beside the connections they use.
    pub(crate) home: Handle,
    pub(crate) lookups: u32,
    pub(crate) lookups_left: u32,
    /// The guest's `malloc` is on the stack, called by us.
    pub(crate) in_malloc: bool,
}

/// What failed on our side of a host call; carried through the guest's stack.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct HostBroke(String);

const LOOKUP: &str = "k8s_lookup";
const REST_MAPPING: &str = "k8s_rest_mapping";

/// Defines both functions in the module `host`.
pub(crate) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    linker.func_wrap_async(
        "host",
        LOOKUP,
        |mut guest: Caller<'_, Guest>,
         (state, name, namespace, kind, api_version): (u32, u64, u64, u64, u64)| {
            Box::new(async move {
                enter(&mut guest, LOOKUP)?;
                let strings = [
                    ("the name", name),
                    ("the namespace", namespace),
                    ("the kind", kind),
                    ("the apiVersion", api_version),
                ];
                let (state, [name, namespace, kind, api_version]) =
                    abi::arguments(&mut guest, state, strings)?;
                let request = (|| {
                    Ok(LookupRequest {
                        name: text("name", name)?,
                        namespace: text("namespace", namespace)?,
                        kind: text("kind", kind)?,
                        api_version: text("apiVersion", api_version)?,
                    })
                })();
                answer(&mut guest, state, request, |cluster, request| {
                    cluster.lookup(request)
                })
                .await
            })
        },
    )?;
    linker.func_wrap_async(
        "host",
        REST_MAPPING,
        |mut guest: Caller<'_, Guest>, (state, group, kind): (u32, u64, u64)| {
            Box::new(async move {
                enter(&mut guest, REST_MAPPING)?;
                let (state, [group, kind]) = abi::arguments(
                    &mut guest,
                    state,
                    [("the group", group), ("the kind", kind)],
                )?;
                let request = (|| {
                    Ok(RestMappingRequest {
                        api_version: text("group", group)?,
                        kind: text("kind", kind)?,
                    })
                })();
                answer(&mut guest, state, request, |cluster, request| {
                    cluster.rest_mapping(request)
                })
                .await
            })
        },
    )?;
    Ok(())
}

/// The rules that hold before the arguments are looked at.
fn enter(guest: &mut Caller<'_, Guest>, function: &'static str) -> wasmtime::Result<()> {
    let guest = guest.data_mut();
    if guest.in_malloc {
        return Err(abi::AbiFault::CalledInMalloc { function }.into());
    }
    match guest.lookups_left.checked_sub(1) {
        Some(left) => guest.lookups_left = left,
        None => {
            return Err(Bound::Lookups {
                limit: guest.lookups,
            }
            .into());
        }
    }
    Ok(())
}

/// A string of the guest; one that is no UTF-8 can name nothing and is refused as an answer, not as a fault.
fn text(what: &str, bytes: Vec<u8>) -> Result<String, HostFailure> {
    String::from_utf8(bytes)
        .map_err(|_| HostFailure::new(State::Error, format!("the {what} is not UTF-8")))
}

/// Asks the cluster, writes the state if it is not 0, then hands over the answer: in this order, since a guest may move
/// its stack in `malloc`.
async fn answer<R: Send + 'static>(
    guest: &mut Caller<'_, Guest>,
    state: abi::StatePointer,
    request: Result<R, HostFailure>,
    ask: impl for<'a> FnOnce(&'a dyn HostCluster, R) -> BoxFuture<'a, Result<Vec<u8>, HostFailure>>
    + Send
    + 'static,
) -> wasmtime::Result<u64> {
    let answer = match request {
        Ok(request) => {
            let cluster = guest.data().cluster.clone();
            let asked = async move { ask(&*cluster, request).await };
            let asked = Task::spawn(&guest.data().home, asked).await;
            asked.map_err(|ended| HostBroke(format!("a look-up did not end: {ended}")))?
        }
        Err(failure) => Err(failure),
    };
    match answer {
        Ok(bytes) => abi::give(guest, &bytes).await,
        Err(failure) => {
            // A failure with the number of success would look like one.
            let number = if failure.state == State::Ok {
                State::Error
            } else {
                failure.state
            }
            .number();
            state.write(guest, number)?;
            abi::give(guest, failure.message.as_bytes()).await
        }
    }
}

/// A cluster that grants nothing: every call has state 1. For converters, schematics and other runs without access.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCluster;

impl NoCluster {
    fn refuse() -> BoxFuture<'static, Result<Vec<u8>, HostFailure>> {
        let failure = HostFailure::new(
            State::FeatureNotGranted,
            "cluster access is not granted to this flight",
        );
        Box::pin(std::future::ready(Err(failure)))
    }
}

impl HostCluster for NoCluster {
    fn lookup(&self, _: LookupRequest) -> BoxFuture<'_, Result<Vec<u8>, HostFailure>> {
        Self::refuse()
    }

    fn rest_mapping(&self, _: RestMappingRequest) -> BoxFuture<'_, Result<Vec<u8>, HostFailure>> {
        Self::refuse()
    }
}
