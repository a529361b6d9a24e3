use super::*;

const EARLY: &str = "2026-01-01T00:00:00Z";
const LATE: &str = "2026-01-02T00:00:00Z";

/// Sets `reason: message` at `LATE` over the condition that the same call with `old` made at `EARLY`.
fn check(old: (ReadyReason, &str, i64), new: (ReadyReason, &str, i64), changed: bool, time: &str) {
    let condition =
        |(reason, message, generation)| Condition::ready(reason, message, Some(generation));
    let mut list = vec![Condition {
        type_: "Other".to_owned(),
        ..Condition::default()
    }];
    assert!(set(&mut list, condition(old), EARLY));
    assert_eq!(find(&list, READY).unwrap().last_transition_time, EARLY);
    assert_eq!(
        set(&mut list, condition(new), LATE),
        changed,
        "{old:?} {new:?}"
    );
    let expect = Condition {
        last_transition_time: time.to_owned(),
        ..condition(new)
    };
    assert_eq!(find(&list, READY), Some(&expect));
    assert_eq!(list.len(), 2);
}

#[test]
fn sets_only_what_changed() {
    use ReadyReason::{Error, InProgress, Ready, Terminating};
    check((Ready, "", 1), (Ready, "", 1), false, EARLY);
    check((Ready, "", 1), (Ready, "", 2), true, EARLY);
    check((Error, "a", 1), (Error, "b", 1), true, EARLY);
    check((InProgress, "a", 1), (Error, "a", 1), true, EARLY);
    check((InProgress, "a", 1), (Ready, "a", 1), true, LATE);
    check((Ready, "", 1), (Terminating, "", 1), true, LATE);
}

#[test]
fn mends_a_missing_time() {
    let mut list = vec![Condition::ready(ReadyReason::Error, "a", None)];
    assert!(set(
        &mut list,
        Condition::ready(ReadyReason::Error, "b", None),
        LATE
    ));
    assert_eq!(list[0].last_transition_time, LATE);
}

#[test]
fn words() {
    let table = [
        (ReadyReason::InProgress, "InProgress", "False"),
        (ReadyReason::Ready, "Ready", "True"),
        (ReadyReason::Error, "Error", "False"),
        (ReadyReason::Terminating, "Terminating", "False"),
    ];
    for (reason, word, status) in table {
        assert_eq!(
            (
                reason.to_string().as_str(),
                reason.status().to_string().as_str()
            ),
            (word, status)
        );
        assert_eq!(
            serde_json::json!(reason.status()),
            serde_json::json!(status)
        );
    }
}
