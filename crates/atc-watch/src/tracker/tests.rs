use serde_json::json;

use super::*;
use crate::change::Fingerprint;
use crate::wire::Object;

mod ends;
mod made;
mod model;

const SECRET: &str = "Secret";

fn kind() -> GroupKind {
    GroupKind::new("", SECRET)
}

fn reference(name: &str) -> ResourceRef {
    ResourceRef::new("default", "", SECRET, name)
}

fn target(name: &str) -> Target {
    Target::new(reference(name), "v1", "secrets")
}

fn json_of(name: &str, uid: &str, version: u64, generation: Option<i64>) -> serde_json::Value {
    json!({"metadata": {
        "name": name, "namespace": "default", "uid": uid, "resourceVersion": version.to_string(),
        "generation": generation, "labels": {"app": name}
    }})
}

fn object(name: &str, uid: &str, version: u64) -> Object {
    serde_json::from_value(json_of(name, uid, version, None)).unwrap()
}

fn present(name: &str, uid: &str, version: u64) -> Seen {
    Seen::Present(Fingerprint::of(&json_of(name, uid, version, None)))
}

fn input(name: &str, seen: Seen) -> Dependency {
    Dependency {
        target: target(name),
        role: Role::Input,
        seen,
    }
}

fn child(name: &str, seen: Seen) -> Dependency {
    let role = Role::Child {
        drift: Some(Effect::Evaluate),
        status: Some(Effect::StatusOnly),
    };
    Dependency {
        target: target(name),
        role,
        seen,
    }
}

/// Who is woken for what, in order of owners.
fn said(mut wakes: Vec<Wake<&'static str>>) -> Vec<(&'static str, Effect)> {
    wakes.sort_by_key(|wake| (wake.owner, wake.effect));
    wakes
        .into_iter()
        .map(|wake| (wake.owner, wake.effect))
        .collect()
}

fn nobody() -> Vec<(&'static str, Effect)> {
    Vec::new()
}

fn list(
    tracker: &mut Tracker<&'static str>,
    version: u64,
    objects: &[Object],
) -> Vec<(&'static str, Effect)> {
    let number = tracker.list_begins(&kind(), &version.to_string());
    let mut wakes = Vec::new();
    for object in objects {
        wakes.extend(tracker.listed(&kind(), number, object));
    }
    wakes.extend(tracker.list_ends(&kind(), number, &version.to_string()));
    said(wakes)
}

/// `a` has read `db` in this state, and the watch is at version 50 without having shown it.
fn reader(seen: Seen) -> Tracker<&'static str> {
    let mut tracker = Tracker::new();
    tracker.begin(&"a");
    tracker.interest(&"a", &target("db"));
    list(&mut tracker, 50, &[]);
    assert_eq!(
        said(tracker.commit(&"a", vec![input("db", seen)])),
        nobody()
    );
    tracker
}

const EVALUATE: [(&str, Effect); 1] = [("a", Effect::Evaluate)];
const STATUS: [(&str, Effect); 1] = [("a", Effect::StatusOnly)];

#[test]
fn what_was_missing_appears_changes_and_goes() {
    let mut tracker = reader(Seen::Absent);
    assert_eq!(
        said(tracker.changed(&kind(), &object("other", "o", 60))),
        nobody()
    );
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 61))),
        EVALUATE
    );
    // The same again wakes nobody, nor does what lags behind it.
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 61))),
        nobody()
    );
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 60))),
        nobody()
    );
    tracker.begin(&"a");
    assert_eq!(
        said(tracker.commit(&"a", vec![input("db", present("db", "x", 61))])),
        nobody()
    );
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 62))),
        EVALUATE
    );
    tracker.begin(&"a");
    assert_eq!(
        said(tracker.commit(&"a", vec![input("db", present("db", "x", 62))])),
        nobody()
    );
    assert_eq!(
        said(tracker.deleted(&kind(), &object("db", "x", 63))),
        EVALUATE
    );
    assert_eq!(tracker.latest(&reference("db")), Latest::Absent { at: 63 });
    // Woken but not yet run: back again under another uid.
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "y", 64))),
        EVALUATE
    );
}

