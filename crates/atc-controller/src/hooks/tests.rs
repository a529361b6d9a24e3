use std::collections::BTreeMap;
use std::sync::{OnceLock, RwLock};

use serde_json::json;

use super::*;
use crate::bootstrap::WebhookService;
use crate::crd::ServedKind;

fn service(port: u16) -> WebhookService {
    WebhookService {
        name: "atc".into(),
        namespace: "n".into(),
        port,
        url: None,
        ca_bundle: RwLock::new(b"ca".to_vec()),
        username: OnceLock::from("me".to_owned()),
    }
}

fn wanted(port: u16, version: &str) -> Value {
    let served = ServedKind {
        group: "x.dev".into(),
        version: version.into(),
        kind: "App".into(),
        plural: "apps".into(),
        namespaced: true,
        scales: BTreeMap::from([("v1".to_owned(), ".spec.replicas".to_owned())]),
    };
    service(port).of_airway("apps.x.dev", "uid", &served)
}

fn state(turn: u64, word: &str) -> State {
    State {
        us: stamp(turn, word),
        latest: None,
        doubts: HashMap::new(),
        taken: false,
    }
}

fn stamp(turn: u64, word: &str) -> Stamp {
    Stamp {
        turn,
        word: word.into(),
    }
}

/// As the API server would show it.
fn live(stamp: Option<&Stamp>, mut object: Value) -> Value {
    object["metadata"]["resourceVersion"] = "7".into();
    object["webhooks"][0]["later"] = "a default of a later version".into();
    if let Some(stamp) = stamp {
        object["metadata"]["annotations"] =
            json!({ (names::ANNOTATION_PROCESS): stamp.to_string() });
    }
    object
}

#[test]
fn marks_are_read_as_they_are_written() {
    let one = Stamp::new(12);
    assert_eq!(
        Stamp::of(&LiveMeta::of(&live(Some(&one), wanted(1, "v1")))),
        Some(one.clone())
    );
    assert!(Stamp::new(12) != one && stamp(2, "z") < stamp(11, "a"));
    for text in ["", "5", "x-y", "-1-a"] {
        let object =
            json!({ "metadata": { "annotations": { (names::ANNOTATION_PROCESS): text } } });
        assert_eq!(Stamp::of(&LiveMeta::of(&object)), None, "{text}");
    }
}

#[test]
fn the_one_that_began_last_keeps_it() {
    let now = Instant::now();
    let (older, us, newer) = (stamp(1, "z"), stamp(2, "m"), stamp(3, "a"));
    let check = |live: Option<Value>, expect: Step| {
        let found = state(2, "m").judge(live.as_ref(), &wanted(1, "v1"), now);
        assert_eq!(found, expect, "{live:?}");
    };
    check(None, Step::Write);
    check(Some(live(None, wanted(1, "v1"))), Step::Write);
    check(Some(live(Some(&older), wanted(1, "v1"))), Step::Write);
    check(Some(live(Some(&us), wanted(1, "v1"))), Step::Leave);
    check(Some(live(Some(&us), wanted(2, "v1"))), Step::Write);
    check(Some(live(Some(&newer), wanted(1, "v1"))), Step::Leave);
    // It says something else than we would, and does.
    check(Some(live(Some(&newer), wanted(2, "v1"))), Step::Leave);
    check(Some(live(Some(&newer), wanted(2, "v2"))), Step::Doubt);
}

#[test]
fn edits_by_hand_are_seen() {
    let (now, us) = (Instant::now(), stamp(2, "m"));
    let edits = [
        ("/webhooks/0/failurePolicy", json!("Ignore")),
        (
            "/webhooks/0/objectSelector",
            json!({ "matchLabels": { "a": "b" } }),
        ),
        ("/webhooks/0/rules", json!([])),
        ("/webhooks/0/clientConfig/caBundle", json!("b3RoZXI=")),
        ("/webhooks", json!([])),
        ("/metadata/ownerReferences", json!([])),
    ];
    for (path, value) in edits {
        let mut edited = live(Some(&us), wanted(1, "v1"));
        *edited.pointer_mut(path).expect("there") = value;
        assert_eq!(
            state(2, "m").judge(Some(&edited), &wanted(1, "v1"), now),
            Step::Write,
            "{path}"
        );
    }
    let mut added = live(Some(&us), wanted(1, "v1"));
    added["metadata"]["labels"]["theirs"] = "x".into();
    assert_eq!(
        state(2, "m").judge(Some(&added), &wanted(1, "v1"), now),
        Step::Leave
    );
    let one = added["webhooks"][0].clone();
    added["webhooks"] = json!([one, one]);
    assert_eq!(
        state(2, "m").judge(Some(&added), &wanted(1, "v1"), now),
        Step::Write
    );
}

#[test]
fn what_a_later_one_leaves_undone_is_taken_after_a_while() {
    let begin = Instant::now();
    let mut state = state(2, "m");
    let newer = live(Some(&stamp(7, "a")), wanted(1, "v1"));
    assert_eq!(
        state.judge(Some(&newer), &wanted(1, "v1"), begin),
        Step::Leave
    );
    // It went, with its configurations, or somebody deleted one.
    assert_eq!(state.judge(None, &wanted(1, "v1"), begin), Step::Doubt);
    let soon = begin + GRACE / 2;
    assert_eq!(state.judge(None, &wanted(1, "v1"), soon), Step::Doubt);
    assert_eq!(
        state.judge(Some(&newer), &wanted(1, "v1"), soon),
        Step::Leave
    );
    let late = begin + GRACE;
    assert_eq!(
        state.judge(None, &wanted(1, "v1"), late),
        Step::Doubt,
        "a doubt begins anew"
    );
    assert_eq!(
        state.judge(None, &wanted(1, "v1"), late + GRACE),
        Step::Write
    );
    assert_eq!(state.us, stamp(8, "m"));
    // From now on it is ours.
    assert_eq!(
        state.judge(None, &wanted(1, "v1"), late + GRACE),
        Step::Write
    );
    assert_eq!(
        state.judge(Some(&newer), &wanted(1, "v1"), late),
        Step::Write
    );
}
