//! Ingresses and the Gateway API.

use super::*;

#[test]
fn ingresses() {
    let case = |spec: &Value, status: &Value, classes: &[Value], expect: &str| {
        let live = object("networking.k8s.io/v1", "Ingress", spec, status);
        let found: Vec<Found> = related(&live)
            .into_iter()
            .map(|related| Found {
                objects: classes.to_vec(),
                related,
            })
            .collect();
        check_with(&live, &found, expect);
        found.len()
    };
    let named = json!({ "ingressClassName": "nginx" });
    let class = json!({ "metadata": { "name": "nginx" }, "spec": { "controller": "k8s.io/ingress-nginx" } });
    let address = json!({ "loadBalancer": { "ingress": [{ "ip": "10.0.0.1" }] } });
    let empty = json!({ "loadBalancer": {} });
    let classes = std::slice::from_ref(&class);
    assert_eq!(case(&named, &address, classes, "ready"), 0);
    assert_eq!(
        case(&named, &empty, classes, "progress: class \"nginx\""),
        1
    );
    // Nobody claims it.
    assert_eq!(case(&named, &empty, &[], "ready"), 1);
    assert_eq!(case(&json!({}), &empty, &[], "ready"), 0);
}

#[test]
fn gateways() {
    let case = |kind: &str, status: &Value, expect: &str| {
        let live = object("gateway.networking.k8s.io/v1", kind, &json!({}), status);
        check(&live, expect);
    };
    case(
        "GatewayClass",
        &conditions(&[("Accepted", "True")]),
        "ready",
    );
    case(
        "GatewayClass",
        &json!({}),
        "progress: whether it is Accepted",
    );
    case(
        "Gateway",
        &conditions(&[("Accepted", "True"), ("Programmed", "True")]),
        "ready",
    );
    case(
        "Gateway",
        &conditions(&[("Accepted", "True"), ("Programmed", "Unknown")]),
        "progress: not Programmed",
    );
    case(
        "Gateway",
        &conditions(&[("Accepted", "False"), ("Programmed", "False")]),
        "progress: not Accepted: Why",
    );
    case("ReferenceGrant", &json!({}), "ready");
}

#[test]
fn routes() {
    let parent = |name: &str| json!({ "name": name });
    let says = |parent: &Value, accepted: &str, resolved: &str, generation: i64| {
        let condition = |kind: &str, status: &str| {
            with(
                &condition(kind, status),
                &json!({ "observedGeneration": generation }),
            )
        };
        json!({ "parentRef": parent, "conditions": [condition("Accepted", accepted), condition("ResolvedRefs", resolved)] })
    };
    let case = |parents: &[Value], statuses: &[Value], expect: &str| {
        for kind in ["HTTPRoute", "GRPCRoute", "TLSRoute"] {
            let live = object(
                "gateway.networking.k8s.io/v1",
                kind,
                &json!({ "parentRefs": parents }),
                &json!({ "parents": statuses }),
            );
            check(&live, expect);
        }
    };
    let (a, b) = (parent("a"), parent("b"));
    case(&[], &[], "ready");
    case(
        std::slice::from_ref(&a),
        &[],
        "progress: parent \"a\" says nothing",
    );
    case(
        std::slice::from_ref(&a),
        &[says(&a, "True", "True", 2)],
        "ready",
    );
    case(
        std::slice::from_ref(&a),
        &[says(&a, "True", "True", 1)],
        "progress: generation 2 is not observed",
    );
    case(
        std::slice::from_ref(&a),
        &[says(&a, "False", "True", 2)],
        "progress: not Accepted by parent \"a\": Why",
    );
    case(
        std::slice::from_ref(&a),
        &[says(&a, "True", "False", 2)],
        "progress: not ResolvedRefs",
    );
    case(
        &[a.clone(), b.clone()],
        &[says(&a, "True", "True", 2)],
        "progress: parent \"b\" says nothing",
    );
    case(
        &[a.clone(), b.clone()],
        &[says(&b, "True", "True", 2), says(&a, "True", "True", 2)],
        "ready",
    );
    // The namespace of a parent is the route's, where it is left out; a section is a parent of its own.
    let spelled = json!({ "name": "a", "namespace": "ns" });
    case(
        std::slice::from_ref(&a),
        &[says(&spelled, "True", "True", 2)],
        "ready",
    );
    let section = json!({ "name": "a", "sectionName": "https" });
    case(
        &[section],
        &[says(&a, "True", "True", 2)],
        "progress: says nothing",
    );
}
