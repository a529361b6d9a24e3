//! Airway → CRD, webhook configuration, instance controller; and all of that away again.

mod refresh;

use std::sync::Arc;
use std::time::Duration;

use atc_api::{Airway, names};
use atc_engine::access::Matchers;
use atc_engine::disposition::Disposition;
use atc_engine::error::{EngineError, chain};
use atc_engine::flight::Bounds;
use atc_engine::instance::{InstanceSettings, Subject};
use atc_engine::release::cluster::{
    ApplyOptions, ClusterError, Deleted, ErrorKind, LiveMeta, Mapping, MetadataEdit, Propagation,
};
use atc_engine::release::object::{Object, ObjectError};
use atc_engine::status::{self, Ready};
use atc_engine::watch::{Dependencies, Dependency, Fingerprint, Seen};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};

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
mod reach;

use adopt::adopt;
use established::{ESTABLISH, established};
use flight::{served_before, withdraw};

/// While a CRD goes, it is looked at again at least this often, should no event tell of it.
const GOING: Duration = Duration::from_secs(5);

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
        "CustomResourceDefinition \"{0}\" exists and is not this Airway's: deleting the Airway would delete it with all its objects, so it is not taken; remove it first or choose another name"
    )]
    ForeignCrd(String),
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
    NotEstablished { name: String, why: String },
}

