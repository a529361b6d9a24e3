//! Where the API server finds us, and by which CA it knows us, for an Airway whose converter can't be had. Its instances go on
//! being served as its CRD stands, and are reviewed and converted by asking us: where that is, may have changed since.

use std::sync::Arc;

use serde_json::Value;

use super::{AirwayError, apply};
use crate::control::Control;
use crate::{crd, hooks};

/// Says it anew in the webhook configuration and in a CRD that names us. All else in the CRD stays as it is.
pub(super) async fn tell_again(
    control: &Arc<Control>,
    name: &str,
    uid: &str,
    live: &Value,
) -> Result<(), AirwayError> {
    let Ok(served) = crd::served_kind(&live["spec"]) else {
        return Ok(());
    };
    let hook = control.service.of_airway(name, uid, &served);
    hooks::bring(control, hook)
        .await
        .map_err(AirwayError::Hook)?;
    let conversion = control.service.conversion(name);
    if !is_outdated(&live["spec"]["conversion"], &conversion) {
        return Ok(());
    }
    let mut spec = live["spec"].clone();
    spec["conversion"] = conversion;
    let definition = crd::definition(name, uid, &spec);
    apply(
        control,
        "the conversion in its CustomResourceDefinition",
        definition,
    )
    .await
    .map(drop)
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
