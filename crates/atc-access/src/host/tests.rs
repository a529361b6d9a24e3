use super::*;
use crate::guard::tests::{Fake, policy, request};
use crate::ledger::ReadKind;
use crate::reader::ReadFailure;
use futures::executor::block_on;

fn lookup(
    cluster: &Fake,
    policy: AccessPolicy,
    request: LookupRequest,
) -> Result<String, (u32, String)> {
    let host = GuardedHost::new(cluster, policy);
    let result = block_on(host.lookup(request));
    result
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .map_err(|failure| (failure.state.number(), failure.message))
}

fn secret(name: &str) -> LookupRequest {
    request("v1", "Secret", "prod", name)
}

/// Every number that an API server can send goes to the guest as it came; key order and metadata too.
#[test]
fn objects_go_to_the_guest_word_for_word() {
    let text = r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","namespace":"prod","managedFields":[{"manager":"m"}],"annotations":{"z":"1","a":"2"}},"data":{"b":"","a":null},"spec":{"i":9123456789012345678,"u":18446744073709551615,"n":-9223372036854775808,"m":1000000,"d":20161216,"f":1.0,"g":0.1,"z":-0.0,"t":"é\n"}}"#;
    let object = serde_json::from_str(text).unwrap();
    let cluster = Fake {
        objects: vec![("prod/Secret:a".to_owned(), object)],
        ..Fake::default()
    };
    assert_eq!(lookup(&cluster, policy(&["*"]), secret("a")).unwrap(), text);
}

/// A number out of range is refused where the API server's answer is parsed, it never becomes infinity.
#[test]
fn numbers_out_of_range_are_refused_by_the_parser() {
    assert!(
        serde_json::from_str::<Value>("1e400")
            .unwrap_err()
            .to_string()
            .contains("out of range")
    );
}

#[test]
fn texts_for_the_guest() {
    let cluster = Fake::default().with("prod/Secret:other", "prod/api", serde_json::json!({}));
    let check = |policy: AccessPolicy, request: LookupRequest, state: u32, text: &str| {
        assert_eq!(
            lookup(&cluster, policy, request),
            Err((state, text.to_owned()))
        );
    };
    let off = AccessPolicy {
        enabled: false,
        ..policy(&["*"])
    };
    check(
        off,
        secret("other"),
        1,
        "access to the cluster is not granted to this flight; -cluster-access, or clusterAccess: true, grants it",
    );
    check(
        policy(&[]),
        request("v1", "Nope", "", "a"),
        2,
        "the look-up failed: no kind \"Nope\" is served",
    );
    check(
        policy(&[]),
        secret("a/b"),
        2,
        "the look-up cannot be made: \"a/b\" is no name",
    );
    check(
        policy(&[]),
        secret("gone"),
        3,
        "prod/Secret:gone is not found",
    );
    check(
        AccessPolicy {
            confined: true,
            ..policy(&["*"])
        },
        request("v1", "Secret", "elsewhere", "a"),
        5,
        "forbidden: elsewhere/Secret:a is not for this release to read: a Flight reads in its own namespace only, and nothing that gives rights",
    );
    check(
        policy(&["ConfigMap"]),
        secret("other"),
        5,
        "forbidden: prod/Secret:other is outside of this release's ownership, and no resource access matcher covers it; \"prod/Secret:other\" would, in -resource-access or resourceAccessMatchers",
    );
}

#[test]
fn texts_are_bounded() {
    let failure = ReadFailure::new(State::Error, "é".repeat(MAX_TEXT));
    let cluster = Fake {
        failure: Some(failure),
        ..Fake::default()
    };
    let (_, text) = lookup(&cluster, policy(&["*"]), secret("a")).unwrap_err();
    assert!(
        text.len() <= MAX_TEXT
            && text.len() > MAX_TEXT - 4
            && text.starts_with("the look-up failed: é")
    );
}

#[test]
fn mappings_have_exactly_five_keys() {
    let cluster = Fake::default();
    let host = GuardedHost::new(&cluster, policy(&[]));
    let ask = |api_version: &str, kind: &str| {
        let request = RestMappingRequest {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        };
        String::from_utf8(block_on(host.rest_mapping(request)).unwrap()).unwrap()
    };
    let deployment = r#"{"Group":"apps","Version":"v1","Kind":"Deployment","Resource":"deployments","Namespaced":true}"#;
    assert_eq!(ask("apps", "Deployment"), deployment);
    assert_eq!(ask("apps/v1", "Deployment"), deployment);
    let namespace = r#"{"Group":"","Version":"v1","Kind":"Namespace","Resource":"namespaces","Namespaced":false}"#;
    assert_eq!(ask("", "Namespace"), namespace);
    assert_eq!(ask("v1", "Namespace"), namespace);
    assert_eq!(host.ledger().reads(), []);
}

/// The ledger can be asked after the host is gone: a run that is cut off has read something, too.
#[test]
fn the_ledger_outlives_the_host() {
    let cluster = Fake::default();
    let host: Box<dyn HostCluster> = {
        let host = GuardedHost::new(&cluster, policy(&["Secret"]));
        let ledger = host.ledger();
        assert!(block_on(host.lookup(secret("gone"))).is_err());
        drop(host);
        assert_eq!(ledger.reads()[0].kind, ReadKind::External);
        Box::new(GuardedHost::new(&cluster, policy(&[])))
    };
    let _ = block_on(host.lookup(secret("gone")));
}
