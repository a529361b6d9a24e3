use std::sync::Mutex;

use super::*;
use atc_api::{BoxFuture, names};
use futures::executor::block_on;
use serde_json::json;

/// What the fake cluster was asked, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Resolve(String, String),
    Interest(String),
    Get(String),
}

/// A cluster of a few kinds and objects that writes down what it is asked.
#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) objects: Vec<(String, Value)>,
    pub(crate) failure: Option<ReadFailure>,
    pub(crate) calls: Mutex<Vec<Asked>>,
}

impl Fake {
    /// With an object at `reference`, owned by `owner` (`namespace/release`) if it is not empty.
    pub(crate) fn with(mut self, reference: &str, owner: &str, mut object: Value) -> Self {
        let target: ResourceRef = reference.parse().unwrap();
        let metadata = &mut object["metadata"];
        metadata["name"] = json!(target.name);
        if !target.namespace.is_empty() {
            metadata["namespace"] = json!(target.namespace);
        }
        metadata["uid"] = json!(format!("uid of {}", target.name));
        metadata["resourceVersion"] = json!("7");
        if let Some((namespace, release)) = owner.split_once('/') {
            metadata["annotations"] = json!({ names::ANNOTATION_NAMESPACE: namespace, names::ANNOTATION_RELEASE: release });
        }
        self.objects.push((reference.to_owned(), object));
        self
    }

    pub(crate) fn calls(&self) -> Vec<Asked> {
        self.calls.lock().unwrap().clone()
    }

    fn note(&self, asked: Asked) {
        self.calls.lock().unwrap().push(asked);
    }
}

fn kinds(text: &str, kind: &str) -> Option<Mapping> {
    let (group, plural, namespaced) = match (text, kind) {
        ("" | "v1", "Secret") => ("", "secrets", true),
        ("" | "v1", "Namespace") => ("", "namespaces", false),
        ("apps" | "apps/v1", "Deployment") => ("apps", "deployments", true),
        _ => return None,
    };
    let (kind, plural) = (kind.to_owned(), plural.to_owned());
    Some(Mapping {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind,
        plural,
        namespaced,
    })
}

impl ClusterReader for &Fake {
    fn resolve(
        &self,
        api_version_or_group: &str,
        kind: &str,
    ) -> BoxFuture<'_, Result<Mapping, ReadFailure>> {
        self.note(Asked::Resolve(
            api_version_or_group.to_owned(),
            kind.to_owned(),
        ));
        let found = kinds(api_version_or_group, kind);
        let found = found.ok_or_else(|| {
            ReadFailure::new(State::NotFound, format!("no kind {kind:?} is served"))
        });
        Box::pin(std::future::ready(found))
    }

    fn get(
        &self,
        mapping: &Mapping,
        namespace: &str,
        name: &str,
    ) -> BoxFuture<'_, Result<Option<Value>, ReadFailure>> {
        let target = ResourceRef::new(namespace, &mapping.group, &mapping.kind, name).to_string();
        self.note(Asked::Get(target.clone()));
        let found = self
            .objects
            .iter()
            .find(|(reference, _)| *reference == target);
        let found = self
            .failure
            .clone()
            .map_or(Ok(found.map(|(_, object)| object.clone())), Err);
        Box::pin(std::future::ready(found))
    }

    fn interest(&self, target: &ResourceRef, _: &Mapping) {
        self.note(Asked::Interest(target.to_string()));
    }
}

/// `web` in `prod` with these matchers.
pub(crate) fn policy(matchers: &[&str]) -> AccessPolicy {
    AccessPolicy {
        enabled: true,
        owner: Owner::new("prod", "web"),
        matchers: matchers.iter().collect(),
        confined: false,
    }
}

pub(crate) fn request(api_version: &str, kind: &str, namespace: &str, name: &str) -> LookupRequest {
    LookupRequest {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        kind: kind.to_owned(),
        api_version: api_version.to_owned(),
    }
}

fn secret(namespace: &str, name: &str) -> LookupRequest {
    request("v1", "Secret", namespace, name)
}

fn cluster() -> Fake {
    Fake::default()
        .with(
            "prod/Secret:own",
            "prod/web",
            json!({ "data": { "k": "aHVudGVyMg==" } }),
        )
        .with(
            "prod/Secret:other",
            "prod/api",
            json!({ "data": { "k": "aHVudGVyMg==" } }),
        )
        .with(
            "prod/Secret:nobody",
            "",
            json!({ "data": { "k": "aHVudGVyMg==" } }),
        )
        .with(
            "test/Secret:twin",
            "test/web",
            json!({ "data": { "k": "aHVudGVyMg==" } }),
        )
        .with("default/Secret:d", "prod/web", json!({}))
        .with("/Namespace:prod", "prod/web", json!({}))
        .with("/Namespace:test", "", json!({}))
}

