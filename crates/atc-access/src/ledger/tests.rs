use super::*;
use serde_json::json;

fn mapping() -> Mapping {
    Mapping {
        group: "apps".into(),
        version: "v1".into(),
        kind: "Deployment".into(),
        plural: "deployments".into(),
        namespaced: true,
    }
}

fn target(name: &str) -> ResourceRef {
    ResourceRef::new("default", "apps", "Deployment", name)
}

fn seen(version: &str) -> Observed {
    Observed::of(Some(
        &json!({ "metadata": { "uid": "u", "resourceVersion": version } }),
    ))
}

#[test]
fn an_entry_says_where_and_what() {
    let ledger = ReadLedger::default();
    ledger.record(target("a"), &mapping(), ReadKind::Own, seen("7"));
    let expect = Read {
        target: target("a"),
        api_version: "apps/v1".into(),
        plural: "deployments".into(),
        namespaced: true,
        kind: ReadKind::Own,
        observed: Observed::Present {
            uid: "u".into(),
            resource_version: "7".into(),
        },
    };
    assert_eq!(ledger.reads(), [expect]);
}

/// Records all in turn; the one entry that comes of it.
fn check(records: &[(ReadKind, Observed)], kind: ReadKind, observed: &Observed) {
    let ledger = ReadLedger::default();
    for (kind, observed) in records {
        ledger.record(target("a"), &mapping(), *kind, observed.clone());
    }
    let reads = ledger.reads();
    assert_eq!(reads.len(), 1);
    assert_eq!((reads[0].kind, &reads[0].observed), (kind, observed));
}

#[test]
fn twice_read_is_one_entry_with_the_first_observation() {
    use ReadKind::{Candidate, External, Own};
    check(&[(Own, seen("1")), (Own, seen("2"))], Own, &seen("1"));
    check(
        &[(Candidate, Observed::Absent), (Own, seen("2"))],
        Own,
        &Observed::Absent,
    );
    check(
        &[(Own, seen("1")), (Candidate, Observed::Absent)],
        Own,
        &seen("1"),
    );
    check(
        &[(External, Observed::Absent), (Own, seen("2"))],
        External,
        &Observed::Absent,
    );
    check(
        &[(Candidate, Observed::Absent), (External, seen("2"))],
        External,
        &Observed::Absent,
    );
}

#[test]
fn order_is_that_of_first_reads_and_clones_are_one() {
    let ledger = ReadLedger::default();
    let kept = ledger.clone();
    for name in ["c", "a", "b", "a", "c"] {
        ledger.record(
            target(name),
            &mapping(),
            ReadKind::External,
            Observed::Absent,
        );
    }
    drop(ledger);
    let names: Vec<_> = kept
        .reads()
        .into_iter()
        .map(|read| read.target.name)
        .collect();
    assert_eq!(names, ["c", "a", "b"]);
}

#[test]
fn is_bounded() {
    let ledger = ReadLedger::default();
    for i in 0..MAX_READS {
        assert!(!ledger.is_full_for(&target(&i.to_string())));
        ledger.record(
            target(&i.to_string()),
            &mapping(),
            ReadKind::External,
            Observed::Absent,
        );
    }
    assert!(ledger.is_full_for(&target("one more")));
    assert!(
        !ledger.is_full_for(&target("7")),
        "what is known may be read again"
    );
}

#[test]
fn observations() {
    assert_eq!(Observed::of(None), Observed::Absent);
    let nothing = Observed::Present {
        uid: String::new(),
        resource_version: String::new(),
    };
    assert_eq!(
        Observed::of(Some(&json!({ "metadata": { "uid": 1 } }))),
        nothing
    );
    assert_eq!(Observed::of(Some(&json!([]))), nothing);
}
