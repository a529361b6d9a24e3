//! The review of an instance: the flight runs on it, and what it prints passes a dry run.

use std::time::Duration;

use atc_api::names;
use atc_engine::instance::release_name;
use atc_engine::release::cluster::LiveMeta;

use super::review::{Decision, Request, is_internal};
use crate::bootstrap::INSTANCE_TIMEOUT;
use crate::control::Control;

/// A review ends so long before the API server gives up on us, so that a denial has our words.
const MARGIN: Duration = Duration::from_millis(1_500);

/// Whether an instance may be stored.
pub(crate) async fn decide(control: &Control, airway: &str, request: &Request) -> Decision {
    let object = &request.object;
    let deleting = LiveMeta::of(object).is_deleting();
    if object.is_null()
        || deleting
        || (request.operation == "UPDATE" && is_internal(&request.old_object, object))
    {
        return Decision::Allow;
    }
    if !object["metadata"].is_object() {
        return Decision::invalid("the object to review is none: it has no metadata");
    }
    let Some((kind, setup)) = control
        .kinds
        .get(airway)
        .and_then(|kind| kind.setup().map(|setup| (kind, setup)))
    else {
        return not_served(airway);
    };
    if let Some(name) = overridden(request) {
        return Decision::invalid(format!(
            "annotation \"{name}\" is not part of this version; it is refused rather than passed over"
        ));
    }
    if setup.skip_admission {
        return Decision::Allow;
    }
    let flight = match &setup.flight {
        Ok(flight) => flight,
        Err(why) => {
            return Decision::unavailable(format!(
                "the flight of Airway \"{airway}\" can't be had: {why}"
            ));
        }
    };
    let mut settings = setup.settings.clone();
    // An object that is created has a name here, but not always its namespace in its metadata.
    let mut object = object.clone();
    if settings.mapping.namespaced
        && object["metadata"]["namespace"].is_null()
        && !request.namespace.is_empty()
    {
        object["metadata"]["namespace"] = request.namespace.clone().into();
    }
    let limit = Duration::from_secs(u64::from(INSTANCE_TIMEOUT)).saturating_sub(MARGIN);
    if settings.bounds.time.is_none_or(|time| time > limit) {
        settings.bounds.time = Some(limit);
    }
    let live = LiveMeta::of(&object);
    let reference = settings.mapping.reference(live.namespace(), live.name());
    let mut memory = kind.review_memory(&reference);
    // A review records nothing: what is stored already is read at the evaluation, not here on the way of a write.
    memory.revisions = Some(Vec::new());
    let observer = HubView { control };
    let review = control
        .engine
        .review(&settings, flight, &object, &mut memory, &observer);
    match tokio::time::timeout(limit + MARGIN / 2, review).await {
        Ok(Ok(())) => Decision::Allow,
        Ok(Err(error)) => Decision::invalid(error.chain()),
        Err(_) => Decision::invalid(format!(
            "release \"{}\" could not be checked within {} s",
            release_name(&settings.mapping, live.namespace(), live.name()),
            limit.as_secs_f64()
        )),
    }
}

/// Nothing is known of the Airway.
pub(super) fn not_served(airway: &str) -> Decision {
    Decision::unavailable(format!(
        "Airway \"{airway}\" is not served yet; try again in a moment"
    ))
}

/// An override annotation that this write sets or changes.
fn overridden(request: &Request) -> Option<&'static str> {
    let value = |object: &serde_json::Value, name: &str| {
        object["metadata"]["annotations"][name]
            .as_str()
            .map(str::to_owned)
    };
    [
        names::ANNOTATION_OVERRIDE_FLIGHT,
        names::ANNOTATION_OVERRIDE_MODE,
    ]
    .into_iter()
    .find(|name| {
        let now = value(&request.object, name);
        now.is_some() && now != value(&request.old_object, name)
    })
}

/// Admission sees what the watches show, and touches nothing there.
struct HubView<'a> {
    control: &'a Control,
}

impl atc_engine::Observer for HubView<'_> {
    fn interest(&self, _: &atc_engine::watch::Target) {}

    fn interest_in(&self, _: &atc_engine::watch::Selection) {}

    fn latest(&self, reference: &atc_api::ResourceRef) -> atc_engine::watch::Latest {
        self.control.hub.latest(reference)
    }

    fn latest_in(&self, selection: &atc_engine::watch::Selection) -> Option<u64> {
        self.control.hub.latest_in(selection)
    }
}
