//! Tables and properties.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> Object {
    let metadata = json!({ "name": name, "namespace": namespace });
    Object::try_from(json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata }))
        .unwrap()
}

fn cm(name: &str) -> Object {
    object("v1", "ConfigMap", "ns", name)
}

fn crd(name: &str) -> Object {
    object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "",
        name,
    )
}

fn namespace(name: &str) -> Object {
    object("v1", "Namespace", "", name)
}

fn stages(stages: &[&[Object]]) -> Stages {
    Stages::new(stages.iter().map(|stage| stage.to_vec()).collect())
}

/// Names to be pruned by stage, then `/` and those to be orphaned.
fn check(desired: &Stages, previous: &[Stages], options: PruneOptions, expect: &str) {
    let plan = plan(desired.clone(), previous, options);
    assert_eq!(&plan.apply, desired);
    let names = |items: &[PruneItem]| {
        items
            .iter()
            .map(|item| item.target.name.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let prune = plan
        .prune
        .iter()
        .map(|stage| names(stage))
        .collect::<Vec<_>>()
        .join("|");
    assert_eq!(format!("{prune}/{}", names(&plan.orphan)), expect);
}

#[test]
fn what_is_pruned() {
    let none = PruneOptions::default();
    let three = stages(&[&[cm("a"), cm("b")], &[cm("c")], &[cm("d")]]);
    check(&three, &[], none, "/");
    check(&three, std::slice::from_ref(&three), none, "/");
    check(
        &Stages::default(),
        std::slice::from_ref(&three),
        none,
        "d|c|a b/",
    );
    check(
        &stages(&[&[cm("c")]]),
        std::slice::from_ref(&three),
        none,
        "d|a b/",
    );
    // Moving to another stage is no removal.
    check(
        &stages(&[&[cm("d")], &[cm("c")], &[cm("a"), cm("b")]]),
        std::slice::from_ref(&three),
        none,
        "/",
    );
    // What an older revision left behind, and what an unfinished one made.
    check(
        &stages(&[&[cm("a")]]),
        &[
            stages(&[&[cm("a"), cm("x")]]),
            stages(&[&[cm("y")], &[cm("a"), cm("x")]]),
        ],
        none,
        "x|y/",
    );
    // Another namespace or kind is another object; another version is not.
    check(
        &stages(&[&[object("v1", "ConfigMap", "other", "a")]]),
        &[stages(&[&[cm("a")]])],
        none,
        "a/",
    );
    check(
        &stages(&[&[object("v1", "Secret", "ns", "a")]]),
        &[stages(&[&[cm("a")]])],
        none,
        "a/",
    );
    let hpa = |version: &str| {
        object(
            &format!("autoscaling/{version}"),
            "HorizontalPodAutoscaler",
            "ns",
            "h",
        )
    };
    check(
        &stages(&[&[hpa("v2")]]),
        &[stages(&[&[hpa("v1")]])],
        none,
        "/",
    );
}

#[test]
fn a_namespace_on_a_cluster_scoped_object_does_not_count() {
    let role = |namespace: &str, name: &str| {
        object(
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            namespace,
            name,
        )
    };
    let before = [stages(&[&[role("ns", "a"), role("ns", "b")]])];
    check(
        &stages(&[&[role("", "a")]]),
        &before,
        PruneOptions::default(),
        "b/",
    );
    let before = [stages(&[&[object("v1", "Namespace", "ns", "n")]])];
    check(
        &stages(&[&[namespace("n")]]),
        &before,
        PruneOptions::ALL,
        "/",
    );
}

#[test]
fn foundations_are_orphaned() {
    let before = stages(&[&[crd("d"), namespace("n")], &[cm("a")]]);
    let of = |crds, namespaces| PruneOptions { crds, namespaces };
    check(
        &Stages::default(),
        std::slice::from_ref(&before),
        of(false, false),
        "a/n d",
    );
    check(
        &Stages::default(),
        std::slice::from_ref(&before),
        of(true, false),
        "a|d/n",
    );
    check(
        &Stages::default(),
        std::slice::from_ref(&before),
        of(false, true),
        "a|n/d",
    );
    check(
        &Stages::default(),
        std::slice::from_ref(&before),
        PruneOptions::ALL,
        "a|n d/",
    );
    check(
        &before,
        std::slice::from_ref(&before),
        PruneOptions::ALL,
        "/",
    );
    // In one revision the CRD came first, in the other last: it goes last, what may be of its kind before.
    let other = stages(&[&[cm("b")], &[cm("c")], &[crd("d")]]);
    check(
        &Stages::default(),
        &[other, before],
        PruneOptions::ALL,
        "a c|n d b/",
    );
}

#[test]
fn an_item_keeps_the_latest_version() {
    let of = |version: &str| stages(&[&[object(version, "X", "ns", "a")]]);
    let plan = plan(
        Stages::default(),
        &[of("x.dev/v2"), of("x.dev/v1")],
        PruneOptions::default(),
    );
    assert_eq!(plan.prune[0][0].api_version, "x.dev/v2");
    assert_eq!(plan.prune[0][0].canonical(), "ns/x.dev/v2/x/a");
}

fn any_object() -> impl Strategy<Value = Object> {
    let kind = prop::sample::select(
        &[
            ("v1", "ConfigMap"),
            ("apps/v1", "Deployment"),
            ("apps/v1beta1", "Deployment"),
            ("v1", "Namespace"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ][..],
    );
    (
        kind,
        prop::sample::select(&["a", "b", "c"][..]),
        prop::sample::select(&["m", "n"][..]),
    )
        .prop_map(|((api_version, kind), name, namespace)| {
            let is_cluster_scoped = matches!(kind, "Namespace" | "CustomResourceDefinition");
            object(
                api_version,
                kind,
                if is_cluster_scoped { "" } else { namespace },
                name,
            )
        })
}

/// Stages without an object twice, as parsing guarantees.
fn any_stages() -> impl Strategy<Value = Stages> {
    vec(vec(any_object(), 0..4), 0..4).prop_map(|stages| {
        let mut seen = BTreeSet::new();
        let once = |stage: Vec<Object>| -> Vec<Object> {
            stage
                .into_iter()
                .filter(|object| seen.insert(object.reference()))
                .collect()
        };
        Stages::new(stages.into_iter().map(once).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_wanted_is_pruned(desired in any_stages(), previous in vec(any_stages(), 0..4), crds: bool, namespaces: bool) {
        let plan = plan(desired.clone(), &previous, PruneOptions { crds, namespaces });
        let wanted: BTreeSet<_> = desired.objects().map(Object::reference).collect();
        let recorded: BTreeSet<_> = previous.iter().flat_map(Stages::objects).map(Object::reference).collect();
        let gone: Vec<_> = plan.prune.iter().flatten().chain(&plan.orphan).map(|item| item.target.clone()).collect();
        let once: BTreeSet<_> = gone.iter().cloned().collect();
        prop_assert_eq!(gone.len(), once.len());
        // Exactly what was recorded and is not wanted: no more, no less.
        prop_assert_eq!(once, recorded.difference(&wanted).cloned().collect::<BTreeSet<_>>());
        prop_assert!(plan.orphan.iter().all(PruneItem::is_foundation));
        prop_assert!(plan.prune.iter().all(|stage| !stage.is_empty()));
        if crds && namespaces {
            prop_assert!(plan.orphan.is_empty());
        }
        prop_assert_eq!(plan.apply, desired);
    }

    #[test]
    fn what_is_there_already_needs_no_prune(stages in any_stages()) {
        let plan = plan(stages.clone(), &[stages], PruneOptions::ALL);
        prop_assert!(plan.prune.is_empty() && plan.orphan.is_empty());
    }

    #[test]
    fn one_record_goes_in_reverse(before in any_stages()) {
        let plan = plan(Stages::default(), std::slice::from_ref(&before), PruneOptions::ALL);
        let pruned: Vec<BTreeSet<_>> = plan.prune.iter().map(|stage| stage.iter().map(|item| item.target.clone()).collect()).collect();
        let reversed: Vec<BTreeSet<_>> = before.iter().rev().map(|stage| stage.iter().map(Object::reference).collect()).collect();
        prop_assert_eq!(pruned, reversed);
    }
}