#[test]
fn a_deletion_without_a_version_of_its_own_counts() {
    let mut tracker = reader(present("db", "x", 70));
    assert_eq!(
        said(tracker.deleted(&kind(), &object("db", "x", 70))),
        EVALUATE
    );
}

#[test]
fn a_run_ahead_of_the_watch_is_not_woken_by_what_lags() {
    let mut tracker = reader(present("db", "y", 70));
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 55))),
        nobody()
    );
    assert_eq!(
        said(tracker.deleted(&kind(), &object("db", "x", 60))),
        nobody()
    );
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "y", 65))),
        nobody()
    );
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "y", 70))),
        nobody()
    );
    assert_eq!(list(&mut tracker, 69, &[]), nobody());
    assert_eq!(list(&mut tracker, 71, &[]), EVALUATE);
}

#[test]
fn absence_ahead_of_the_watch() {
    let mut tracker = reader(present("db", "x", 60));
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 61))),
        EVALUATE
    );
    tracker.begin(&"a");
    tracker.interest(&"a", &target("db"));
    // Deleted at 63; the watch does not know yet, but x was there before the read: it is gone.
    assert_eq!(
        said(tracker.commit(&"a", vec![input("db", Seen::Absent)])),
        nobody()
    );
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 62))),
        nobody()
    );
    assert_eq!(
        said(tracker.deleted(&kind(), &object("db", "x", 63))),
        nobody()
    );
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "y", 64))),
        EVALUATE
    );
    // Appeared during the run, maybe after the read.
    tracker.begin(&"a");
    assert_eq!(
        said(tracker.deleted(&kind(), &object("db", "y", 65))),
        nobody()
    );
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "z", 66))),
        nobody()
    );
    assert_eq!(
        said(tracker.commit(&"a", vec![input("db", Seen::Absent)])),
        EVALUATE
    );
}

#[test]
fn nobody_is_woken_during_a_run_but_once_after_it() {
    let mut tracker = reader(present("db", "x", 60));
    tracker.begin(&"a");
    tracker.interest(&"a", &target("db"));
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 61))),
        nobody()
    );
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 62))),
        nobody()
    );
    assert_eq!(
        said(tracker.commit(&"a", vec![input("db", present("db", "x", 61))])),
        EVALUATE
    );
    tracker.begin(&"a");
    assert_eq!(
        said(tracker.commit(&"a", vec![input("db", present("db", "x", 62))])),
        nobody()
    );
}

#[test]
fn an_own_apply_of_what_was_looked_up_means_one_more_run() {
    let mut tracker = reader(Seen::Absent);
    tracker.begin(&"a");
    let both = |read, applied| vec![child("db", applied), input("db", read)];
    let wakes = tracker.commit(&"a", both(Seen::Absent, present("db", "x", 70)));
    assert_eq!(said(wakes), EVALUATE);
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 70))),
        nobody()
    );
    tracker.begin(&"a");
    let wakes = tracker.commit(&"a", both(present("db", "x", 70), present("db", "x", 70)));
    assert_eq!(said(wakes), nobody());
}

#[test]
fn an_own_apply_of_what_was_not_looked_up_wakes_only_others() {
    let mut tracker = reader(present("db", "x", 60));
    tracker.begin(&"b");
    tracker.interest(&"b", &target("db"));
    let wakes = tracker.commit(&"b", vec![child("db", present("db", "x", 70))]);
    assert_eq!(said(wakes), EVALUATE, "a looked it up");
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 70))),
        nobody()
    );
    assert_eq!(
        tracker.latest(&reference("db")),
        Latest::Present(Fingerprint::of(&json_of("db", "x", 70, None)))
    );
}

