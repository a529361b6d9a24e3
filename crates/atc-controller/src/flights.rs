//! Flights and ClusterFlights: releases that one object describes, without a kind of their own.
//!
//! To the rest of the controller each is an instance; only its settings come from itself instead of from an Airway. Whoever
//! may write Flights in a namespace has no rights beyond it by that: a Flight makes and reads namespaced objects of its
//! own namespace, and none that gives rights. ClusterFlights are for those who may write them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atc_api::flight::FlightSpec;
use atc_api::{AirwayMode, names};
use atc_engine::access::Matchers;
use atc_engine::artifact::Location;
use atc_engine::flight::Bounds;
use atc_engine::instance::{InstanceSettings, Subject};
use atc_engine::release::cluster::Mapping;
use atc_engine::release::plan::PruneOptions;
use serde_json::Value;

use crate::airway::DRIFT_MIN;
use crate::control::Control;
use crate::instances;
use crate::kinds::Setup;
use crate::modules::Named;
use crate::overrides::{Load, Served};

/// The two kinds, under names that no Airway can have: those are lower case.
const KINDS: [(&str, &str, bool); 2] = [
    ("Flight", "flights", true),
    ("ClusterFlight", "clusterflights", false),
];

/// Whether this is the name of one of the two, not of an Airway.
pub(crate) fn is_kind(name: &str) -> bool {
    KINDS.iter().any(|(kind, _, _)| *kind == name)
}

/// Follows all Flights and ClusterFlights until the process stops.
pub(crate) fn serve(control: &Arc<Control>) {
    for (name, plural, namespaced) in KINDS {
        let mapping = Mapping {
            group: names::GROUP.into(),
            version: names::VERSION.into(),
            kind: name.into(),
            plural: plural.into(),
            namespaced,
        };
        let key: Arc<str> = name.into();
        control.kinds.upsert(&key, Value::Null);
        let Some(kind) = control.kinds.get(&key) else {
            continue;
        };
        kind.set_setup(Setup {
            settings: settings(mapping.clone(), &FlightSpec::default()),
            flight: Err("each has its own".into()),
            converter: None,
            skip_admission: false,
            scales: BTreeMap::new(),
            insecure: false,
            spec: 0,
        });
        instances::serve(control, &kind, &key, &mapping, "", false);
    }
}

/// The most that a Flight of a namespace may take of what all share: its author sets its bounds himself.
const CONFINED_TIME: Duration = Duration::from_secs(30);
/// The same of memory: 512 MiB, of which a quarter of all runs may hold as much at once.
const CONFINED_MEMORY: u64 = 512 << 20;

/// What a run may take.
fn bounds(spec: &FlightSpec, confined: bool) -> Bounds {
    let (mut time, mut memory) = (spec.time_limit(), spec.memory_bytes());
    if confined {
        time = Some(time.unwrap_or(CONFINED_TIME).min(CONFINED_TIME));
        memory = memory.min(CONFINED_MEMORY);
    }
    Bounds {
        time,
        memory,
        ..Bounds::default()
    }
}

/// How a Flight says that it is to be evaluated.
fn settings(mapping: Mapping, spec: &FlightSpec) -> InstanceSettings {
    InstanceSettings {
        subject: Subject::Flight {
            input: spec.stdin(),
            args: spec.args.clone(),
            confined: mapping.namespaced,
        },
        owner: None,
        cluster_access: spec.cluster_access,
        matchers: spec.resource_access_matchers.iter().collect::<Matchers>(),
        bounds: bounds(spec, mapping.namespaced),
        mode: spec.mode,
        drift_interval: spec.drift_interval().map(|every| every.max(DRIFT_MIN)),
        history_cap: spec.history_cap(),
        prune: PruneOptions {
            crds: spec.prune.crds,
            namespaces: spec.prune.namespaces,
        },
        mapping,
    }
}

/// Why a Flight of a namespace may not have its module from there: its author has no rights on the atc's own files, and
/// must not send its credentials over connections that prove nothing.
fn refused(spec: &FlightSpec, confined: bool) -> Option<&'static str> {
    let is_file = matches!(spec.wasm_url.parse(), Ok(Location::File(_)));
    match (confined, is_file, spec.insecure) {
        (true, true, _) => Some(
            "spec.wasmUrl is a file of the atc's own, which only Airways and ClusterFlights may name",
        ),
        (true, _, true) => Some("spec.insecure is for Airways and ClusterFlights only"),
        _ => None,
    }
}

/// How a Flight is served: by what it says itself.
pub(crate) async fn served<'a>(
    control: &Control,
    setup: &Setup,
    object: &Value,
    load: Load,
) -> Served<'a> {
    let mapping = setup.settings.mapping.clone();
    let spec = match serde_json::from_value::<FlightSpec>(object["spec"].clone()) {
        Ok(spec) => spec,
        Err(error) => {
            // The words of the parser may quote what it stumbled over: the input of a Flight may be secret.
            let at = error.classify();
            return Served::refused(
                settings(mapping, &FlightSpec::default()),
                format!("spec can't be read ({at:?} error); compare it with the CRD"),
            );
        }
    };
    let settings = settings(mapping, &spec);
    if spec.mode == AirwayMode::Static {
        return Served::refused(
            settings,
            "spec.mode \"static\" is not one of a Flight's".into(),
        );
    }
    if load == Load::Not {
        return Served::refused(settings, "its flight was not loaded".into());
    }
    if let Some(why) = refused(&spec, setup.settings.mapping.namespaced) {
        return Served::refused(settings, why.into());
    }
    let flight = Named {
        field: "spec.wasmUrl",
        url: &spec.wasm_url,
        checksum: spec.checksum.as_deref(),
        insecure: spec.insecure,
    };
    match flight.load(control, load == Load::Fresh).await {
        Ok(flight) => Served::of(settings, flight),
        Err(error) => Served::refused(settings, error.chain()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(value: &Value) -> FlightSpec {
        serde_json::from_value(value.clone()).expect("a spec")
    }

    #[test]
    fn whoever_is_confined_sets_no_bounds_beyond_ours() {
        let check = |value: Value, confined: bool, expect: (Option<u64>, u64)| {
            let bounds = bounds(&spec(&value), confined);
            let time = bounds.time.map(|time| time.as_secs());
            assert_eq!((time, bounds.memory >> 20), expect, "{value}");
        };
        let endless = json!({ "wasmUrl": "http://x", "timeout": "-1s" });
        check(endless.clone(), false, (None, 4_096));
        check(endless, true, (Some(30), 512));
        check(json!({ "wasmUrl": "http://x" }), true, (Some(10), 512));
        let less = json!({ "wasmUrl": "http://x", "timeout": "2s", "maxMemoryMib": 64 });
        check(less, true, (Some(2), 64));
    }

    #[test]
    fn whoever_is_confined_names_no_files_and_no_registry_that_proves_nothing() {
        let check = |value: Value, confined: bool, expect: bool| {
            assert_eq!(
                refused(&spec(&value), confined).is_some(),
                expect,
                "{value}"
            );
        };
        for url in ["/etc/x.wasm", "x.wasm", "file:///x.wasm"] {
            check(json!({ "wasmUrl": url }), true, true);
            check(json!({ "wasmUrl": url }), false, false);
        }
        check(json!({ "wasmUrl": "https://x/y" }), true, false);
        check(
            json!({ "wasmUrl": "oci://x/y", "insecure": true }),
            true,
            true,
        );
        check(
            json!({ "wasmUrl": "oci://x/y", "insecure": true }),
            false,
            false,
        );
    }
}
