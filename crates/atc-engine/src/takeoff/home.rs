//! A release that makes its own namespace: the record of what it is about to make lies there, so that comes first.

use atc_release::cluster::ApplyOptions;

use super::{Prepared, Report, TakeoffRequest};
use crate::engine::Engine;
use crate::error::{EngineError, chain};
use crate::memory::Memory;
use crate::observer::Observer;

impl Engine {
    /// Makes the target namespace if the release makes it and it is not there. Everything is asked before, as for all of the
    /// release: what is refused makes no namespace either.
    pub(super) async fn make_home(
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
        let options = ApplyOptions {
            force: request.force_conflicts,
            expect: expectations
                .get(&home.reference())
                .cloned()
                .unwrap_or_default(),
            ..ApplyOptions::default()
        };
        let made = self.reach().apply(home, &options).await;
        made.map(drop).map_err(|error| refused(chain(&error)))
    }
}
