use serde_json::json;

use super::*;

fn of(uid: &str, version: &str, generation: Option<i64>, label: &str) -> Fingerprint {
    Fingerprint::of(&json!({"metadata": {
        "uid": uid, "resourceVersion": version, "generation": generation, "labels": {"a": label}
    }}))
}

fn check(seen: &Seen, latest: &Latest, expect: Option<Change>) {
    assert_eq!(change(seen, latest), expect, "{seen:?} then {latest:?}");
}

#[test]
fn newer_is_a_larger_number_whoever_it_is() {
    let present = |uid: &str, version: &str| Latest::Present(of(uid, version, None, ""));
    let seen = Seen::Present(of("x", "100", None, ""));
    check(&seen, &Latest::Unknown, None);
    check(&seen, &present("x", "99"), None);
    check(&seen, &present("x", "100"), None);
    check(&seen, &present("x", "101"), Some(Change::Drift));
    check(&seen, &present("x", "1000"), Some(Change::Drift));
    check(&seen, &present("y", "101"), Some(Change::Drift));
    check(&seen, &present("y", "99"), None);
    check(&seen, &Latest::Absent { at: 100 }, None);
    check(&seen, &Latest::Absent { at: 101 }, Some(Change::Drift));
    for seen in [Seen::Absent, Seen::Unseen] {
        check(&seen, &Latest::Unknown, None);
        check(&seen, &Latest::Absent { at: 7 }, None);
        check(&seen, &present("x", "1"), Some(Change::Drift));
    }
}

#[test]
fn versions_without_order_are_compared_for_inequality() {
    let seen = Seen::Present(of("x", "abc", None, ""));
    check(&seen, &Latest::Present(of("x", "abc", None, "")), None);
    check(
        &seen,
        &Latest::Present(of("x", "abd", None, "")),
        Some(Change::Drift),
    );
    check(
        &seen,
        &Latest::Present(of("y", "abc", None, "")),
        Some(Change::Drift),
    );
    check(&seen, &Latest::Absent { at: 0 }, Some(Change::Drift));
}

#[test]
fn only_the_status_moved() {
    let seen = Seen::Present(of("x", "100", Some(3), "a"));
    let latest = |generation, label| Latest::Present(of("x", "101", generation, label));
    check(&seen, &latest(Some(3), "a"), Some(Change::Status));
    check(&seen, &latest(Some(4), "a"), Some(Change::Drift));
    check(&seen, &latest(Some(3), "b"), Some(Change::Drift));
    check(&seen, &latest(None, "a"), Some(Change::Drift));
    check(
        &seen,
        &Latest::Present(of("y", "101", Some(3), "a")),
        Some(Change::Drift),
    );
    let deleting = Fingerprint {
        deleting: true,
        ..of("x", "101", Some(3), "a")
    };
    check(&seen, &Latest::Present(deleting), Some(Change::Drift));
    // Without a generation anything may be drift; and after a look-up that kept no more than the version.
    check(
        &Seen::Present(of("x", "100", None, "a")),
        &latest(None, "a"),
        Some(Change::Drift),
    );
    check(
        &Seen::Present(Fingerprint::bare("x", "100")),
        &latest(Some(3), "a"),
        Some(Change::Drift),
    );
}

#[test]
fn undisturbed() {
    let expected = of("x", "100", Some(3), "a");
    assert!(expected.undisturbed(&expected));
    assert!(
        of("x", "107", Some(3), "a").undisturbed(&expected),
        "a status change is no interference"
    );
    assert!(!of("x", "107", Some(4), "a").undisturbed(&expected));
    assert!(!of("x", "107", Some(3), "b").undisturbed(&expected));
    assert!(!of("y", "100", Some(3), "a").undisturbed(&expected));
    let expected = of("x", "100", None, "a");
    assert!(expected.undisturbed(&expected));
    assert!(!of("x", "107", None, "a").undisturbed(&expected));
    assert!(Fingerprint::bare("x", "100").undisturbed(&expected));
}
