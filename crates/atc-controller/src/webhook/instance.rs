//! The review of an instance: the flight runs on it, and what it prints passes a dry run.

use atc_engine::error::chain;
use atc_engine::instance::InstanceSettings;
use atc_engine::release::cluster::LiveMeta;
use atc_engine::{EngineError, LoadedFlight};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::review::{Decision, Request, is_internal};
use super::time::Time;
use super::{account, unconverted, worse};
use crate::bootstrap::INSTANCE_TIMEOUT;
use crate::control::Control;
use crate::flights;
use crate::kinds::{Kind, Setup};
use crate::overrides::{self, Load};
use crate::review::may_update_airway;

/// Whether an instance may be stored.
pub(crate) async fn decide(control: &Control, airway: &str, request: &Request) -> Decision {
    let time = Time::of(INSTANCE_TIMEOUT, Instant::now());
    decide_within(control, airway, request, time).await
}

/// Whether an instance, or a Flight, may be stored, in what is left of this time.
pub(super) async fn decide_within(
    control: &Control,
    airway: &str,
    request: &Request,
    time: Time,
) -> Decision {
    let object = &request.object;
    if object.is_null() || LiveMeta::of(object).is_deleting() {
        return Decision::Allow;
    }
    let served = control
        .kinds
        .get(airway)
        .and_then(|kind| kind.setup().map(|setup| (kind, setup)));
    let mapping = served.as_ref().map(|(_, setup)| &setup.settings.mapping);
    let seen = unconverted::refusal(control, mapping, request);
    match timeout_at(time.deadline, seen).await {
        Ok(None) => {}
        Ok(Some(refusal)) => return refusal,
        Err(_) => return over(time),
    }
    if request.operation == "UPDATE" && is_internal(&request.old_object, object) {
        return Decision::Allow;
    }
    if !object["metadata"].is_object() {
        return Decision::invalid("the object to review is none: it has no metadata");
    }
    let Some((kind, setup)) = served else {
        return not_served(airway);
    };
    if !flights::is_kind(airway)
        && let Some(annotation) = overrides::changed(&request.old_object, object)
        && let Some(refusal) = may_override(control, airway, annotation, request).await
    {
        return refusal;
    }
    if setup.skip_admission {
        return Decision::Allow;
    }
    if object["apiVersion"] != setup.settings.mapping.api_version() {
        // The webhook's configuration still has the version from before.
        return Decision::unavailable(format!(
            "Airway \"{airway}\" is changing its version; try again in a moment"
        ));
    }
    let judging = Box::pin(judge(control, airway, &kind, &setup, request, time));
    match timeout_at(time.deadline, judging).await {
        Ok(decision) => decision,
        // Not even its flight could be had, and that is not the writer's doing.
        Err(_) if is_mere_metadata(request) => Decision::Allow,
        Err(_) => over(time),
    }
}

/// The answer when the time has not been enough.
pub(super) fn over(time: Time) -> Decision {
    Decision::invalid(format!("it could not be checked within {time}"))
}

