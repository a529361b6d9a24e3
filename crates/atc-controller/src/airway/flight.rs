//! The flight of an Airway: fetched, proven and compiled, or the one that was served before.

use atc_api::Airway;
use atc_engine::LoadedFlight;
use atc_engine::artifact::Location;
use atc_engine::error::{EngineError, chain};

use crate::control::Control;
use crate::kinds::Kind;

/// Loads the Airway's flight. `fresh` asks its server even if that was asked a moment ago: a location without a checksum
/// may hold something else by now. Without it, what is cached does when the server is away.
pub(crate) async fn load(
    control: &Control,
    airway: &Airway,
    fresh: bool,
) -> Result<LoadedFlight, EngineError> {
    let urls = &airway.spec.wasm_urls;
    let location: Location = urls.flight.parse().map_err(|error| EngineError::Location {
        text: "spec.wasmUrls.flight".into(),
        why: chain(&error),
    })?;
    let location = location.with_insecure(airway.spec.insecure);
    let checksum = urls.flight_checksum.as_deref();
    control.engine.load(&location, checksum, fresh).await
}

/// The flight that was served before: it goes on being served while the new one can't be had. Not if a key that has
/// signed it is no longer among those that count.
pub(super) async fn served_before(control: &Control, kind: &Kind) -> Option<LoadedFlight> {
    let before = kind.setup()?.flight.clone().ok()?;
    let policy = &control.engine.options().policy;
    policy.still_proves(&before.sha256).await.then_some(before)
}
