//! What is asked before the first write: whose are the objects, and would the API server take them. And what is asked
//! again about an object that changed since.

use std::collections::{HashMap, HashSet};

use atc_api::{GroupKind, ResourceRef, names};
use atc_release::cluster::{
    Applied, ApplyOptions, ClusterError, ErrorKind, Expect, LiveMeta, Preview,
};
use atc_release::object::{Object, Stages};
use atc_release::ownership::{self, Owner};

use super::apply::pick;
use super::record::is_covered;
use super::{DryRun, TakeoffRequest, Unjudged};
use crate::engine::Engine;
use crate::error::{EngineError, chain};
use crate::memory::Memory;

/// Looks at an object that changes between look and apply each time. One or two are enough beside a controller that
/// writes its status.
const MAX_LOOKS: u32 = 5;

impl Engine {
    /// Refuses what belongs to others, where that is not taken by force, and what Airways made; gives what the applies must
    /// find unchanged. Of a release that takes by force only what is `due` is looked at.
    pub(crate) async fn check_ownership(
        &self,
        request: &TakeoffRequest,
        stages: &Stages,
        due: &HashSet<ResourceRef>,
    ) -> Result<HashMap<ResourceRef, Expect>, EngineError> {
        let us = request.decoration.identity();
        let is_looked_at = |object: &&Object| {
            !request.force_ownership
                || (due.contains(&object.reference())
                    && (may_be_an_airways(object)
                        || (request.decoration.confined && is_custom(object))))
        };
        let objects: Vec<&Object> = stages.objects().filter(is_looked_at).collect();
        if objects.is_empty() {
            return Ok(HashMap::new());
        }
        let found = self.reach().metadata_of(&objects).await;
        let mut expectations = HashMap::new();
        let mut failures = Vec::new();
        for (object, live) in objects.into_iter().zip(found) {
            if let Ok(Some(live)) = &live
                && let Some(words) = made_by_airway(object, live, &us)
            {
                failures.push(words);
                continue;
            }
            if is_forced(request, object) {
                if request.decoration.confined {
                    failures.extend(overridden(object, live, &us));
                }
                continue;
            }
            match expected(object, live, &us) {
                Ok(expect) => {
                    expectations.insert(object.reference(), expect);
                }
                Err(words) => failures.push(words),
            }
        }
        if failures.is_empty() {
            return Ok(expectations);
        }
        Err(EngineError::Refused {
            step: "ownership",
            failures,
        })
    }

    /// Applies an object that changed since it was looked at, as long as it is ours. One that another release has taken
    /// meanwhile is left to it.
    pub(super) async fn apply_anew(
        &self,
        object: &Object,
        mut options: ApplyOptions,
        us: &Owner,
    ) -> Result<Applied, String> {
        let mut looks = 1;
        loop {
            let live = self.reach().metadata_of(&[object]).await.pop();
            options.expect = expected(object, live.unwrap_or(Ok(None)), us)?;
            match self.reach().apply(object, &options).await {
                Err(error) if was_changed(&error, Some(&options.expect)) && looks < MAX_LOOKS => {
                    looks += 1;
                }
                other => return other.map_err(|error| chain(&error)),
            }
        }
    }

    /// One dry run over all stages before anything is applied. Gives what could not be judged.
    pub(crate) async fn dry_run(
        &self,
        request: &TakeoffRequest,
        stages: &Stages,
        due: &HashSet<ResourceRef>,
    ) -> Result<Vec<Unjudged>, EngineError> {
        let wanted: Vec<Vec<Object>> = stages.iter().map(|stage| pick(stage, due)).collect();
        let options = |_: &Object| ApplyOptions {
            force: request.force_conflicts,
            ..ApplyOptions::default()
        };
        let mut unjudged = Vec::new();
        let mut failures = Vec::new();
        for (object, preview) in wanted.iter().flatten().zip(
            self.reach()
                .preview(&wanted, options)
                .await
                .into_iter()
                .flatten(),
        ) {
            match preview {
                Preview::Accepted(_) => {}
                Preview::Unjudged(why) => unjudged.push(Unjudged {
                    object: object.reference(),
                    why,
                }),
                Preview::Refused(error) => failures.push(chain(&error)),
            }
        }
        if failures.is_empty() {
            Ok(unjudged)
        } else {
            Err(EngineError::Refused {
                step: "dry run",
                failures,
            })
        }
    }
}

