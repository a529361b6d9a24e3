//! Airway → CRD, webhook configuration, instance controller; and all of that away again.

use std::sync::Arc;

use atc_api::{Airway, names};
use atc_engine::access::Matchers;
use atc_engine::disposition::Disposition;
use atc_engine::error::{EngineError, chain};
use atc_engine::flight::Bounds;
use atc_engine::instance::{InstanceSettings, Subject};
use atc_engine::release::cluster::{ApplyOptions, ClusterError, LiveMeta, Mapping};
use atc_engine::release::object::{Object, ObjectError};
use atc_engine::status::Ready;
use atc_engine::watch::{Dependencies, Dependency, Fingerprint, Role, Seen};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::Value;

use crate::control::Control;
use crate::crd::{self, ServedKind, TemplateError};
use crate::hooks::{self, HookError};
use crate::instances;
use crate::kinds::{Kind, Setup, hash};
use crate::modules::{Converter, load, load_converter};
use crate::owner::Owner;

mod adopt;
mod established;
mod flight;
mod loosen;
mod outcome;
mod reach;
mod refresh;
mod removal;
mod writes;

use adopt::adopt;
use established::{ESTABLISH, established};
use flight::{served_before, withdraw};
use outcome::{Outcome, Served};
use removal::going;
use writes::{hold, write_status};

