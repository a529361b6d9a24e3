//! The host functions `k8s_lookup` and `k8s_rest_mapping` over a guard: what the guest gets, in bytes and in words.

use std::error::Error;

use atc_api::{BoxFuture, HostCluster, HostFailure, LookupRequest, RestMappingRequest, State};
use serde_json::{Value, json};

use crate::guard::{Guard, GuardError};
use crate::ledger::ReadLedger;
use crate::policy::AccessPolicy;
use crate::reader::{ClusterReader, Mapping};

/// Longest text of a failure in bytes; the words of an API server beyond it are cut off.
pub const MAX_TEXT: usize = 4096;

/// What one run of a flight can ask of the cluster.
pub struct GuardedHost<R>(Guard<R>);

impl<R: ClusterReader> GuardedHost<R> {
    /// The host of one run.
    pub fn new(reader: R, policy: AccessPolicy) -> Self {
        Self(Guard::new(reader, policy))
    }

    /// What the run has read so far; the handle stays good when the host is gone.
    pub fn ledger(&self) -> ReadLedger {
        self.0.ledger()
    }
}

impl<R: ClusterReader> HostCluster for GuardedHost<R> {
    fn lookup(&self, request: LookupRequest) -> BoxFuture<'_, Result<Vec<u8>, HostFailure>> {
        Box::pin(async move {
            bytes(
                &self
                    .0
                    .lookup(&request)
                    .await
                    .map_err(|error| failure(&error))?,
            )
        })
    }

    fn rest_mapping(
        &self,
        request: RestMappingRequest,
    ) -> BoxFuture<'_, Result<Vec<u8>, HostFailure>> {
        Box::pin(async move {
            let mapping = self
                .0
                .rest_mapping(&request)
                .await
                .map_err(|error| failure(&error))?;
            bytes(&answer(&mapping))
        })
    }
}

/// A mapping as guests know it.
fn answer(mapping: &Mapping) -> Value {
    json!({
        "Group": mapping.group,
        "Version": mapping.version,
        "Kind": mapping.kind,
        "Resource": mapping.plural,
        "Namespaced": mapping.namespaced,
    })
}

fn bytes(value: &Value) -> Result<Vec<u8>, HostFailure> {
    // A JSON value can always be written; the words must not quote it in any case.
    serde_json::to_vec(value)
        .map_err(|_| HostFailure::new(State::Error, "the answer cannot be written as JSON"))
}

/// The state and the whole chain of words: the guest has only this one text.
fn failure(error: &GuardError) -> HostFailure {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        message.push_str(": ");
        message.push_str(&error.to_string());
        source = error.source();
    }
    if message.len() > MAX_TEXT {
        message.truncate(message.floor_char_boundary(MAX_TEXT));
    }
    HostFailure::new(error.state(), message)
}

#[cfg(test)]
mod tests;
