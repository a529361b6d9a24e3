//! The flight that an Airway was served with before.

use atc_engine::LoadedFlight;

use crate::control::Control;
use crate::kinds::Kind;

/// The flight that was served before: it goes on being served while the new one can't be had. Not if a key that has
/// signed it is no longer among those that count.
pub(super) async fn served_before(control: &Control, kind: &Kind) -> Option<LoadedFlight> {
    let before = kind.setup()?.flight.clone().ok()?;
    let policy = &control.engine.options().policy;
    policy.still_proves(&before.sha256).await.then_some(before)
}
