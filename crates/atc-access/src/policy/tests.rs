use super::*;
use crate::matcher::tests::any_reference;
use proptest::prelude::*;
use serde_json::json;

const OWN: Access = Access::Granted(ReadKind::Own);
const EXTERNAL: Access = Access::Granted(ReadKind::External);
const FOREIGN: Access = Access::Denied(Denial::Foreign);
const OFF: Access = Access::Denied(Denial::NotGranted);

fn policy(enabled: bool, matchers: &[&str]) -> AccessPolicy {
    AccessPolicy {
        enabled,
        owner: Owner::new("prod", "web"),
        matchers: matchers.iter().collect(),
        confined: false,
    }
}

/// The whole table: rows are what is known of the object, columns access off, no matcher, one that misses, one that fits.
#[test]
fn table_of_decisions() {
    let target = ResourceRef::new("prod", "", "Secret", "db");
    let (us, other) = (Owner::new("prod", "web"), Owner::new("prod", "other"));
    let (elsewhere, nobody) = (Owner::new("test", "web"), Owner::new("", ""));
    let missing = |kind| Access::Missing(kind);
    let table = [
        (
            Live::Unread,
            OFF,
            Access::Undecided,
            Access::Undecided,
            Access::Undecided,
        ),
        (
            Live::Absent,
            OFF,
            missing(ReadKind::Candidate),
            missing(ReadKind::Candidate),
            missing(ReadKind::External),
        ),
        (Live::Present(Some(&us)), OFF, OWN, OWN, OWN),
        (Live::Present(Some(&other)), OFF, FOREIGN, FOREIGN, EXTERNAL),
        (
            Live::Present(Some(&elsewhere)),
            OFF,
            FOREIGN,
            FOREIGN,
            EXTERNAL,
        ),
        (
            Live::Present(Some(&nobody)),
            OFF,
            FOREIGN,
            FOREIGN,
            EXTERNAL,
        ),
        (Live::Present(None), OFF, FOREIGN, FOREIGN, EXTERNAL),
    ];
    for (live, off, without, beside, covered) in table {
        assert_eq!(policy(false, &["*"]).decide(&target, live), off, "{live:?}");
        assert_eq!(policy(false, &[]).decide(&target, live), off, "{live:?}");
        assert_eq!(policy(true, &[]).decide(&target, live), without, "{live:?}");
        assert_eq!(
            policy(true, &["ConfigMap", "test/*"]).decide(&target, live),
            beside,
            "{live:?}"
        );
        assert_eq!(
            policy(true, &["ConfigMap", "prod/Secret"]).decide(&target, live),
            covered,
            "{live:?}"
        );
    }
}

#[test]
fn the_default_reads_nothing() {
    let target = ResourceRef::new("prod", "", "Secret", "db");
    for live in [Live::Unread, Live::Absent, Live::Present(None)] {
        assert_eq!(AccessPolicy::default().decide(&target, live), OFF);
    }
}

/// A run without a name owns nothing, not even what nobody owns.
#[test]
fn nobody_owns_nothing() {
    let target = ResourceRef::new("prod", "", "Secret", "db");
    for owner in [
        Owner::new("", ""),
        Owner::new("prod", ""),
        Owner::new("", "web"),
    ] {
        let policy = AccessPolicy {
            enabled: true,
            owner: owner.clone(),
            matchers: Matchers::default(),
            confined: false,
        };
        assert_eq!(
            policy.decide(&target, Live::Present(Some(&owner))),
            FOREIGN,
            "{owner}"
        );
    }
}

prop_compose! {
    fn any_owner()(namespace in "[a-b]{0,1}", release in "[a-b/]{0,2}") -> Owner { Owner::new(namespace, release) }
}

#[test]
fn who_is_confined_reads_its_own_namespace_only_and_nothing_that_gives_rights() {
    let confined = AccessPolicy {
        confined: true,
        ..policy(
            true,
            &[
                "*/*",
                "*/Role.rbac.authorization.k8s.io",
                "ClusterRole.rbac.authorization.k8s.io",
            ],
        )
    };
    let check = |namespace: &str, group: &str, kind: &str, expect: Access| {
        let target = ResourceRef::new(namespace, group, kind, "x");
        assert_eq!(
            confined.decide(&target, Live::Present(None)),
            expect,
            "{target}"
        );
        if expect == FOREIGN {
            assert_eq!(confined.decide(&target, Live::Absent), FOREIGN, "{target}");
        }
    };
    check("prod", "", "Secret", EXTERNAL);
    check("other", "", "Secret", FOREIGN);
    check("", "", "Namespace", FOREIGN);
    check("prod", "rbac.authorization.k8s.io", "Role", FOREIGN);
    check("", "rbac.authorization.k8s.io", "ClusterRole", FOREIGN);
}

#[test]
fn a_flights_own_is_told_by_its_uid() {
    let mut object = json!({"metadata": {
        "annotations": {"instance.atc.yoke.cd/namespace": "prod", "instance.atc.yoke.cd/release": "web"},
        "ownerReferences": [{"apiVersion": "yoke.cd/v1alpha1", "kind": "Flight", "uid": "u"}],
    }});
    let owner = Owner::of(&object).expect("marked");
    assert_eq!(owner, Owner::new("prod", "web").of_flight(Some("u")));
    let target = ResourceRef::new("prod", "", "ConfigMap", "x");
    let live = Live::Present(Some(&owner));
    assert_eq!(policy(true, &[]).decide(&target, live), FOREIGN);
    let flight = AccessPolicy {
        owner: owner.clone(),
        ..policy(true, &[])
    };
    assert_eq!(flight.decide(&target, live), OWN);
    object["metadata"]["ownerReferences"] = json!([]);
    let plain = Owner::of(&object).expect("marked");
    assert_eq!(flight.decide(&target, Live::Present(Some(&plain))), FOREIGN);
}

proptest! {
    #[test]
    fn off_is_off(
        owner in any_owner(), live_owner in proptest::option::of(any_owner()), target in any_reference(),
        matchers in proptest::collection::vec("[*/:.a-zA-Z]{0,6}", 0..4), state in 0..3_usize,
    ) {
        let matchers: Matchers = matchers.iter().chain([&"*".to_owned()]).collect();
        let policy = AccessPolicy { enabled: false, owner, matchers, confined: false };
        let live = [Live::Unread, Live::Absent, Live::Present(live_owner.as_ref())][state];
        prop_assert_eq!(policy.decide(&target, live), OFF);
    }

    /// What is granted is the run's own or covered; what is denied is neither.
    #[test]
    fn granted_for_a_reason(
        owner in any_owner(), live_owner in proptest::option::of(any_owner()), target in any_reference(),
        matchers in proptest::collection::vec("(\\*|[a-z]{0,2}/)?(\\*|[A-Z])(:\\*|:[a-z])?", 0..4),
    ) {
        let matchers: Matchers = matchers.iter().collect();
        let own = owner.is_somebody() && live_owner.as_ref() == Some(&owner);
        let covered = matchers.matches(&target);
        let policy = AccessPolicy { enabled: true, owner, matchers, confined: false };
        let expect = if own { OWN } else if covered { EXTERNAL } else { FOREIGN };
        prop_assert_eq!(policy.decide(&target, Live::Present(live_owner.as_ref())), expect);
    }
}
