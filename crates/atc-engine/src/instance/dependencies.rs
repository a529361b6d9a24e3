//! What an instance depends on, by its mode: what was looked up, its children, and what their readiness rests on.

use atc_access::{Observed, Read, ReadKind};
use atc_api::AirwayMode;
use atc_watch::{
    Dependencies, Dependency, Effect, Fingerprint, Role, Seen, SelectionDependency, Target,
};

use super::{InstanceMemory, InstanceSettings};
use crate::children::Child;

/// What the instance depends on, by its mode.
pub(super) fn dependencies(settings: &InstanceSettings, memory: &InstanceMemory) -> Dependencies {
    let mut all = Dependencies::from(inputs(settings, &memory.reads, &memory.children));
    all.objects.extend(memory.account.clone());
    let drift = drift(settings.mode);
    for child in &memory.children {
        let role = Role::Child {
            drift: Some(drift),
            status: child.has_status.then_some(Effect::StatusOnly),
        };
        let applied = memory.release.applied.fingerprint(&child.target.reference);
        let seen = seen(child, applied, drift);
        all.objects.push(Dependency {
            target: child.target.clone(),
            role,
            seen,
        });
        all.selections
            .extend(child.rests_on.iter().map(|support| SelectionDependency {
                selection: support.selection.clone(),
                effect: Effect::StatusOnly,
                seen: support.version.unwrap_or_default(),
            }));
    }
    // Where two verdicts rest on the same objects, the older one needs to hear of what came after it.
    all.selections
        .sort_by_key(|one| std::cmp::Reverse(one.seen));
    all
}

/// What a change of a child's spec or metadata, or its end, leads to. In `static` it got past the protection, or is one that
/// others may make: an evaluation puts right what is the release's.
fn drift(mode: AirwayMode) -> Effect {
    match mode {
        AirwayMode::Dynamic | AirwayMode::Static => Effect::Evaluate,
        AirwayMode::Standard | AirwayMode::Subscription => Effect::StatusOnly,
    }
}

/// Whether a child that the flight has looked up was judged in another state than the flight saw: an evaluation follows.
pub(super) fn has_newer_input(settings: &InstanceSettings, memory: &InstanceMemory) -> bool {
    let seen = |child: &Child, read: &Read| match (&read.observed, &child.judged) {
        (
            Observed::Present {
                uid,
                resource_version,
            },
            Some(judged),
        ) => *uid == judged.uid && *resource_version == judged.resource_version,
        (Observed::Absent, judged) => judged.is_none(),
        (Observed::Present { .. }, None) => false,
    };
    matches!(
        settings.mode,
        AirwayMode::Dynamic | AirwayMode::Subscription
    ) && memory.children.iter().any(|child| {
        let reads = memory
            .reads
            .iter()
            .filter(|read| read.target == child.target.reference);
        reads.into_iter().any(|read| !seen(child, read))
    })
}

/// In which state a child counts as seen: as judged, unless that hides a drift that is to be undone. One that was looked
/// for and not found is seen as absent.
fn seen(child: &Child, applied: Option<Fingerprint>, drift: Effect) -> Seen {
    match (&child.judged, applied) {
        (Some(judged), Some(applied))
            if drift == Effect::Evaluate && !judged.undisturbed(&applied) =>
        {
            Seen::Present(applied)
        }
        (Some(judged), _) => Seen::Present(judged.clone()),
        (None, Some(applied)) if drift == Effect::Evaluate => Seen::Present(applied),
        (None, _) => Seen::Absent,
    }
}

/// What was looked up, where its changes count. What was absent and is covered by no matcher counts only if the flight
/// then made it.
pub(super) fn inputs(
    settings: &InstanceSettings,
    reads: &[Read],
    children: &[Child],
) -> Vec<Dependency> {
    if !matches!(
        settings.mode,
        AirwayMode::Dynamic | AirwayMode::Subscription
    ) {
        return Vec::new();
    }
    let dependency = |read: &Read| Dependency {
        target: Target::new(
            read.target.clone(),
            version_of(&read.api_version),
            &read.plural,
        ),
        role: Role::Input,
        seen: match &read.observed {
            Observed::Absent => Seen::Absent,
            Observed::Present {
                uid,
                resource_version,
            } => Seen::Present(Fingerprint::bare(uid, resource_version)),
        },
    };
    let counts = |read: &&Read| {
        read.kind != ReadKind::Candidate
            || children
                .iter()
                .any(|child| child.target.reference == read.target)
    };
    reads.iter().filter(counts).map(dependency).collect()
}

fn version_of(api_version: &str) -> &str {
    api_version
        .rsplit_once('/')
        .map_or(api_version, |(_, version)| version)
}
