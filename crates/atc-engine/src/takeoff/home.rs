//! A release that makes its own namespace: the record of what it is about to make lies there, so that comes first.

use atc_release::cluster::{ApplyOptions, ErrorKind};
use atc_release::object::Object;
use atc_release::ownership::owner_of;

use super::{Prepared, Report, TakeoffRequest};
use crate::engine::Engine;
use crate::error::{EngineError, chain};
use crate::memory::Memory;
use crate::observer::Observer;

impl Engine {
    /// Makes the target namespace if the release makes it and it is not there. Everything is asked before, as for all of the
    /// release: what is refused makes no namespace either.
    pub async fn make_home(
        &self,
        request: &TakeoffRequest,
        prepared: &Prepared,
        memory: &mut Memory,
        observer: &dyn Observer,
    ) -> Result<(), EngineError> {
        let Some(home) = prepared.namespace(&request.namespace) else {
            return Ok(());
        };
        let refused = |failure: String| EngineError::Refused {
            step: "apply",
            failures: vec![failure],
        };
        let live = self.reach().metadata_of(&[home]).await.pop();
        match live {
            Some(Ok(Some(_))) => return Ok(()),
            Some(Err(error)) => return Err(refused(chain(&error))),
            Some(Ok(None)) | None => {}
        }
        let due = self.due(&prepared.stages, memory, observer);
        let mut report = Report::default();
        let expectations = self
            .ask(request, prepared, &due, memory, &mut report)
            .await?;
        // What fits no record is not begun.
        Self::draft(request, &prepared.stages, memory)?;
        let options = ApplyOptions {
            force: request.force_conflicts,
            expect: expectations
                .get(&home.reference())
                .cloned()
                .unwrap_or_default(),
            ..ApplyOptions::default()
        };
        match self.reach().apply(home, &options).await {
            // Another takeoff of the release was faster; whose turn it is, is told by the intent.
            Err(error) if error.kind() == ErrorKind::Stale && self.is_ours(request, home).await => {
                Ok(())
            }
            made => made.map(drop).map_err(|error| refused(chain(&error))),
        }
    }

    async fn is_ours(&self, request: &TakeoffRequest, object: &Object) -> bool {
        let us = request.decoration.identity();
        let live = self.reach().metadata_of(&[object]).await.pop();
        let owner = live.and_then(|live| owner_of(live.ok()??.value()));
        owner.is_some_and(|owner| owner == us)
    }
}
