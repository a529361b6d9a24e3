use serde_json::json;

use super::*;

fn object(name: &str) -> Object {
    Object::try_from(json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name, "namespace": "n" },
    }))
    .unwrap()
}

fn known(verdict: Verdict) -> Known {
    Known {
        verdict,
        version: "5".into(),
    }
}

fn judged(live: Option<Value>, verdict: Verdict) -> Judged {
    Judged {
        live,
        judgement: verdict.into(),
    }
}

#[test]
fn errors_name_the_limit_and_few_objects() {
    let many: Vec<Unready> = (0..8)
        .map(|i| Unready {
            object: format!("n/batch/v1/job/j{i}"),
            why: "not yet".into(),
            details: vec!["event: secret".into()],
        })
        .collect();
    let late = WaitError::Late {
        limit: Duration::from_secs(90),
        objects: many[..1].to_vec(),
    };
    assert_eq!(
        late.to_string(),
        "not ready within 1m30s: n/batch/v1/job/j0: not yet"
    );
    let failed = WaitError::Failed { objects: many }.to_string();
    assert!(
        failed.starts_with("failed: n/batch/v1/job/j0: not yet; "),
        "{failed}"
    );
    assert!(failed.ends_with("job/j4: not yet; and 3 more"), "{failed}");
    let limit = Duration::from_nanos(1);
    let objects = Vec::new();
    assert!(
        WaitError::Late { limit, objects }
            .to_string()
            .contains("within 1ns")
    );
}

#[test]
fn what_is_gone_is_said() {
    let job = object("j");
    // It was never seen: it may still come.
    let mut place = Place::new(&job, None);
    place.take(Judged::absent());
    assert_eq!(place.unready().why, "it does not exist");
    // It was applied, or seen.
    for mut place in [
        Place::new(&job, Some(known(Verdict::InProgress("x".into())))),
        {
            let mut place = Place::new(&job, None);
            let live = json!({ "metadata": { "resourceVersion": "7" } });
            place.take(judged(Some(live), Verdict::InProgress("x".into())));
            assert_eq!(place.version, "7");
            place
        },
    ] {
        place.take(Judged::absent());
        assert_eq!(place.unready().why, "it was deleted meanwhile");
        assert_eq!(place.version, "");
        assert!(!place.is_ready());
    }
}

#[test]
fn only_changes_are_told() {
    let job = object("j");
    let mut places = [Place::new(
        &job,
        Some(known(Verdict::InProgress("a".into()))),
    )];
    let mut told = Vec::new();
    let mut hear = |index: usize, verdict: &Verdict| told.push((index, verdict.clone()));
    tell(&mut places, &mut hear);
    tell(&mut places, &mut hear);
    places[0].take(judged(Some(json!({})), Verdict::Ready));
    tell(&mut places, &mut hear);
    assert_eq!(
        told,
        [(0, Verdict::InProgress("a".into())), (0, Verdict::Ready)]
    );
}

#[test]
fn failures_end_it() {
    let (one, two) = (object("one"), object("two"));
    let failed_one = Place::new(&one, Some(known(Verdict::Failed("lost".into()))));
    let places = [
        failed_one,
        Place::new(&two, Some(known(Verdict::InProgress("x".into())))),
    ];
    let names: Vec<String> = failed(&places)
        .unwrap()
        .into_iter()
        .map(|u| u.object)
        .collect();
    assert_eq!(names, ["n/batch/v1/job/one"]);
    assert_eq!(unready(&places, false).len(), 2);
    assert!(failed(&places[1..]).is_none());
}
