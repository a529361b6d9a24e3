//! What an Airway was served with before: what of it still counts.

use std::sync::Arc;

use atc_api::Airway;
use atc_engine::LoadedFlight;
use serde_json::Value;

use crate::control::Control;
use crate::instances;
use crate::kinds::{Kind, Setup};
use crate::modules::{load, load_converter};

/// The flight that was served before: it goes on being served while the new one can't be had. Not if a key that has
/// signed it is no longer among those that count.
pub(super) async fn served_before(control: &Control, kind: &Kind) -> Option<LoadedFlight> {
    let before = kind.setup()?.flight.clone().ok()?;
    let policy = &control.engine.options().policy;
    policy.still_proves(&before.sha256).await.then_some(before)
}

/// Takes back the flight and the converter that no key of now proves, where the Airway can't be set up anew: nothing goes on
/// being served beyond its key because something else is wrong. Its instances are told.
pub(super) async fn withdraw(control: &Control, kind: &Kind, name: &Arc<str>, object: &Value) {
    let Some(setup) = kind.setup() else { return };
    if unproven(control, &setup).await == (false, false) {
        return;
    }
    // Where keys have changed, one of the new ones may prove it as well. Only a load asks them.
    let why = match serde_json::from_value::<Airway>(object.clone()) {
        Ok(airway) => {
            let flight = load(control, &airway, false).await;
            _ = load_converter(control, &airway, false).await;
            flight.err().map(|error| error.chain())
        }
        Err(_) => None,
    };
    let (flight, converter) = unproven(control, &setup).await;
    if !flight && !converter {
        return;
    }
    tracing::warn!(airway = %name, flight, converter, "what none of the keys proves any more is not served");
    let mut left = Setup::clone(&setup);
    if flight {
        let why = why.unwrap_or_else(|| "none of the keys that are given now proves it".into());
        left.flight = Err(why);
    }
    if converter {
        left.converter = None;
    }
    kind.set_setup(left);
    if kind.take_due() {
        instances::evaluate_all(control, kind, name);
    }
}

/// Whether none of the keys of now proves the flight; the converter.
async fn unproven(control: &Control, setup: &Setup) -> (bool, bool) {
    let policy = &control.engine.options().policy;
    let flight = match &setup.flight {
        Ok(flight) => !policy.still_proves(&flight.sha256).await,
        Err(_) => false,
    };
    let converter = match &setup.converter {
        Some(converter) => !policy.still_proves(&converter.module.sha256).await,
        None => false,
    };
    (flight, converter)
}
