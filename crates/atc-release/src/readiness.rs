//! Is this live object ready: a verdict by kind, from the object itself and from what its readiness rests on.
//!
//! Three steps: [`related`] says what must be read beside the object, [`further`] what more in the light of that (at most
//! one small list), [`judge`] decides. Most kinds need neither. A verdict comes with the objects behind it, so that whoever
//! keeps it knows what to watch.
//!
//! The object must be as the apiserver gives it. An object that is being deleted is never ready.
//!
//! Each rule says where it comes from: the table of the existing tool, the documentation of the API, or kstatus
//! (`sigs.k8s.io/cli-utils/pkg/kstatus`), which kubectl's neighbours go by. Users may write rules of their own for kinds
//! that are not [`is_fixed`]; whoever reads the cluster asks those first.

use atc_api::ResourceRef;
use serde_json::Value;

mod claims;
mod conditions;
mod generic;
mod jobs;
mod pods;
mod scaling;
mod services;
mod traffic;
mod workloads;

pub use conditions::{all_true, one_line};
use conditions::{condition, is_true};
pub use pods::trouble;

/// How far an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does what it is for.
    Ready,
    /// It is not ready, and may yet be. Why, in one line.
    InProgress(String),
    /// It will not get ready unless somebody changes it. Why, in one line that goes on behind "failed: ".
    Failed(String),
}

impl Verdict {
    /// Whether it is [`Verdict::Ready`].
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready)
    }

    /// Whether what comes after it may be made: it is ready, or it is a Service that lacks nothing but ready Pods. Those may be
    /// of what comes after, and of a workload that is mended there.
    pub fn lets_go_on(&self) -> bool {
        self.is_ready() || self.why() == Some(services::NO_ENDPOINT)
    }

    /// Why it is not ready; `None` if it is.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Ready => None,
            Self::InProgress(why) | Self::Failed(why) => Some(why),
        }
    }
}

/// Which objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those with these labels.
    Labelled {
        /// Label selector, as the API's query parameter.
        selector: String,
        /// Field selector, as the API's query parameter.
        fields: Option<&'static str>,
        /// How many are enough; `None` for all.
        limit: Option<u32>,
    },
    /// The one of this name. Whoever may not read it takes it for absent.
    Named(String),
}

/// Objects that a verdict rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// API version to read in.
    pub api_version: &'static str,
    /// Kind to read.
    pub kind: &'static str,
    /// Namespace to read in; empty for kinds of cluster scope.
    pub namespace: String,
    /// Which of them.
    pub which: Which,
}

impl Related {
    /// The one of this name, of a kind of cluster scope.
    fn named(api_version: &'static str, kind: &'static str, name: &str) -> Self {
        Self {
            api_version,
            kind,
            namespace: String::new(),
            which: Which::Named(name.to_owned()),
        }
    }
}

/// What was found of [`Related`].
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// What was asked.
    pub related: Related,
    /// The items of the list; API version and kind may be missing, as the apiserver leaves them out in lists.
    pub objects: Vec<Value>,
}

/// A verdict and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Objects besides the judged one whose change may change the verdict.
    pub depends_on: Vec<ResourceRef>,
    /// Whether the verdict also rests on objects that can't be named yet, since they do not exist: no watch of `depends_on`
    /// shows their coming, so look again after a while.
    pub look_again: bool,
}

impl From<Verdict> for Judgement {
    fn from(verdict: Verdict) -> Self {
        Self {
            verdict,
            depends_on: Vec::new(),
            look_again: false,
        }
    }
}

