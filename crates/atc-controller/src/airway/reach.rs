//! Where the API server finds us, and by which CA it knows us, for an Airway that can't be served as it says. Its instances go
//! on being served as its CRD stands, and are reviewed and converted by asking us: where that is, may have changed since.

use std::sync::Arc;
use std::time::Duration;

use atc_engine::error::chain;
use atc_engine::release::cluster::{ApplyOptions, Expect, LiveMeta};
use atc_engine::release::object::Object;
use atc_engine::watch::Dependency;
use serde_json::Value;

use super::{AirwayError, is_owned_by, live_crd};
use crate::control::Control;
use crate::hooks::Brought;
use crate::{crd, hooks};

/// When it is tried again after a failure: 5 s. What failed may be no matter of the Airway, which nobody tries again by itself
/// where only an edit mends it.
const SOON: Duration = Duration::from_secs(5);

/// Says it anew in the webhook configuration and in a CRD that names us, if the CRD is the Airway's. All else in the CRD stays
/// as it is. Gives what is to be followed, and when it is to be looked at again; what fails is in the log.
pub(super) async fn tell_again(
    control: &Arc<Control>,
    name: &str,
    airway: &Value,
) -> (Vec<Dependency>, Option<Duration>) {
    let uid = LiveMeta::of(airway).uid().to_owned();
    match try_tell_again(control, name, &uid).await {
        Ok(Some(hook)) => (vec![hook.seen], hook.again),
        Ok(None) => (Vec::new(), None),
        Err(error) => {
            tracing::warn!(
                airway = name,
                error = chain(&error),
                "can't tell the API server where the atc is"
            );
            (Vec::new(), Some(SOON))
        }
    }
}

async fn try_tell_again(
    control: &Arc<Control>,
    name: &str,
    uid: &str,
) -> Result<Option<Brought>, AirwayError> {
    let live = live_crd(control, name).await?;
    let Some(live) = live.filter(|crd| is_owned_by(crd, uid)) else {
        return Ok(None);
    };
    let Ok(served) = crd::served_kind(&live["spec"]) else {
        return Ok(None);
    };
    let hook = control.service.of_airway(name, uid, &served);
    let hook = hooks::bring(control, hook)
        .await
        .map_err(AirwayError::Hook)?;
    let conversion = control.service.conversion(name);
    if is_outdated(&live["spec"]["conversion"], &conversion) && !control.hooks.has_later() {
        let mut spec = live["spec"].clone();
        spec["conversion"] = conversion;
        let what = "the conversion in its CustomResourceDefinition";
        write(control, what, &crd::definition(name, uid, &spec), &live).await?;
    }
    Ok(Some(hook))
}

/// Applies a CRD, if it is still as it was; as it is then.
pub(super) async fn write(
    control: &Control,
    what: &'static str,
    definition: &Value,
    live: &Value,
) -> Result<Value, AirwayError> {
    let object = Object::try_from(definition.clone());
    let object = object.map_err(|source| AirwayError::Object { what, source })?;
    let live = LiveMeta::of(live);
    let options = ApplyOptions {
        force: true,
        expect: Expect::Present {
            uid: live.uid().to_owned(),
            resource_version: live.resource_version().to_owned(),
        },
        ..ApplyOptions::default()
    };
    let applied = control.engine.cluster().apply(&object, &options).await;
    applied
        .map(|applied| applied.live)
        .map_err(|source| AirwayError::Cluster { what, source })
}

/// Leaves the conversion of a CRD to an atc that began later, as the webhook configurations are. Where two have two addresses,
/// they would write it in turn, for ever.
pub(super) fn keep_of_later(control: &Control, live: &Value, definition: &mut Value) {
    let theirs = &live["spec"]["conversion"];
    if control.hooks.has_later() && is_outdated(theirs, &definition["spec"]["conversion"]) {
        definition["spec"]["conversion"] = theirs.clone();
    }
}

/// Whether a CRD has us convert its objects, and says otherwise where and by which CA we are than we do.
fn is_outdated(live: &Value, ours: &Value) -> bool {
    let (live, ours) = (
        &live["webhook"]["clientConfig"],
        &ours["webhook"]["clientConfig"],
    );
    let path = |config: &Value| {
        let url = config["url"].as_str().map(str::to_owned);
        url.or_else(|| config["service"]["path"].as_str().map(str::to_owned))
    };
    // The last part names the Airway, however an atc was to be reached that wrote it.
    let last = |config: &Value| {
        let path = path(config)?;
        let mut parts = path.rsplitn(3, '/');
        Some((parts.next()?.to_owned(), parts.next()?.to_owned()))
    };
    last(live).is_some() && last(live) == last(ours) && live != ours
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conversion(config: &Value) -> Value {
        json!({ "strategy": "Webhook", "webhook": { "conversionReviewVersions": ["v1"], "clientConfig": config } })
    }

    #[test]
    fn ours_are_told_anew_and_others_are_left() {
        let service = |path: &str, port: u16, ca: &str| {
            conversion(
                &json!({ "caBundle": ca, "service": { "name": "atc", "namespace": "n", "path": path, "port": port } }),
            )
        };
        let url = |url: &str| conversion(&json!({ "caBundle": "a", "url": url }));
        let ours = service("/crdconvert/apps.x.dev", 1, "a");
        for (live, expect) in [
            (ours.clone(), false),
            (service("/crdconvert/apps.x.dev", 2, "a"), true),
            (service("/crdconvert/apps.x.dev", 1, "b"), true),
            (url("https://atc.dev/team/crdconvert/apps.x.dev"), true),
            (service("/crdconvert/others.x.dev", 2, "a"), false),
            (service("/convert/apps.x.dev", 2, "a"), false),
            (url("https://somebody.dev/convert"), false),
            (json!({ "strategy": "None" }), false),
            (Value::Null, false),
        ] {
            assert_eq!(is_outdated(&live, &ours), expect, "{live}");
        }
        let ours = url("https://atc.dev/crdconvert/apps.x.dev");
        assert!(is_outdated(
            &service("/crdconvert/apps.x.dev", 1, "a"),
            &ours
        ));
    }
}
