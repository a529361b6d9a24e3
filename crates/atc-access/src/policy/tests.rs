use super::*;
use crate::matcher::tests::any_reference;
use proptest::prelude::*;

const OWN: Access = Access::Granted(ReadKind::Own);
const EXTERNAL: Access = Access::Granted(ReadKind::External);
const FOREIGN: Access = Access::Denied(Denial::Foreign);
const OFF: Access = Access::Denied(Denial::NotGranted);

fn policy(enabled: bool, matchers: &[&str]) -> AccessPolicy {
    AccessPolicy {
        enabled,
        owner: Owner::new("prod", "web"),
        matchers: matchers.iter().collect(),
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

proptest! {
    #[test]
    fn off_is_off(
        owner in any_owner(), live_owner in proptest::option::of(any_owner()), target in any_reference(),
        matchers in proptest::collection::vec("[*/:.a-zA-Z]{0,6}", 0..4), state in 0..3_usize,
    ) {
        let matchers: Matchers = matchers.iter().chain([&"*".to_owned()]).collect();
        let policy = AccessPolicy { enabled: false, owner, matchers };
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
        let policy = AccessPolicy { enabled: true, owner, matchers };
        let expect = if own { OWN } else if covered { EXTERNAL } else { FOREIGN };
        prop_assert_eq!(policy.decide(&target, Live::Present(live_owner.as_ref())), expect);
    }
}