/// What must be read to judge an object; empty for most kinds.
pub fn related(live: &Value) -> Vec<Related> {
    match group_and_kind(live) {
        ("", "Service") => services::slices(live).into_iter().collect(),
        ("", "PersistentVolumeClaim") => claims::class(live).into_iter().collect(),
        ("networking.k8s.io", "Ingress") => traffic::class(live).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// What must be read besides, now that the [`related`] objects are there; empty in nearly all cases.
pub fn further(live: &Value, found: &[Found]) -> Vec<Related> {
    match group_and_kind(live) {
        ("", "Service") => services::pods(live, found).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Judges an object. `found` is what [`related`] and [`further`] asked for.
pub fn judge(live: &Value, found: &[Found]) -> Judgement {
    if is_deleting(live) {
        return Verdict::InProgress("it is being deleted".to_owned()).into();
    }
    match group_and_kind(live) {
        ("", "Service") => services::judge(live, found),
        ("", "Namespace") => namespace(live).into(),
        ("", "Pod") => pods::pod(live).into(),
        ("", "ReplicationController") | ("apps", "ReplicaSet") => {
            workloads::replica_set(live).into()
        }
        ("apps", "Deployment") => workloads::deployment(live).into(),
        ("apps", "StatefulSet") => workloads::stateful_set(live).into(),
        ("apps", "DaemonSet") => workloads::daemon_set(live).into(),
        ("batch", "Job") => jobs::job(live).into(),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            custom_resource_definition(live).into()
        }
        (atc_api::names::GROUP, "Airway" | "Flight" | "ClusterFlight") => {
            conditions::wants(live, "Ready").into()
        }
        _ if is_instance(live) => conditions::wants(live, "Ready").into(),
        ("", "PersistentVolumeClaim") => claims::claim(live, found).into(),
        ("policy", "PodDisruptionBudget") => scaling::disruption_budget(live).into(),
        ("autoscaling", "HorizontalPodAutoscaler") => scaling::autoscaler(live).into(),
        ("networking.k8s.io", "Ingress") => traffic::ingress(live, found).into(),
        (traffic::GATEWAYS, kind) => traffic::gateways(kind, live).into(),
        (group, _) if is_of_the_api_server(group) => Verdict::Ready.into(),
        _ => generic::resource(live).into(),
    }
}

/// Whether an object is on its way out, which no rule makes ready.
pub fn is_deleting(live: &Value) -> bool {
    !live["metadata"]["deletionTimestamp"].is_null()
}

/// Whether what [`judge`] says of an object is the last word: the kinds of the existing tool's table, which users' rules
/// can't change, and instances of Airways, whose `Ready` the atc itself sets.
pub fn is_fixed(live: &Value) -> bool {
    matches!(
        group_and_kind(live),
        (
            "",
            "Namespace" | "Pod" | "Service" | "ReplicationController"
        ) | (
            "apps",
            "Deployment" | "StatefulSet" | "ReplicaSet" | "DaemonSet"
        ) | ("batch", "Job")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
            | (atc_api::names::GROUP, "Airway" | "Flight" | "ClusterFlight")
    ) || is_instance(live)
}

/// Whether the status of objects of a kind can count for their readiness. Where not, being there is being ready.
///
/// Kinds of the API server's own groups that [`judge`] does not name have no verdict; others may say by conditions how
/// they are, or may be instances of an Airway, which only their owner references tell.
pub fn has_verdict(group: &str, kind: &str) -> bool {
    match (group, kind) {
        (
            "",
            "Service" | "Namespace" | "Pod" | "ReplicationController" | "PersistentVolumeClaim",
        )
        | ("apps", "ReplicaSet" | "Deployment" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job")
        | ("policy", "PodDisruptionBudget")
        | ("autoscaling", "HorizontalPodAutoscaler")
        | ("networking.k8s.io", "Ingress")
        | ("apiextensions.k8s.io", "CustomResourceDefinition") => true,
        (group, _) => !is_of_the_api_server(group),
    }
}

/// Groups whose kinds the API server itself has; in all others they are custom resources.
fn is_of_the_api_server(group: &str) -> bool {
    const DOMAIN: &str = ".k8s.io";
    const GROUPS: [&str; 18] = [
        "admissionregistration",
        "apiextensions",
        "apiregistration",
        "authentication",
        "authorization",
        "certificates",
        "coordination",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "internal.apiserver",
        "networking",
        "node",
        "rbac.authorization",
        "resource",
        "scheduling",
        "storage",
        "storagemigration",
    ];
    matches!(
        group,
        "" | "apps" | "autoscaling" | "batch" | "extensions" | "policy"
    ) || group
        .strip_suffix(DOMAIN)
        .is_some_and(|group| GROUPS.contains(&group))
}

/// Whether an object is one that an Airway looks after: its status says how it is.
fn is_instance(live: &Value) -> bool {
    let owners = live["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().any(|owner| {
        let group = owner["apiVersion"]
            .as_str()
            .and_then(|text| text.split_once('/'))
            .map(|(group, _)| group);
        owner["kind"] == "Airway" && group == Some(atc_api::names::GROUP)
    })
}

fn namespace(live: &Value) -> Verdict {
    match live["status"]["phase"].as_str() {
        Some("Active") => Verdict::Ready,
        phase => Verdict::InProgress(format!(
            "its phase is \"{}\", not Active",
            phase.unwrap_or_default()
        )),
    }
}

fn custom_resource_definition(live: &Value) -> Verdict {
    if let Some(names) = condition(live, "NamesAccepted").filter(|names| names["status"] == "False")
    {
        return Verdict::InProgress(format!(
            "its names are not accepted{}",
            conditions::words(names)
        ));
    }
    conditions::wants(live, "Established")
}

/// Group (empty for core) and kind of an object.
pub fn group_and_kind(live: &Value) -> (&str, &str) {
    let api_version = live["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    (group, live["kind"].as_str().unwrap_or_default())
}

/// A count in the status or spec; absent ones are 0.
fn count(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// Whether the object's controller has seen its present generation, and why not.
fn unobserved(live: &Value) -> Option<Verdict> {
    let observed = count(&live["status"]["observedGeneration"]);
    let generation = count(&live["metadata"]["generation"]);
    (observed < generation).then(|| {
        Verdict::InProgress(format!(
            "generation {generation} is not observed yet, only {observed}"
        ))
    })
}

#[cfg(test)]
mod tests;
