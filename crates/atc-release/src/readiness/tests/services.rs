//! Services and their endpoints.

use super::*;

fn service(spec: &Value) -> Value {
    object("v1", "Service", spec, &json!({}))
}

fn slice(ready: &[Value]) -> Value {
    let endpoints: Vec<_> = ready
        .iter()
        .map(|ready| json!({ "addresses": ["10.0.0.1"], "conditions": { "ready": ready } }))
        .collect();
    json!({ "metadata": { "name": "x-abc", "namespace": "ns" }, "endpoints": endpoints })
}

/// Reads what is asked for from these slices and Pods; tells how many lists that took.
fn read(live: &Value, slices: &[Value], pods: &[Value]) -> (Judgement, usize) {
    let list = |related: Vec<Related>| -> Vec<Found> {
        let objects = |related: &Related| {
            if related.kind == "Pod" {
                pods.to_vec()
            } else {
                slices.to_vec()
            }
        };
        related
            .into_iter()
            .map(|related| Found {
                objects: objects(&related),
                related,
            })
            .collect()
    };
    let mut found = list(related(live));
    let more = list(further(live, &found));
    found.extend(more);
    (judge(live, &found), found.len())
}

#[test]
fn services_p06() {
    let selecting = service(&json!({ "selector": { "app": "x", "tier": "web" } }));
    let asked = related(&selecting);
    assert_eq!(asked.len(), 1);
    assert_eq!(
        (
            asked[0].api_version,
            asked[0].kind,
            asked[0].namespace.as_str()
        ),
        ("discovery.k8s.io/v1", "EndpointSlice", "ns")
    );
    let labelled = |selector: &str, limit: Option<u32>| Which::Labelled {
        selector: selector.into(),
        fields: limit.map(|_| "status.phase!=Succeeded,status.phase!=Failed"),
        limit,
    };
    assert_eq!(
        asked[0].which,
        labelled("kubernetes.io/service-name=x", None)
    );

    let case = |slices: &[Value], pods: &[Value], expect: &str, lists: usize, look_again: bool| {
        let (judgement, read) = read(&selecting, slices, pods);
        let (kind, words) = expect.split_once(": ").unwrap_or((expect, ""));
        assert_eq!(
            judgement.verdict.is_ready(),
            kind == "ready",
            "{judgement:?}"
        );
        assert!(
            judgement.verdict.why().unwrap_or_default().contains(words),
            "{judgement:?}"
        );
        assert_eq!(
            (read, judgement.look_again),
            (lists, look_again),
            "{judgement:?}"
        );
        assert_eq!(judgement.depends_on.len(), slices.len());
        // What comes after it is held up by nothing but a Service that is not there as a whole.
        assert_eq!(
            judgement.verdict.lets_go_on(),
            kind == "ready" || words.starts_with("none of its endpoints"),
            "{judgement:?}"
        );
    };
    let pod = json!({ "metadata": { "name": "p" } });
    case(&[slice(&[json!(true)])], &[], "ready", 1, false);
    case(
        &[slice(&[json!(false)]), slice(&[json!(false), json!(true)])],
        &[],
        "ready",
        1,
        false,
    );
    // An endpoint that does not say so is ready, as the API has it.
    case(&[slice(&[json!(null)])], &[], "ready", 1, false);
    case(&[], &[], "progress: no EndpointSlice yet", 1, true);
    case(
        &[slice(&[json!(false)])],
        std::slice::from_ref(&pod),
        "progress: none of its endpoints is ready",
        2,
        true,
    );
    // Pods without addresses are in no slice.
    case(
        &[slice(&[])],
        &[pod],
        "progress: none of its endpoints",
        2,
        true,
    );
    // Scaled to 0 (P-06).
    case(&[slice(&[])], &[], "ready", 2, false);
    let (judgement, _) = read(&selecting, &[slice(&[json!(true)])], &[]);
    assert_eq!(
        judgement.depends_on[0].to_string(),
        "ns/EndpointSlice.discovery.k8s.io:x-abc"
    );
    let more = further(
        &selecting,
        &[Found {
            related: asked[0].clone(),
            objects: vec![slice(&[])],
        }],
    );
    assert_eq!((more[0].api_version, more[0].kind), ("v1", "Pod"));
    assert_eq!(more[0].which, labelled("app=x,tier=web", Some(1)));

    // No endpoints of their own, ever (P-06).
    for spec in [
        json!({ "type": "ExternalName", "externalName": "example.com" }),
        json!({ "ports": [{ "port": 80 }] }),
        json!({ "selector": {} }),
        json!({ "type": "ExternalName", "selector": { "a": "b" } }),
    ] {
        let (judgement, lists) = read(&service(&spec), &[], &[]);
        assert_eq!((judgement, lists), (Verdict::Ready.into(), 0), "{spec}");
    }
}
