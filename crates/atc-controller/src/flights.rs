//! Flights and ClusterFlights: releases that one object describes, without a kind of their own.
//!
//! To the rest of the controller each is an instance; only its settings come from itself instead of from an Airway. Whoever
//! may write Flights in a namespace has no rights beyond it by that: a Flight makes and reads namespaced objects of its
//! own namespace, and none that gives rights. With `spec.serviceAccountName` it may what that account may, and whoever
//! writes it must be allowed to act as that. ClusterFlights are for those who may write them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atc_api::flight::FlightSpec;
use atc_api::{Account, AirwayMode, names};
use atc_engine::access::Matchers;
use atc_engine::artifact::Location;
use atc_engine::flight::Bounds;
use atc_engine::instance::{Authority, InstanceSettings, Subject};
use atc_engine::release::cluster::Mapping;
use serde_json::Value;

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
            settings: settings(mapping.clone(), &FlightSpec::default(), None),
            flight: Err("each has its own".into()),
            converter: None,
            skip_admission: false,
            scales: BTreeMap::new(),
            insecure: false,
            spec: 0,
        });
        instances::serve(control, &kind, &key, &mapping, "");
    }
}

/// The most that a Flight of a namespace may take of what all share: its author sets its bounds himself.
const LIMITED_TIME: Duration = Duration::from_secs(30);
/// The same of memory: 512 MiB, of which a quarter of all runs may hold as much at once.
const LIMITED_MEMORY: u64 = 512 << 20;

/// What a run may take.
fn bounds(spec: &FlightSpec, limited: bool) -> Bounds {
    let (mut time, mut memory) = (spec.time_limit(), spec.memory_bytes());
    if limited {
        time = Some(time.unwrap_or(LIMITED_TIME).min(LIMITED_TIME));
        memory = memory.min(LIMITED_MEMORY);
    }
    Bounds {
        time,
        memory,
        ..Bounds::default()
    }
}

/// What a release may do.
fn authority(mapping: &Mapping, account: Option<Account>) -> Authority {
    match account {
        Some(account) => Authority::Account(account),
        None if mapping.namespaced => Authority::Confined,
        None => Authority::Ours,
    }
}

/// How a Flight says that it is to be evaluated.
fn settings(mapping: Mapping, spec: &FlightSpec, account: Option<Account>) -> InstanceSettings {
    InstanceSettings {
        subject: Subject::Flight {
            input: spec.stdin(),
            args: spec.args.clone(),
            authority: authority(&mapping, account),
        },
        owner: None,
        cluster_access: spec.cluster_access,
        matchers: spec.resource_access_matchers.iter().collect::<Matchers>(),
        bounds: bounds(spec, mapping.namespaced),
        limited: mapping.namespaced,
        mode: spec.mode,
        drift_interval: spec.drift_interval(),
        history_cap: spec.history_cap(),
        prune: spec.prune.into(),
        mapping,
    }
}

/// Why a Flight of a namespace may not have its module from there: its author has no rights on the atc's own files, and
/// must not send its credentials over connections that prove nothing.
fn refused(spec: &FlightSpec, limited: bool) -> Option<&'static str> {
    let is_file = matches!(spec.wasm_url.parse(), Ok(Location::File(_)));
    match (limited, is_file, spec.insecure) {
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
                settings(mapping, &FlightSpec::default(), None),
                format!("spec can't be read ({at:?} error); compare it with the CRD"),
            );
        }
    };
    let namespace = object["metadata"]["namespace"].as_str();
    let account = match spec.account(namespace.unwrap_or_default()) {
        Ok(account) => account,
        Err(error) => {
            return Served::refused(settings(mapping, &spec, None), error.to_string());
        }
    };
    let settings = settings(mapping, &spec, account);
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
    fn whoever_is_limited_sets_no_bounds_beyond_ours() {
        let check = |value: Value, limited: bool, expect: (Option<u64>, u64)| {
            let bounds = bounds(&spec(&value), limited);
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
    fn whoever_is_limited_names_no_files_and_no_registry_that_proves_nothing() {
        let check = |value: Value, limited: bool, expect: bool| {
            assert_eq!(refused(&spec(&value), limited).is_some(), expect, "{value}");
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
