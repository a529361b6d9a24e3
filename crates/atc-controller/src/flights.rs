//! Flights and ClusterFlights: releases that one object describes, without a kind of their own.
//!
//! To the rest of the controller each is an instance; only its settings come from itself instead of from an Airway. Whoever
//! may write Flights in a namespace has no rights beyond it by that: a Flight makes and reads namespaced objects of its
//! own namespace, and none that gives rights. ClusterFlights are for those who may write them.

use std::collections::BTreeMap;
use std::sync::Arc;

use atc_api::flight::FlightSpec;
use atc_api::{AirwayMode, names};
use atc_engine::access::Matchers;
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
            skip_admission: false,
            scales: BTreeMap::new(),
            insecure: false,
            spec: 0,
        });
        instances::serve(control, &kind, &key, &mapping, "", false);
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
        mapping,
        owner: None,
        cluster_access: spec.cluster_access,
        matchers: spec.resource_access_matchers.iter().collect::<Matchers>(),
        bounds: Bounds {
            time: spec.time_limit(),
            memory: spec.memory_bytes(),
            ..Bounds::default()
        },
        mode: spec.mode,
        drift_interval: spec.drift_interval().map(|every| every.max(DRIFT_MIN)),
        history_cap: spec.history_cap(),
        prune: PruneOptions {
            crds: spec.prune.crds,
            namespaces: spec.prune.namespaces,
        },
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