/// One look-up: the state that comes of it, and what is recorded (`kind reference` or nothing).
fn check(
    matchers: &[&str],
    request: &LookupRequest,
    state: State,
    recorded: Option<(ReadKind, &str, bool)>,
) {
    let cluster = cluster();
    let guard = Guard::new(&cluster, policy(matchers));
    let result = block_on(guard.lookup(request));
    let got = result
        .as_ref()
        .map_or_else(GuardError::state, |_| State::Ok);
    assert_eq!(got, state, "{request:?} with {matchers:?}: {result:?}");
    let reads = guard.ledger().reads();
    let reads: Vec<_> = reads
        .iter()
        .map(|read| {
            (
                read.kind,
                read.target.to_string(),
                read.observed != Observed::Absent,
            )
        })
        .collect();
    let expect: Vec<_> = recorded
        .into_iter()
        .map(|(kind, text, there)| (kind, text.to_owned(), there))
        .collect();
    assert_eq!(reads, expect, "{request:?} with {matchers:?}");
}

#[test]
fn table_of_lookups() {
    use ReadKind::{Candidate, External, Own};
    use State::{Forbidden, NotFound, Ok};
    check(
        &[],
        &secret("prod", "own"),
        Ok,
        Some((Own, "prod/Secret:own", true)),
    );
    check(
        &["*"],
        &secret("prod", "own"),
        Ok,
        Some((Own, "prod/Secret:own", true)),
    );
    check(
        &["Secret"],
        &secret("prod", "other"),
        Ok,
        Some((External, "prod/Secret:other", true)),
    );
    check(
        &["Secret"],
        &secret("prod", "nobody"),
        Ok,
        Some((External, "prod/Secret:nobody", true)),
    );
    check(
        &["test/Secret:twin"],
        &secret("test", "twin"),
        Ok,
        Some((External, "test/Secret:twin", true)),
    );
    check(&[], &secret("prod", "other"), Forbidden, None);
    check(&[], &secret("prod", "nobody"), Forbidden, None);
    check(&[], &secret("test", "twin"), Forbidden, None);
    check(
        &["ConfigMap", "test/*", "secret"],
        &secret("prod", "other"),
        Forbidden,
        None,
    );
    check(
        &["Secret"],
        &secret("prod", "gone"),
        NotFound,
        Some((External, "prod/Secret:gone", false)),
    );
    check(
        &["test/*"],
        &secret("prod", "gone"),
        NotFound,
        Some((Candidate, "prod/Secret:gone", false)),
    );
    check(
        &[],
        &secret("prod", "gone"),
        NotFound,
        Some((Candidate, "prod/Secret:gone", false)),
    );
}

#[test]
fn the_empty_namespace_is_default_and_cluster_scope_has_none_p10() {
    use ReadKind::{Candidate, External, Own};
    use State::{Forbidden, NotFound, Ok};
    check(
        &[],
        &secret("", "d"),
        Ok,
        Some((Own, "default/Secret:d", true)),
    );
    check(
        &[],
        &secret("", "own"),
        NotFound,
        Some((Candidate, "default/Secret:own", false)),
    );
    check(
        &["default/Secret"],
        &secret("", "own"),
        NotFound,
        Some((External, "default/Secret:own", false)),
    );
    let namespace = |namespace, name| request("v1", "Namespace", namespace, name);
    check(
        &[],
        &namespace("", "prod"),
        Ok,
        Some((Own, "/Namespace:prod", true)),
    );
    check(
        &[],
        &namespace("ignored", "prod"),
        Ok,
        Some((Own, "/Namespace:prod", true)),
    );
    check(
        &["default/Namespace", "ignored/*"],
        &namespace("ignored", "test"),
        Forbidden,
        None,
    );
    check(
        &["Namespace"],
        &namespace("ignored", "test"),
        Ok,
        Some((External, "/Namespace:test", true)),
    );
}

#[test]
fn interest_comes_before_the_read_and_access_before_everything() {
    let asked = |policy: AccessPolicy, request: &LookupRequest| {
        let cluster = cluster();
        let guard = Guard::new(&cluster, policy);
        let error = block_on(guard.lookup(request)).err();
        (error, cluster.calls())
    };
    let order = |reference: &str| {
        vec![
            Asked::Resolve("v1".into(), "Secret".into()),
            Asked::Interest(reference.into()),
            Asked::Get(reference.into()),
        ]
    };
    assert_eq!(
        asked(policy(&[]), &secret("prod", "own")),
        (None, order("prod/Secret:own"))
    );
    assert_eq!(
        asked(policy(&[]), &secret("prod", "other")).1,
        order("prod/Secret:other")
    );
    assert_eq!(
        asked(policy(&[]), &secret("", "gone")).1,
        order("default/Secret:gone")
    );
    let off = AccessPolicy {
        enabled: false,
        ..policy(&["*"])
    };
    assert_eq!(
        asked(off.clone(), &secret("prod", "own")),
        (Some(GuardError::NotGranted), vec![])
    );
    assert_eq!(
        asked(off.clone(), &secret("..", "../x")),
        (Some(GuardError::NotGranted), vec![])
    );
    assert_eq!(
        asked(off, &request("", "", "", "")),
        (Some(GuardError::NotGranted), vec![])
    );
    assert_eq!(
        asked(policy(&["*"]), &request("v1", "Nope", "", "a")).1,
        [Asked::Resolve("v1".into(), "Nope".into())]
    );
}

