//! Instances of an Airway that can't be served as it says: they go on as their CRD stands, and can be removed.

use std::sync::Arc;

use atc_api::{Airway, AirwaySpec};
use atc_engine::error::chain;
use atc_engine::release::cluster::LiveMeta;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{instance_mapping, is_owned_by, live_crd, settings};
use crate::control::Control;
use crate::crd;
use crate::instances;
use crate::kinds::{Kind, Setup, hash};
use crate::modules::load;

/// Serves the instances of a CRD that is there from before, so that they can be removed or go on, though the Airway is
/// on its way out or says something that can't be done. Does nothing while instances are watched.
pub(super) async fn adopt(
    control: &Arc<Control>,
    kind: &Arc<Kind>,
    name: &Arc<str>,
    object: &Value,
) {
    if kind.is_watched() {
        return;
    }
    let uid = LiveMeta::of(object).uid().to_owned();
    let crd = match live_crd(control, name).await {
        Ok(Some(crd)) if is_owned_by(&crd, &uid) => crd,
        Ok(_) => return,
        Err(error) => {
            tracing::warn!(airway = %name, error = chain(&error), "can't see which instances there are");
            return;
        }
    };
    let Ok(served) = crd::served_kind(&crd["spec"]) else {
        return;
    };
    let mapping = instance_mapping(&served);
    // What was set up and failed later is as good as it can be.
    let is_other = |setup: Arc<Setup>| setup.settings.mapping != mapping;
    if kind.setup().is_none_or(is_other) {
        let (airway, unread) = read(object);
        let matchers = airway.spec.resource_access_matchers.iter().collect();
        let flight = match unread {
            Some(why) => Err(format!("its Airway can't be read: {why}")),
            None => load(control, &airway, false)
                .await
                .map_err(|error| error.chain()),
        };
        kind.set_setup(Setup {
            settings: settings(&airway, &mapping, &uid, matchers),
            flight,
            converter: None,
            skip_admission: airway.spec.skip_admission_webhook,
            scales: served.scales.clone(),
            insecure: airway.spec.insecure,
            spec: hash(&object["spec"]),
        });
    }
    instances::serve(control, kind, name, &mapping, LiveMeta::of(&crd).uid());
}

/// The Airway, and why it can't be read where that is so: then what counts for removals, and for whether its instances are
/// protected, is as far as it can be read, and all else is as if it was not said.
fn read(object: &Value) -> (Airway, Option<String>) {
    let why = match serde_json::from_value::<Airway>(object.clone()) {
        Ok(airway) => return (airway, None),
        Err(error) => error.to_string(),
    };
    let spec = &object["spec"];
    let spec = AirwaySpec {
        mode: field(&spec["mode"]),
        prune: field(&spec["prune"]),
        skip_admission_webhook: field(&spec["skipAdmissionWebhook"]),
        ..AirwaySpec::default()
    };
    let mut airway = Airway::new(LiveMeta::of(object).name(), spec);
    airway.metadata = field(&object["metadata"]);
    (airway, Some(why))
}

/// What can be read, else what it is where nothing is said.
fn field<T: DeserializeOwned + Default>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use atc_api::AirwayMode;
    use serde_json::json;

    use super::*;

    #[test]
    fn of_what_can_not_be_read_counts_what_can() {
        let mut object = json!({
            "apiVersion": "yoke.cd/v1alpha1", "kind": "Airway",
            "metadata": { "name": "apps.x.dev", "uid": "u" },
            "spec": {
                "wasmUrls": { "flight": "https://x.dev/app.wasm" },
                "fixDriftInterval": "1h",
                "mode": "static",
                "prune": { "crds": true },
                "template": {},
            },
        });
        let (airway, unread) = read(&object);
        assert_eq!(unread, None);
        assert_eq!(airway.spec.wasm_urls.flight, "https://x.dev/app.wasm");
        // It passes the schema, and is longer than what can be counted.
        object["spec"]["fixDriftInterval"] = "9999999h".into();
        let (airway, unread) = read(&object);
        assert!(unread.is_some_and(|why| why.contains("out of range")));
        assert!(airway.spec.prune.crds && airway.spec.mode == AirwayMode::Static);
        assert_eq!(airway.metadata.uid.as_deref(), Some("u"));
        assert_eq!(airway.metadata.name.as_deref(), Some("apps.x.dev"));
        object["spec"]["prune"] = "all".into();
        let (airway, _) = read(&object);
        assert!(!airway.spec.prune.crds && airway.spec.mode == AirwayMode::Static);
    }
}