impl AirwayError {
    fn disposition(&self) -> Disposition {
        match self {
            Self::Unreadable(_) | Self::Template(_) => Disposition::Terminal,
            Self::Flight(error) | Self::Converter(error) => error.disposition(),
            Self::ForeignCrd(_)
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
    let (ready, disposition, dependencies) = if LiveMeta::of(&object).is_deleting() {
        adopt(control, &kind, name, &object).await;
        match remove(control, &kind, &object).await {
            Ok(None) => {
                control.hub.forget(&owner);
                return Disposition::Wait;
            }
            Ok(Some(crd)) => {
                let words = "waiting for its instances and its CustomResourceDefinition to go";
                (
                    Ready::terminating(words),
                    Disposition::After(GOING),
                    vec![tracked_crd(name, Seen::Present(crd))],
                )
            }
            Err(error) => (
                Ready::terminating(chain(&error)),
                error.disposition(),
                Vec::new(),
            ),
        }
    } else {
        match serve(control, &kind, name, &mut object).await {
            Ok(Served {
                dependencies,
                without: Some(error),
                ..
            }) => {
                tracing::warn!(airway = %name, error = chain(&error), "Airway is not served as it says");
                (
                    Ready::error(chain(&error)),
                    error.disposition(),
                    dependencies,
                )
            }
            Ok(Served {
                dependencies,
                again,
                without: None,
            }) => (
                Ready {
                    status: true,
                    reason: "Ready",
                    message: "instances are served".into(),
                },
                match again {
                    Some(pause) => Disposition::After(pause),
                    None => refresh::next(&kind.airway()["spec"]["wasmUrls"]),
                },
                dependencies,
            ),
            Err(error) => {
                tracing::warn!(airway = %name, error = chain(&error), "Airway is not served as it says");
                adopt(control, &kind, name, &object).await;
                withdraw(control, &kind, name, &object).await;
                let (hook, again) = reach::tell_again(control, name, &object).await;
                (
                    Ready::error(chain(&error)),
                    again.map_or(error.disposition(), Disposition::After),
                    hook,
                )
            }
        }
    };
    let failed = dependencies.is_empty();
    if failed {
        control.hub.fail(&owner, Dependencies::default());
    } else {
        control.hub.commit(&owner, dependencies);
    }
    match write_status(control, &object, &ready).await {
        Ok(()) => disposition,
        Err(error) => {
            tracing::warn!(airway = %name, error = chain(&error), "can't write the Airway's status");
            Disposition::Retry
        }
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

/// An Airway whose CRD and webhook configuration stand.
struct Served {
    /// What it depends on.
    dependencies: Vec<Dependency>,
    /// When to look again in any case.
    again: Option<Duration>,
    /// What it is served without: its flight can't be had.
    without: Option<AirwayError>,
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
    if live
        .as_ref()
        .is_some_and(|crd| !is_owned_by(crd, &uid) && !is_left_by(crd, name))
    {
        return Err(AirwayError::ForeignCrd(name.to_string()));
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

async fn hold(control: &Control, object: &mut Value) -> Result<(), AirwayError> {
    let edit = MetadataEdit {
        add_finalizer: Some(names::FINALIZER_AIRWAY.into()),
        ..MetadataEdit::default()
    };
    let refused = |source| AirwayError::Cluster {
        what: "its finalizer",
        source,
    };
    if let Some(stored) = control
        .engine
        .cluster()
        .edit_metadata(&mapping(), &LiveMeta::of(object), &edit)
        .await
        .map_err(refused)?
    {
        *object = stored;
    }
    Ok(())
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

/// Removes what the Airway made. Gives the CRD that is still going, or nothing when all is gone and the Airway was let go.
async fn remove(
    control: &Control,
    kind: &Kind,
    object: &Value,
) -> Result<Option<Fingerprint>, AirwayError> {
    let live = LiveMeta::of(object);
    let name = live.name();
    let cluster = control.engine.cluster();
    let refused = |what| move |source| AirwayError::Cluster { what, source };
    if !live.finalizers().contains(&names::FINALIZER_AIRWAY) {
        kind.stop();
        return Ok(None);
    }
    let ours = |meta: &LiveMeta| {
        meta.owner_references()
            .iter()
            .any(|owner| owner["uid"] == live.uid())
    };
    let hooks = hooks::mapping();
    if let Some(hook) = cluster
        .metadata(&hooks, "", name)
        .await
        .map_err(refused("a look at its webhook configuration"))?
        && ours(&hook)
    {
        cluster
            .delete(&hooks, "", name, hook.uid(), None, Propagation::Background)
            .await
            .map_err(refused("the removal of its webhook configuration"))?;
    }
    let crds = crd_mapping();
    if let Some(crd) = cluster
        .metadata(&crds, "", name)
        .await
        .map_err(refused("a look at its CustomResourceDefinition"))?
        && ours(&crd)
    {
        let deleted = if crd.is_deleting() {
            Deleted::Pending
        } else {
            cluster
                .delete(&crds, "", name, crd.uid(), None, Propagation::Foreground)
                .await
                .map_err(refused("the removal of its CustomResourceDefinition"))?
        };
        if deleted == Deleted::Pending {
            return Ok(Some(Fingerprint::of(&json!({ "metadata": crd.value() }))));
        }
    }
    let edit = MetadataEdit {
        remove_finalizer: Some(names::FINALIZER_AIRWAY.into()),
        ..MetadataEdit::default()
    };
    match cluster.edit_metadata(&mapping(), &live, &edit).await {
        Ok(_) => {}
        // Our status write moved it on: the watch brings the newer one and this is done again.
        Err(error) if error.kind() == ErrorKind::Stale => {
            let now = cluster
                .metadata(&mapping(), "", name)
                .await
                .map_err(refused("a look at it"))?;
            if let Some(now) = now.filter(|now| now.uid() == live.uid()) {
                cluster
                    .edit_metadata(&mapping(), &now, &edit)
                    .await
                    .map_err(refused("the removal of its finalizer"))?;
            }
        }
        Err(error) => return Err(refused("the removal of its finalizer")(error)),
    }
    kind.stop();
    Ok(None)
}

async fn write_status(
    control: &Control,
    object: &Value,
    ready: &Ready,
) -> Result<(), ClusterError> {
    let cluster = control.engine.cluster();
    let mut object = object.clone();
    for _ in 0..3 {
        let live = LiveMeta::of(&object);
        let stored = object.get("status").cloned().unwrap_or(Value::Null);
        let now = jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string();
        let generation = live.generation().unwrap_or(0);
        let Some(next) = status::next(&stored, None, ready, generation, &now) else {
            return Ok(());
        };
        match cluster
            .replace_status(&mapping(), "", live.name(), &next, live.resource_version())
            .await
        {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Stale => {
                match cluster.get(&mapping(), "", live.name()).await? {
                    Some(newer) if LiveMeta::of(&newer).uid() == live.uid() => {
                        if LiveMeta::of(&newer).generation() != live.generation() {
                            return Ok(());
                        }
                        object = newer;
                    }
                    _ => return Ok(()),
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
