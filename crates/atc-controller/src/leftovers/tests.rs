use atc_engine::release::object::Stages;
use serde_json::json;

use super::*;

fn mapping(namespaced: bool) -> Mapping {
    Mapping {
        group: "x.dev".into(),
        version: "v1".into(),
        kind: "App".into(),
        plural: "apps".into(),
        namespaced,
    }
}

#[test]
fn instances_are_told_by_the_names_of_their_releases() {
    let check = |namespaced: bool, home: &str, release: &str, expect: Option<(&str, &str)>| {
        let mapping = mapping(namespaced);
        let expect = expect.map(|(namespace, name)| mapping.reference(namespace, name));
        assert_eq!(
            instance_of(&mapping, home, release),
            expect,
            "{home} {release}"
        );
    };
    check(true, "n", "x.dev.App.n.a", Some(("n", "a")));
    check(true, "n", "x.dev.App.n.a.b", Some(("n", "a.b")));
    check(true, "n", "x.dev.App.m.a", None);
    check(true, "n", "x.dev.App.n.", None);
    check(true, "n", "x.dev.Apple.n.a", None);
    check(true, "n", "mine", None);
    check(false, "default", "x.dev.App.a", Some(("", "a")));
    check(false, "default", "x.dev.App.n.a", Some(("", "n.a")));
    check(false, "n", "x.dev.App.a", None);
}

#[test]
fn flights_are_told_by_the_names_of_their_records() {
    let check = |kind: &str, home: &str, release: &str, expect: Option<(&str, &str)>| {
        let mapping = Mapping {
            group: "yoke.cd".into(),
            version: "v1alpha1".into(),
            kind: kind.into(),
            plural: format!("{}s", kind.to_lowercase()),
            namespaced: kind == "Flight",
        };
        let expect = expect.map(|(namespace, name)| mapping.reference(namespace, name));
        let found = instance_of(&mapping, home, release);
        assert_eq!(found, expect, "{kind} {home} {release}");
    };
    check("Flight", "n", "n/Flight.yoke.cd:a", Some(("n", "a")));
    check("Flight", "n", "m/Flight.yoke.cd:a", None);
    check("Flight", "n", "yoke.cd.Flight.n.a", None);
    check("Flight", "default", "/ClusterFlight.yoke.cd:a", None);
    let wide = "/ClusterFlight.yoke.cd:a";
    check("ClusterFlight", "default", wide, Some(("", "a")));
    check("ClusterFlight", "n", wide, None);
    check("ClusterFlight", "default", "default/Flight.yoke.cd:a", None);
}

#[test]
fn only_what_an_atc_made_for_it_is_its() {
    let target = mapping(true).reference("n", "a");
    let object = |manager: &str, instance: &str, owner: &str| {
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "c", "namespace": "n",
            "labels": { (names::LABEL_MANAGED_BY): manager },
            "annotations": { (names::ANNOTATION_INSTANCE_REF): instance },
            "ownerReferences": [{ "apiVersion": "x.dev/v1", "kind": "App", "name": owner, "uid": "u" }],
        } });
        Object::try_from(object).expect("an object")
    };
    let check = |objects: Vec<Object>, expect: Option<Option<&str>>| {
        let stages = Stages::new(vec![objects]);
        let revision = Revision::new("r", "n", stages, [0; 6], jiff::Timestamp::UNIX_EPOCH);
        let found = marks(&[revision], &target);
        let found = found.as_ref().map(|marks| marks.owner_uid.as_deref());
        assert_eq!(found, expect);
    };
    let ours = || object(names::MANAGED_BY_ATC, "n/App.x.dev:a", "a");
    check(vec![ours()], Some(Some("u")));
    check(
        vec![object(names::MANAGED_BY_ATC, "n/App.x.dev:a", "b")],
        Some(None),
    );
    check(vec![], None);
    check(
        vec![ours(), object(names::MANAGED_BY_YOKE, "n/App.x.dev:a", "a")],
        None,
    );
    check(
        vec![ours(), object(names::MANAGED_BY_ATC, "n/App.x.dev:b", "a")],
        None,
    );
}