#[test]
fn roles() {
    let versions = |version, generation| -> (Seen, Object) {
        let value = json_of("db", "x", version, generation);
        (
            Seen::Present(Fingerprint::of(&value)),
            serde_json::from_value(value).unwrap(),
        )
    };
    let check = |role, next_generation, expect: &[(&'static str, Effect)]| {
        let mut tracker = reader(Seen::Absent);
        tracker.begin(&"a");
        let (seen, _) = versions(60, Some(1));
        let dependency = Dependency {
            target: target("db"),
            role,
            seen,
        };
        assert_eq!(said(tracker.commit(&"a", vec![dependency])), nobody());
        let (_, next) = versions(61, next_generation);
        assert_eq!(
            said(tracker.changed(&kind(), &next)),
            expect,
            "{role:?} {next_generation:?}"
        );
    };
    let child = |drift, status| Role::Child { drift, status };
    let (evaluate, status) = (Some(Effect::Evaluate), Some(Effect::StatusOnly));
    check(Role::Input, Some(1), &EVALUATE);
    check(Role::Support, Some(2), &STATUS);
    check(child(evaluate, status), Some(1), &STATUS);
    check(child(evaluate, status), Some(2), &EVALUATE);
    check(child(evaluate, status), None, &EVALUATE);
    check(child(evaluate, None), Some(1), &[]);
    check(child(evaluate, evaluate), Some(1), &EVALUATE);
    check(child(status, status), Some(2), &STATUS);
}

#[test]
fn a_failed_run_keeps_the_old_set_and_adds_its_interest() {
    let mut tracker = reader(present("db", "x", 60));
    tracker.begin(&"a");
    tracker.interest(&"a", &target("db"));
    tracker.interest(&"a", &target("cache"));
    assert_eq!(said(tracker.fail(&"a", Vec::new())), nobody());
    assert_eq!(
        said(tracker.changed(&kind(), &object("cache", "c", 61))),
        EVALUATE
    );
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 62))),
        EVALUATE
    );
    // Known before the run: no reason to run again at once.
    tracker.begin(&"a");
    tracker.interest(&"a", &target("cache"));
    assert_eq!(said(tracker.fail(&"a", Vec::new())), nobody());
    // Changed during the run: a reason.
    tracker.begin(&"a");
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 63))),
        nobody()
    );
    assert_eq!(
        said(tracker.fail(&"a", vec![input("cache", present("cache", "c", 61))])),
        EVALUATE
    );
    // Changed during the run, but read after that.
    tracker.begin(&"a");
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 64))),
        nobody()
    );
    assert_eq!(
        said(tracker.fail(&"a", vec![input("db", present("db", "x", 64))])),
        nobody()
    );
}

#[test]
fn what_was_registered_too_late_counts_as_changed() {
    let mut tracker = reader(Seen::Absent);
    tracker.begin(&"a");
    assert_eq!(
        said(tracker.changed(&kind(), &object("other", "o", 70))),
        nobody()
    );
    let late = |version| vec![child("slice", present("slice", "s", version))];
    assert_eq!(said(tracker.commit(&"a", late(69))), EVALUATE);
    tracker.begin(&"a");
    assert_eq!(said(tracker.commit(&"a", late(69))), nobody());
}

#[test]
fn what_was_registered_too_late_for_a_list_counts_as_changed() {
    let mut tracker = reader(Seen::Absent);
    tracker.begin(&"a");
    // Read at 60 without interest, deleted at 70; the list says nothing of it, and no event will.
    let number = tracker.list_begins(&kind(), "70");
    let late = vec![child("slice", present("slice", "s", 60))];
    assert_eq!(said(tracker.commit(&"a", late)), EVALUATE);
    assert_eq!(said(tracker.list_ends(&kind(), number, "70")), nobody());
}