#[test]
fn impossible_arguments_reach_nobody() {
    let requests = [
        secret("prod", ""),
        secret("prod", "../nobody"),
        secret("prod/secrets", "own"),
        secret("..", "own"),
        secret("prod", &"x".repeat(100_000)),
        request("v1", "Secret.apps", "prod", "own"),
        request("v1/../v1", "Secret", "prod", "own"),
        request("v1", "", "prod", "own"),
    ];
    for request in requests {
        let cluster = cluster();
        let guard = Guard::new(&cluster, policy(&["*"]));
        let error = block_on(guard.lookup(&request)).unwrap_err();
        assert!(
            matches!(error, GuardError::Argument(_)),
            "{request:?}: {error:?}"
        );
        assert_eq!(error.state(), State::Error);
        assert_eq!(cluster.calls(), []);
        assert_eq!(guard.ledger().reads(), []);
    }
}

#[test]
fn rest_mappings() {
    let ask = |enabled, api_version: &str, kind: &str| {
        let cluster = cluster();
        let guard = Guard::new(
            &cluster,
            AccessPolicy {
                enabled,
                ..policy(&[])
            },
        );
        let request = RestMappingRequest {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        };
        let result = block_on(guard.rest_mapping(&request)).map(|mapping| mapping.plural);
        (result.map_err(|error| error.state()), cluster.calls().len())
    };
    for text in ["apps", "apps/v1"] {
        assert_eq!(
            ask(true, text, "Deployment"),
            (Ok("deployments".to_owned()), 1)
        );
    }
    for text in ["", "v1"] {
        assert_eq!(ask(true, text, "Secret"), (Ok("secrets".to_owned()), 1));
    }
    assert_eq!(ask(true, "apps", "Nope"), (Err(State::Error), 1));
    assert_eq!(ask(true, "a/b/c", "Nope"), (Err(State::Error), 0));
    assert_eq!(ask(true, "apps", ""), (Err(State::Error), 0));
    assert_eq!(
        ask(false, "apps", "Deployment"),
        (Err(State::FeatureNotGranted), 0)
    );
}

#[test]
fn failures_of_the_api_keep_their_state_and_record_nothing() {
    for (failed, state) in [
        (State::Unauthenticated, State::Unauthenticated),
        (State::Forbidden, State::Forbidden),
        (State::Error, State::Error),
        (State::FeatureNotGranted, State::FeatureNotGranted),
        (State::Ok, State::Error),
    ] {
        let cluster = Fake {
            failure: Some(ReadFailure::new(failed, "no")),
            ..cluster()
        };
        let guard = Guard::new(&cluster, policy(&["*"]));
        assert_eq!(
            block_on(guard.lookup(&secret("prod", "own")))
                .unwrap_err()
                .state(),
            state
        );
        assert_eq!(guard.ledger().reads(), []);
    }
    let cluster = Fake {
        failure: Some(ReadFailure::new(State::NotFound, "gone")),
        ..cluster()
    };
    let guard = Guard::new(&cluster, policy(&["*"]));
    let error = block_on(guard.lookup(&secret("prod", "own"))).unwrap_err();
    assert_eq!(
        error,
        GuardError::Absent("prod/Secret:own".parse().unwrap())
    );
    assert_eq!(guard.ledger().reads()[0].observed, Observed::Absent);
}

/// The API answering with another object (a proxy, a cache gone wrong) gives that object to nobody.
#[test]
fn another_object_is_no_answer() {
    for metadata in [
        json!({ "name": "b", "namespace": "prod" }),
        json!({ "name": "a", "namespace": "x" }),
        json!({}),
    ] {
        let object = json!({ "metadata": metadata, "data": "aHVudGVyMg==" });
        let cluster = Fake {
            objects: vec![("prod/Secret:a".to_owned(), object)],
            ..Fake::default()
        };
        let guard = Guard::new(&cluster, policy(&["*"]));
        let error = block_on(guard.lookup(&secret("prod", "a"))).unwrap_err();
        assert_eq!(error, GuardError::Mixed("prod/Secret:a".parse().unwrap()));
        assert_eq!(guard.ledger().reads(), []);
    }
}

#[test]
fn no_text_holds_an_objects_content() {
    let cluster = cluster();
    let guard = Guard::new(&cluster, policy(&["prod/Secret:nobody"]));
    let mut texts = Vec::new();
    for name in ["own", "other", "nobody", "gone"] {
        if let Err(error) = block_on(guard.lookup(&secret("prod", name))) {
            texts.push(format!("{error} {error:?}"));
        }
    }
    texts.push(format!("{:?} {:?}", guard.ledger(), guard.ledger().reads()));
    let texts = texts.join(" ");
    assert!(
        !texts.contains("aHVudGVyMg==") && !texts.contains("hunter2"),
        "{texts}"
    );
    assert!(
        texts.contains("prod/Secret:other is outside of this release's ownership"),
        "{texts}"
    );
}