/// Whether an object is taken, whoever has it. Never a Flight by one that acts as no account: what a Flight does is decided
/// by who may write it, and its account, which is not asked about where a release writes, may have more rights.
fn is_forced(request: &TakeoffRequest, object: &Object) -> bool {
    request.force_ownership && !(request.decoration.confined && object.is_flight())
}

/// Groups of Kubernetes' own kinds; the others of its own have no dot.
const KUBERNETES: [&str; 18] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Whether it may be an instance of an Airway: its kind is none of Kubernetes' own.
fn is_custom(object: &Object) -> bool {
    let group = object.group();
    group.contains('.') && !KUBERNETES.contains(&group)
}

/// Whether it is of a kind that Airways make: their CRD, and the configuration by which instances are reviewed.
fn may_be_an_airways(object: &Object) -> bool {
    matches!(
        (object.group(), object.kind()),
        ("apiextensions.k8s.io", "CustomResourceDefinition")
            | (
                "admissionregistration.k8s.io",
                "ValidatingWebhookConfiguration"
            )
    )
}

/// Why an object is taken by nobody, by force or not: an Airway made it and would take it back, and its instances hang from it.
fn made_by_airway(object: &Object, live: &LiveMeta, us: &Owner) -> Option<String> {
    let airway = live.owner_references().iter().find(|owner| {
        let text = |key: &str| owner[key].as_str().unwrap_or_default();
        GroupKind::of(text("apiVersion"), text("kind")) == GroupKind::new(names::GROUP, "Airway")
    })?;
    Some(format!(
        "\"{}\" was made by Airway \"{}\", so \"{us}\" does not take it: what it is to be stands in the Airway",
        object.canonical(),
        airway["name"].as_str().unwrap_or_default()
    ))
}

/// Why who is confined may not write an object that he takes by force: he would take an override off it that he did not make,
/// which takes a right of its own.
fn overridden(
    object: &Object,
    live: Result<Option<LiveMeta>, ClusterError>,
    us: &Owner,
) -> Option<String> {
    let live = match live {
        Ok(live) => live?,
        Err(error) => return Some(chain(&error)),
    };
    let mut all = [
        names::ANNOTATION_OVERRIDE_FLIGHT,
        names::ANNOTATION_OVERRIDE_MODE,
    ]
    .into_iter();
    let annotation = all.find(|name| live.annotation(name).is_some())?;
    let is_ours = ownership::owner_of(live.value()).as_ref() == Some(us);
    (!is_ours).then(|| {
        format!(
            "\"{}\" has the annotation {annotation}, so \"{us}\" does not take it: whoever removes an override needs the right to change its Airway",
            object.canonical()
        )
    })
}

/// What an apply of an object must find, if `us` may write it.
fn expected(
    object: &Object,
    live: Result<Option<LiveMeta>, ClusterError>,
    us: &Owner,
) -> Result<Expect, String> {
    let Some(live) = live.map_err(|error| chain(&error))? else {
        return Ok(Expect::Absent);
    };
    ownership::may_take(&object.canonical(), Some(live.value()), us, false)
        .map_err(|error| chain(&error))?;
    Ok(Expect::Present {
        uid: live.uid().to_owned(),
        resource_version: live.resource_version().to_owned(),
    })
}

/// Whether an apply failed only because the object is not as it was when it was looked at.
pub(super) fn was_changed(error: &ClusterError, expected: Option<&Expect>) -> bool {
    error.kind() == ErrorKind::Stale && matches!(expected, Some(Expect::Present { .. }))
}

/// Whether a dry run can save anything: the apply of a single object is refused whole or not at all, and where the
/// record names that object already nothing is written before it.
pub(super) fn needs_dry_run(
    request: &TakeoffRequest,
    stages: &Stages,
    due: &HashSet<ResourceRef>,
    memory: &Memory,
) -> bool {
    match request.dry_run {
        DryRun::Skip => false,
        DryRun::Only => !due.is_empty(),
        DryRun::First => due.len() > 1 || !(due.is_empty() || is_covered(stages, memory.history())),
    }
}