#[test]
fn versions_without_order() {
    let odd = |version: &str| -> (Seen, Object) {
        let value = json!({"metadata": {"name": "db", "namespace": "default", "uid": "x", "resourceVersion": version}});
        (
            Seen::Present(Fingerprint::of(&value)),
            serde_json::from_value(value).unwrap(),
        )
    };
    let mut tracker = Tracker::new();
    tracker.begin(&"a");
    tracker.interest(&"a", &target("db"));
    let number = tracker.list_begins(&kind(), "a");
    assert_eq!(said(tracker.listed(&kind(), number, &odd("a").1)), nobody());
    assert_eq!(said(tracker.list_ends(&kind(), number, "a")), nobody());
    assert_eq!(
        said(tracker.commit(&"a", vec![input("db", odd("a").0)])),
        nobody()
    );
    assert_eq!(said(tracker.changed(&kind(), &odd("b").1)), EVALUATE);
    tracker.begin(&"a");
    assert_eq!(said(tracker.changed(&kind(), &odd("c").1)), nobody());
    // Read before c came; the older state is no news.
    assert_eq!(
        said(tracker.commit(&"a", vec![input("db", odd("b").0)])),
        EVALUATE
    );
    tracker.begin(&"a");
    assert_eq!(
        said(tracker.commit(&"a", vec![input("db", odd("c").0)])),
        nobody()
    );
    assert_eq!(said(tracker.deleted(&kind(), &odd("d").1)), EVALUATE);
    tracker.begin(&"a");
    assert_eq!(
        said(tracker.commit(&"a", vec![input("db", Seen::Absent)])),
        nobody()
    );
    let number = tracker.list_begins(&kind(), "e");
    assert_eq!(said(tracker.listed(&kind(), number, &odd("e").1)), EVALUATE);
    assert_eq!(said(tracker.list_ends(&kind(), number, "e")), nobody());
    let number = tracker.list_begins(&kind(), "f");
    assert_eq!(said(tracker.list_ends(&kind(), number, "f")), EVALUATE);
}

#[test]
fn a_list_decides_only_about_what_was_registered_before_it() {
    let mut tracker = reader(present("db", "x", 60));
    let number = tracker.list_begins(&kind(), "80");
    tracker.begin(&"b");
    tracker.interest(&"b", &target("late"));
    assert_eq!(
        said(tracker.list_ends(&kind(), number, "80")),
        EVALUATE,
        "db is not on it"
    );
    assert_eq!(tracker.latest(&reference("late")), Latest::Unknown);
    assert_eq!(
        said(tracker.commit(&"b", vec![input("late", present("late", "l", 81))])),
        nobody()
    );
    assert_eq!(list(&mut tracker, 90, &[]), [("b", Effect::Evaluate)]);
    // A list that another one has overtaken decides nothing.
    assert_eq!(said(tracker.list_ends(&kind(), number, "95")), nobody());
}

#[test]
fn a_kind_that_vanishes_and_comes_back() {
    let mut tracker = reader(present("db", "x", 60));
    tracker.begin(&"b");
    tracker.interest(&"b", &target("db"));
    assert_eq!(said(tracker.kind_gone(&kind())), EVALUATE);
    assert_eq!(said(tracker.kind_gone(&kind())), nobody());
    // It vanished during the run of b, which still saw it.
    let wakes = tracker.commit(&"b", vec![input("db", present("db", "x", 60))]);
    assert_eq!(said(wakes), [("b", Effect::Evaluate)]);
    // A false alarm for a: no end of runs.
    tracker.begin(&"a");
    assert_eq!(
        said(tracker.commit(&"a", vec![input("db", present("db", "x", 60))])),
        nobody()
    );
    assert_eq!(said(tracker.kind_gone(&kind())), nobody());
    tracker.begin(&"b");
    assert_eq!(
        said(tracker.commit(&"b", vec![input("db", Seen::Absent)])),
        nobody()
    );
    tracker.begin(&"a");
    assert_eq!(
        said(tracker.commit(&"a", vec![input("db", Seen::Absent)])),
        nobody()
    );
    let both = [("a", Effect::Evaluate), ("b", Effect::Evaluate)];
    assert_eq!(list(&mut tracker, 90, &[object("db", "y", 88)]), both);
}

