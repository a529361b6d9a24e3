use super::*;
use proptest::prelude::*;

fn check(result: Result<(), ArgumentError>, expect: Option<&str>) {
    match (result, expect) {
        (Ok(()), None) => {}
        (Err(error), Some(text)) => assert!(error.to_string().contains(text), "{error}"),
        (result, expect) => panic!("{result:?} instead of {expect:?}"),
    }
}

#[test]
fn names() {
    for good in [
        "a",
        "my.config",
        "system:node",
        "UPPER",
        "a b",
        "...",
        "a?b#c",
        &"x".repeat(253),
    ] {
        check(name(good), None);
    }
    check(name(""), Some("the name is empty"));
    check(
        name(&"x".repeat(254)),
        Some("the name has 254 bytes, 253 is the most"),
    );
    for bad in [
        ".",
        "..",
        "a/b",
        "../../secrets/db",
        "/",
        "a%2Fb",
        "a\0",
        "a\n",
        "%",
    ] {
        check(name(bad), Some("is no name"));
    }
}

#[test]
fn namespaces() {
    check(namespace(""), None);
    check(namespace("default"), None);
    check(namespace("a/../b"), Some("is no namespace"));
    check(namespace(".."), Some("is no namespace"));
    check(namespace(&"x".repeat(64)), Some("64 bytes"));
}

#[test]
fn kinds() {
    check(kind("Deployment"), None);
    check(kind("configmap"), None);
    check(kind(""), Some("the kind is empty"));
    check(kind(&"K".repeat(64)), Some("64 bytes"));
    for bad in ["Deployment.apps", "a/b", "*", "K ", "ß", "K\0"] {
        check(kind(bad), Some("is no kind"));
    }
}

#[test]
fn api_versions() {
    for good in [
        "",
        "v1",
        "apps",
        "apps/v1",
        "rbac.authorization.k8s.io/v1",
        "a-b.dev/v1alpha1",
    ] {
        check(api_version(good), None);
    }
    check(api_version(&"v".repeat(318)), Some("318 bytes"));
    for bad in [
        "/",
        "/v1",
        "apps/",
        "a/b/c",
        "../api/v1",
        "apps/..",
        "apps/v1?x",
        "a b",
        "apps%2Fv1",
        "é/v1",
    ] {
        check(api_version(bad), Some("is no apiVersion"));
    }
}

proptest! {
    /// Whatever passes stays one segment of a path (two for an API version).
    #[test]
    fn what_passes_cannot_leave_its_place(text: String) {
        for check in [name, namespace, kind] {
            if check(&text).is_ok() {
                prop_assert!(!text.contains(['/', '%']) && text != "." && text != "..");
            }
        }
        if api_version(&text).is_ok() {
            prop_assert!(text.split('/').all(|part| part != "." && part != ".."));
        }
    }
}