/// Why an Airway is not served as it says.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AirwayError {
    /// It can't be read at all.
    #[error("this Airway can't be read")]
    Unreadable(#[source] serde_json::Error),
    /// Its template gives no CRD.
    #[error("the template is not usable")]
    Template(#[source] TemplateError),
    /// Its flight can't be loaded.
    #[error(transparent)]
    Flight(EngineError),
    /// Its converter can't be loaded.
    #[error("its converter can't be had")]
    Converter(#[source] EngineError),
    /// The CRD of that name is somebody else's.
    #[error(
        "CustomResourceDefinition \"{name}\" exists and is not this Airway's: deleting the Airway would delete it with all its objects, so it is not taken; remove it first or choose another name"
    )]
    ForeignCrd { name: String, live: Fingerprint },
    /// What is to be applied is no object.
    #[error("can't make {what}")]
    Object {
        what: &'static str,
        #[source]
        source: ObjectError,
    },
    /// The API server refused.
    #[error("the cluster refused {what}")]
    Cluster {
        what: &'static str,
        #[source]
        source: ClusterError,
    },
    /// Its webhook configuration does not stand.
    #[error("its instances are not reviewed")]
    Hook(#[source] HookError),
    /// The CRD did not become usable.
    #[error("CustomResourceDefinition \"{name}\" is not established after {} s: {why}", ESTABLISH.as_secs())]
    NotEstablished {
        name: String,
        why: String,
        live: Fingerprint,
    },
}

impl AirwayError {
    fn disposition(&self) -> Disposition {
        match self {
            Self::Unreadable(_) | Self::Template(_) => Disposition::Terminal,
            Self::Flight(error) | Self::Converter(error) => error.disposition(),
            Self::ForeignCrd { .. }
            | Self::Object { .. }
            | Self::Cluster { .. }
            | Self::Hook(_)
            | Self::NotEstablished { .. } => Disposition::Retry,
        }
    }
}

/// Where Airways live in the API.
pub(crate) fn mapping() -> Mapping {
    Mapping {
        group: names::GROUP.into(),
        version: names::VERSION.into(),
        kind: "Airway".into(),
        plural: "airways".into(),
        namespaced: false,
    }
}

pub(crate) fn crd_mapping() -> Mapping {
    Mapping {
        group: "apiextensions.k8s.io".into(),
        version: "v1".into(),
        kind: "CustomResourceDefinition".into(),
        plural: "customresourcedefinitions".into(),
        namespaced: false,
    }
}

/// Brings an Airway to what it says.
pub(crate) async fn reconcile(control: &Arc<Control>, name: &Arc<str>) -> Disposition {
    let Some(kind) = control.kinds.get(name) else {
        return Disposition::Wait;
    };
    let owner = Owner::Airway(name.clone());
    let mut object = (*kind.airway()).clone();
    control.hub.begin(&owner);
    let outcome = if LiveMeta::of(&object).is_deleting() {
        let Some(outcome) = going(control, &kind, name, &object).await else {
            control.hub.forget(&owner);
            return Disposition::Wait;
        };
        outcome
    } else {
        let outcome = match serve(control, &kind, name, &mut object).await {
            Ok(served) => served.outcome(name, &object["spec"]["wasmUrls"]),
            Err(error) => failed(control, &kind, name, &object, &error).await,
        };
        outcome.but(kind.held.complaint())
    };
    if outcome.dependencies.is_empty() {
        control.hub.fail(&owner, Dependencies::default());
    } else {
        control.hub.commit(&owner, outcome.dependencies);
    }
    match write_status(control, &object, &outcome.ready).await {
        Ok(()) => outcome.disposition,
        Err(error) => {
            tracing::warn!(airway = %name, error = chain(&error), "can't write the Airway's status");
            Disposition::Retry
        }
    }
}

/// An Airway that can't be served as it says. Its instances go on as far as they can.
async fn failed(
    control: &Arc<Control>,
    kind: &Arc<Kind>,
    name: &Arc<str>,
    object: &Value,
    error: &AirwayError,
) -> Outcome {
    tracing::warn!(airway = %name, error = chain(error), "Airway is not served as it says");
    adopt(control, kind, name, object).await;
    withdraw(control, kind, name, object).await;
    let (mut dependencies, again) = reach::tell_again(control, name, object).await;
    if let AirwayError::ForeignCrd { live, .. } | AirwayError::NotEstablished { live, .. } = error {
        // Somebody else's is waited for to go, or to be given to this Airway; ours to get its names, which its status says.
        dependencies.push(Dependency {
            role: Role::Input,
            ..tracked_crd(name, Seen::Present(live.clone()))
        });
    }
    Outcome {
        ready: Ready::error(chain(error)),
        disposition: again.map_or(error.disposition(), Disposition::After),
        dependencies,
    }
}

async fn live_crd(control: &Control, name: &str) -> Result<Option<Value>, AirwayError> {
    let what = "a look at its CustomResourceDefinition";
    let live = control.engine.cluster().get(&crd_mapping(), "", name).await;
    live.map_err(|source| AirwayError::Cluster { what, source })
}

fn is_owned_by(object: &Value, uid: &str) -> bool {
    LiveMeta::of(object)
        .owner_references()
        .iter()
        .any(|owner| owner["uid"] == uid)
}

/// Whether an Airway of this name owned it: one before, since the Airways' names are unique and this one does not; or one whose
/// reference somebody took off.
fn is_left_by(object: &Value, airway: &str) -> bool {
    let live = LiveMeta::of(object);
    if live.owner_references().is_empty() {
        return live.annotation(names::ANNOTATION_AIRWAY) == Some(airway);
    }
    live.owner_references().iter().any(|owner| {
        owner["kind"] == "Airway"
            && owner["name"] == airway
            && owner["apiVersion"]
                .as_str()
                .is_some_and(|version| version.starts_with("yoke.cd/"))
    })
}

/// Finalizer, CRD, flight, webhook, instances.
async fn serve(
    control: &Arc<Control>,
    kind: &Arc<Kind>,
    name: &Arc<str>,
    object: &mut Value,
) -> Result<Served, AirwayError> {
    let airway: Airway = serde_json::from_value(object.clone()).map_err(AirwayError::Unreadable)?;
    let template = Value::Object(airway.spec.template.to_spec());
    let served = crd::served_kind(&template).map_err(AirwayError::Template)?;
    let mut definition =
        crd::of_airway(&airway, &template, &control.service).map_err(AirwayError::Template)?;
    let matchers: Matchers = airway.spec.resource_access_matchers.iter().collect();
    hold(control, object).await?;
    let uid = airway.metadata.uid.clone().unwrap_or_default();
    let live = live_crd(control, name).await?;
    if let Some(crd) = &live
        && !is_owned_by(crd, &uid)
        && !is_left_by(crd, name)
    {
        return Err(AirwayError::ForeignCrd {
            name: name.to_string(),
            live: Fingerprint::of(crd),
        });
    }
    // A converter that can't be had must not be named to the API server: it would ask for it at every read.
    let converter = load_converter(control, &airway, false)
        .await
        .map_err(AirwayError::Converter)?
        .map(|module| Converter::of(module, &airway));
    if let Some(live) = &live {
        reach::keep_of_later(control, live, &mut definition);
    }
    let crd = apply(control, "its CustomResourceDefinition", definition).await?;
    let crd = established(control, name, crd).await?;
    let flight = load(control, &airway, false).await;
    let mapping = instance_mapping(&served);
    let setup = Setup {
        settings: settings(&airway, &mapping, &uid, matchers),
        flight: match &flight {
            Ok(flight) => Ok(flight.clone()),
            Err(error) => served_before(control, kind)
                .await
                .ok_or_else(|| error.chain()),
        },
        converter,
        skip_admission: airway.spec.skip_admission_webhook,
        scales: served.scales.clone(),
        insecure: airway.spec.insecure,
        spec: hash(&object["spec"]),
    };
    kind.set_setup(setup);
    let wanted = control.service.of_airway(name, &uid, &served);
    let hook = hooks::bring(control, wanted)
        .await
        .map_err(AirwayError::Hook)?;
    let crd_uid = LiveMeta::of(&crd).uid().to_owned();
    instances::serve(control, kind, name, &mapping, &crd_uid);
    let crd = tracked_crd(name, Seen::Present(Fingerprint::of(&crd)));
    Ok(Served {
        dependencies: vec![crd, hook.seen],
        again: hook.again,
        without: flight.err().map(AirwayError::Flight),
    })
}

fn tracked_crd(name: &str, seen: Seen) -> Dependency {
    hooks::tracked(&crd_mapping(), name, seen)
}

fn instance_mapping(served: &ServedKind) -> Mapping {
    Mapping {
        group: served.group.clone(),
        version: served.version.clone(),
        kind: served.kind.clone(),
        plural: served.plural.clone(),
        namespaced: served.namespaced,
    }
}

fn settings(airway: &Airway, mapping: &Mapping, uid: &str, matchers: Matchers) -> InstanceSettings {
    let spec = &airway.spec;
    InstanceSettings {
        mapping: mapping.clone(),
        owner: Some(OwnerReference {
            api_version: format!("{}/{}", names::GROUP, names::VERSION),
            kind: "Airway".into(),
            name: airway.metadata.name.clone().unwrap_or_default(),
            uid: uid.to_owned(),
            block_owner_deletion: Some(true),
            controller: None,
        }),
        subject: Subject::Instance {
            object_path: spec.object_path.clone(),
        },
        cluster_access: spec.cluster_access,
        matchers,
        bounds: Bounds {
            time: spec.time_limit(),
            memory: spec.memory_bytes(),
            ..Bounds::default()
        },
        limited: false,
        mode: spec.mode,
        drift_interval: spec.drift_interval(),
        history_cap: spec.history_cap(),
        prune: spec.prune.into(),
    }
}

async fn apply(control: &Control, what: &'static str, value: Value) -> Result<Value, AirwayError> {
    let object = Object::try_from(value).map_err(|source| AirwayError::Object { what, source })?;
    let options = ApplyOptions {
        force: true,
        ..ApplyOptions::default()
    };
    let applied = control.engine.cluster().apply(&object, &options).await;
    Ok(applied
        .map_err(|source| AirwayError::Cluster { what, source })?
        .live)
}