#[test]
fn refresh_moves_what_was_seen() {
    let mut tracker = reader(present("db", "x", 60));
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 61))),
        EVALUATE
    );
    assert_eq!(
        said(tracker.refresh(&"a", [(reference("db"), present("db", "x", 61))])),
        nobody()
    );
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 65))),
        EVALUATE
    );
    assert_eq!(
        said(tracker.refresh(&"a", [(reference("db"), present("db", "x", 64))])),
        EVALUATE
    );
    // What it does not depend on, and whom nobody knows.
    assert_eq!(
        said(tracker.refresh(&"a", [(reference("other"), Seen::Absent)])),
        nobody()
    );
    assert_eq!(
        said(tracker.refresh(&"b", [(reference("db"), Seen::Absent)])),
        nobody()
    );
    assert_eq!(tracker.latest(&reference("other")), Latest::Unknown);
}

#[test]
fn nothing_is_kept_of_what_nobody_depends_on() {
    let mut tracker = reader(present("db", "x", 60));
    assert_eq!(tracker.tracked(&kind()), 1);
    tracker.begin(&"a");
    tracker.interest(&"a", &target("cache"));
    tracker.commit(&"a", vec![input("cache", Seen::Absent)]);
    assert_eq!(tracker.latest(&reference("db")), Latest::Unknown);
    assert_eq!(tracker.tracked(&kind()), 1);
    assert_eq!(
        tracker.kinds(),
        [Resource::new("", "v1", SECRET, "secrets")]
    );
    tracker.forget(&"a");
    assert_eq!(tracker.kinds(), []);
    assert!(tracker.drop_idle(&kind()));
    assert!(tracker.owners.is_empty() && tracker.kinds.is_empty());
    tracker.forget(&"a");
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 70))),
        nobody()
    );
}

#[test]
fn selections() {
    let selection = |value: &str| Selection {
        resource: target("x").resource(),
        namespace: "default".into(),
        label: "app".into(),
        value: value.into(),
    };
    let dependencies = |value, seen| Dependencies {
        objects: Vec::new(),
        selections: vec![SelectionDependency {
            selection: selection(value),
            effect: Effect::StatusOnly,
            seen,
        }],
    };
    let mut tracker = Tracker::new();
    tracker.begin(&"a");
    tracker.interest_in(&"a", &selection("web"));
    list(&mut tracker, 50, &[object("web", "x", 40)]);
    assert_eq!(
        said(tracker.commit(&"a", dependencies("web", 50))),
        nobody()
    );
    assert_eq!(
        said(tracker.changed(&kind(), &object("web", "x", 49))),
        nobody()
    );
    assert_eq!(
        said(tracker.changed(&kind(), &object("db", "x", 51))),
        nobody()
    );
    assert_eq!(
        said(tracker.changed(&kind(), &object("web", "x", 52))),
        STATUS
    );
    assert_eq!(
        said(tracker.deleted(&kind(), &object("web", "x", 53))),
        STATUS
    );
    // Before a run, during it, and after a list in which something may be missing.
    tracker.begin(&"a");
    assert_eq!(
        said(tracker.commit(&"a", dependencies("web", 53))),
        nobody()
    );
    tracker.begin(&"a");
    assert_eq!(
        said(tracker.changed(&kind(), &object("web", "y", 55))),
        nobody()
    );
    assert_eq!(said(tracker.commit(&"a", dependencies("web", 54))), STATUS);
    assert_eq!(list(&mut tracker, 60, &[]), STATUS);
    assert_eq!(said(tracker.kind_gone(&kind())), STATUS);
    tracker.begin(&"a");
    assert_eq!(said(tracker.fail(&"a", Vec::new())), nobody());
    tracker.forget(&"a");
    assert!(tracker.drop_idle(&kind()));
}
