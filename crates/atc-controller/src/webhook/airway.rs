//! The review of an Airway: its template gives a CRD that the API server would take, and its flight can be had.

use atc_api::Airway;
use atc_engine::error::chain;
use atc_engine::release::cluster::{ApplyOptions, LiveMeta};
use atc_engine::release::object::Object;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::review::{Decision, Request, is_internal};
use super::time::Time;
use crate::bootstrap::AIRWAY_TIMEOUT;
use crate::control::Control;
use crate::crd;
use crate::modules::{load, load_converter};

/// Whether an Airway may be stored.
pub(crate) async fn decide(control: &Control, request: &Request) -> Decision {
    let object = &request.object;
    let internal = request.operation == "UPDATE"
        && (is_internal(&request.old_object, object)
            || request.old_object["spec"] == object["spec"]);
    if object.is_null() || LiveMeta::of(object).is_deleting() || internal {
        return Decision::Allow;
    }
    let time = Time::of(AIRWAY_TIMEOUT, Instant::now());
    let mut step = Step::Crd;
    let checked = timeout(time.limit, check(control, object, &mut step)).await;
    match checked {
        Ok(Ok(())) => Decision::Allow,
        Ok(Err(why)) => Decision::invalid(why),
        Err(_) => Decision::unavailable(step.over(time)),
    }
}

/// What is under way.
#[derive(Clone, Copy)]
enum Step {
    /// The API server is asked about the CRD.
    Crd,
    /// The modules are fetched and compiled. That goes on though nobody waits for it.
    Modules,
}

impl Step {
    /// What is said when it was not done in time.
    fn over(self, time: Time) -> String {
        match self {
            Self::Crd => format!(
                "the API server did not say within {time} whether it would take its CustomResourceDefinition; apply it again"
            ),
            Self::Modules => format!(
                "its modules could not be had and compiled within {time}; the work goes on, and what comes of it is kept: apply it again in a moment"
            ),
        }
    }
}

/// Whether it would be served as it says. `step` is what is under way, for whoever gives up on it.
async fn check(control: &Control, object: &Value, step: &mut Step) -> Result<(), String> {
    let airway: Airway = serde_json::from_value(object.clone())
        .map_err(|error| format!("this Airway can't be read: {error}"))?;
    let template = Value::Object(airway.spec.template.to_spec());
    let mut definition =
        crd::of_airway(&airway, &template, &control.service).map_err(|error| chain(&error))?;
    if let Some(metadata) = definition["metadata"].as_object_mut() {
        // Its uid is not known to be stored yet, and an owner that is not there is refused.
        metadata.remove("ownerReferences");
    }
    let object = Object::try_from(definition).map_err(|error| chain(&error))?;
    let options = ApplyOptions {
        force: true,
        dry_run: true,
        ..ApplyOptions::default()
    };
    control
        .engine
        .cluster()
        .apply(&object, &options)
        .await
        .map_err(|error| chain(&error))?;
    *step = Step::Modules;
    load_converter(control, &airway, true)
        .await
        .map_err(|error| format!("spec.wasmUrls.converter: {}", error.chain()))?;
    let loaded = load(control, &airway, true).await;
    loaded.map(drop).map_err(|error| error.chain())
}