/// What the flight and the API server say of it.
async fn judge(
    control: &Control,
    airway: &str,
    kind: &Kind,
    setup: &Setup,
    request: &Request,
    time: Time,
) -> Decision {
    let (old, mut object) = (&request.old_object, request.object.clone());
    // An object that is created has a name here, but not always its namespace in its metadata.
    if setup.settings.mapping.namespaced
        && object["metadata"]["namespace"].is_null()
        && !request.namespace.is_empty()
    {
        object["metadata"]["namespace"] = request.namespace.clone().into();
    }
    let is_named_now = overrides::changed(old, &object).is_some()
        || old["spec"]["wasmUrl"] != object["spec"]["wasmUrl"];
    // What a URL holds is asked for anew when it is set: it may be something else by now.
    let load = if is_named_now {
        Load::Fresh
    } else {
        Load::Cached
    };
    let served = overrides::served(control, setup, &object, load).await;
    let flight = match served.flight {
        Ok(flight) => flight,
        // What it says has not changed, and what is wrong is not the writer's doing.
        Err(_) if is_mere_metadata(request) => return Decision::Allow,
        Err(why) if served.overridden => return Decision::invalid(why),
        Err(why) => {
            // Not 503, which clients try again by themselves: it may take until somebody mends it.
            return Decision::invalid(format!(
                "the flight of Airway \"{airway}\" can't be had: {why}"
            ));
        }
    };
    if account::named(&object).is_some()
        && flights::is_kind(airway)
        && request.is_tried_as_account()
    {
        // What a Flight prints that acts as an account. Trying what this one would print takes a place among such calls while
        // the one before has its own: a chain of them could hold all, each waiting for the next.
        return Decision::Allow;
    }
    let mut settings = served.settings.into_owned();
    if settings.bounds.time.is_none_or(|bound| bound > time.limit) {
        settings.bounds.time = Some(time.limit);
    }
    let trial = Trial {
        control,
        kind,
        settings: &settings,
        flight: &flight,
    };
    let now = Box::pin(trial.of(&object));
    if !is_mere_metadata(request) {
        return now.await.map_or_else(
            |error| Decision::invalid(error.chain()),
            |()| Decision::Allow,
        );
    }
    let before = Box::pin(trial.of(old));
    match worse::refuse(now, before, time.deadline).await {
        Ok(()) => Decision::Allow,
        Err(Some(error)) => Decision::invalid(error.chain()),
        Err(None) => over(time),
    }
}

/// What the review of an object takes but for the object.
struct Trial<'a> {
    control: &'a Control,
    kind: &'a Kind,
    settings: &'a InstanceSettings,
    flight: &'a LoadedFlight,
}

impl Trial<'_> {
    /// Whether its flight runs on an object and what it prints would be taken.
    async fn of(&self, object: &Value) -> Result<(), EngineError> {
        let live = LiveMeta::of(object);
        let mapping = &self.settings.mapping;
        let reference = mapping.reference(live.namespace(), live.name());
        let mut memory = self.kind.review_memory(&reference);
        // A review records nothing: what is stored already is read at the evaluation, not here on the way of a write.
        memory.revisions = Some(Vec::new());
        let observer = HubView {
            control: self.control,
        };
        let engine = &self.control.engine;
        engine
            .review(self.settings, self.flight, object, &mut memory, &observer)
            .await
    }
}

/// Whether an edit leaves alone what an instance says and which flight serves it how.
fn is_mere_metadata(request: &Request) -> bool {
    says_the_same(request) && overrides::changed(&request.old_object, &request.object).is_none()
}

/// Whether an update changes nothing but metadata: labels, annotations, finalizers.
fn says_the_same(request: &Request) -> bool {
    let said = |object: &Value| {
        let mut said = object.clone();
        if let Value::Object(fields) = &mut said {
            fields.remove("metadata");
            fields.remove("status");
        }
        said
    };
    request.operation == "UPDATE" && said(&request.old_object) == said(&request.object)
}

/// Nothing is known of the Airway.
pub(super) fn not_served(airway: &str) -> Decision {
    let what = if flights::is_kind(airway) {
        format!("{airway}s are")
    } else {
        format!("Airway \"{airway}\" is")
    };
    Decision::unavailable(format!("{what} not served yet; try again in a moment"))
}

/// Why whoever writes may not override: whoever may change the Airway may do so for one instance, and nobody else.
async fn may_override(
    control: &Control,
    airway: &str,
    annotation: &str,
    request: &Request,
) -> Option<Decision> {
    let client = control.engine.cluster().client().clone();
    let user = &request.user_info;
    match may_update_airway(client, user, airway).await {
        Ok(true) => None,
        Ok(false) => Some(Decision::forbidden(format!(
            "user \"{}\" may not change annotation \"{annotation}\": it takes the right to update airways.yoke.cd \"{airway}\"",
            user.username.as_deref().unwrap_or_default()
        ))),
        Err(error) => Some(Decision::unavailable(format!(
            "can't tell whether annotation \"{annotation}\" may be changed: {}",
            chain(&error)
        ))),
    }
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
