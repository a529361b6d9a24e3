//! Refusals as a Kubernetes 1.37 API server words them.

use serde_json::json;

use super::*;

fn read(code: u16, status: &serde_json::Value, secret: bool) -> Refusal {
    Refusal::read(code, status.to_string().as_bytes(), None, secret)
}

#[test]
fn conflicts_name_field_and_manager() {
    let r = read(
        409,
        &json!({"kind": "Status", "reason": "Conflict", "message": "Apply failed with 1 conflict: …", "details": {"causes": [
            {"reason": "FieldManagerConflict", "message": "conflict with \"the-editor\" using v1", "field": ".data.k"}]}}),
        false,
    );
    assert_eq!(r.kind(), ErrorKind::Conflict);
    assert_eq!(
        r.to_string(),
        "conflict: field data.k is managed by \"the-editor\""
    );
}

#[test]
fn nobody_is_told_to_delete_a_definition() {
    let scope = json!({"kind": "Status", "reason": "Invalid", "message": "is invalid", "details": {
        "name": "backends.x.dev", "kind": "CustomResourceDefinition", "causes": [
            {"reason": "FieldValueInvalid", "message": "Invalid value: \"Cluster\": field is immutable", "field": "spec.scope"}]}});
    let text = read(422, &scope, false).to_string();
    assert!(
        text.contains("would delete all resources of its kind"),
        "{text}"
    );
    assert!(!text.contains("delete the object"), "{text}");
}

#[test]
fn immutable_fields_are_explained_r73_r75() {
    let long = "x".repeat(9000);
    let r = read(
        422,
        &json!({"kind": "Status", "reason": "Invalid", "message": "Job.batch \"j\" is invalid: spec.template: …", "details": {"name": "j", "kind": "Job", "causes": [
            {"reason": "FieldValueInvalid", "message": format!("Invalid value: {long}: field is immutable"), "field": "spec.template"}]}}),
        false,
    );
    assert_eq!(r.kind(), ErrorKind::Invalid);
    assert!(r.is_immutable());
    let text = r.to_string();
    assert!(
        text.starts_with("invalid: spec.template: Invalid value: x")
            && text.contains("field is immutable (it cannot be changed"),
        "{text}"
    );
    assert!(text.len() < 700, "{}", text.len());
}

#[test]
fn secrets_are_not_quoted() {
    let message = "Secret \"db\" is invalid: data[k]: Invalid value: \"hunter2\": nope";
    let status = json!({"kind": "Status", "reason": "Invalid", "message": message, "details": {"name": "db", "kind": "Secret", "causes": [
        {"reason": "FieldValueInvalid", "message": "Invalid value: \"hunter2\": nope", "field": "data[k]"}]}});
    assert!(read(422, &status, false).to_string().contains("hunter2"));
    let r = read(422, &status, true);
    assert_eq!(r.to_string(), "invalid: data[k]: FieldValueInvalid");
    assert!(!format!("{r:?}").contains("hunter2"));
    for (code, message) in [
        (
            400,
            "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data: hunter2",
        ),
        (
            500,
            "failed to create typed patch object: .data.k: expected string, got hunter2",
        ),
        (
            400,
            "admission webhook \"policy.x\" denied the request: hunter2 is weak",
        ),
    ] {
        let r = read(
            code,
            &json!({"kind": "Status", "reason": "BadRequest", "message": message}),
            true,
        );
        assert!(!format!("{r:?} {r}").contains("hunter2"), "{r:?}");
    }
    let kept = read(
        403,
        &json!({"kind": "Status", "reason": "Forbidden", "message": "secrets \"db\" is forbidden: User \"u\" cannot patch"}),
        true,
    );
    assert!(kept.to_string().contains("cannot patch"));
}

#[test]
fn kinds() {
    let check = |code: u16, status: serde_json::Value, expect: ErrorKind| {
        assert_eq!(read(code, &status, false).kind(), expect, "{code} {status}");
    };
    check(
        404,
        json!({"kind": "Status", "reason": "NotFound", "details": {"name": "a", "kind": "configmaps"}}),
        ErrorKind::NotFound,
    );
    check(
        404,
        json!({"kind": "Status", "reason": "NotFound", "details": {},
            "message": "the server could not find the requested resource"}),
        ErrorKind::NoSuchKind,
    );
    check(
        404,
        json!({"kind": "Status", "reason": "NotFound", "message": "nothing of that name"}),
        ErrorKind::NotFound,
    );
    check(
        409,
        json!({"kind": "Status", "reason": "AlreadyExists", "details": {"name": "a"}}),
        ErrorKind::AlreadyExists,
    );
    check(
        409,
        json!({"kind": "Status", "reason": "Conflict", "details": {"name": "a"}}),
        ErrorKind::Stale,
    );
    check(
        403,
        json!({"kind": "Status", "reason": "Forbidden", "details": {"name": "a", "causes": [{"reason": "NamespaceTerminating"}]}}),
        ErrorKind::Terminating,
    );
    check(
        403,
        json!({"kind": "Status", "reason": "Forbidden", "message": "admission webhook \"x\" denied the request: no"}),
        ErrorKind::Denied,
    );
    check(
        422,
        json!({"kind": "Status", "message": "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"}),
        ErrorKind::Denied,
    );
    check(
        500,
        json!({"kind": "Status", "message": "Internal error occurred: failed calling webhook \"x\": …"}),
        ErrorKind::Unavailable,
    );
    check(503, json!({}), ErrorKind::Unavailable);
    assert_eq!(
        Refusal::read(404, b"404 page not found\n", None, false).kind(),
        ErrorKind::NoSuchKind
    );
    assert_eq!(
        Refusal::read(404, b"404 page not found\n", None, false).to_string(),
        "404 page not found"
    );
    let ns = read(
        404,
        &json!({"kind": "Status", "message": "namespaces \"x\" not found", "reason": "NotFound", "details": {"name": "x", "kind": "namespaces"}}),
        false,
    );
    assert_eq!(ns.missing_namespace(), Some("x"));
    let told = read(
        429,
        &json!({"kind": "Status", "details": {"retryAfterSeconds": 7}}),
        false,
    );
    assert_eq!(told.retry_after(), Some(Duration::from_secs(7)));
}
