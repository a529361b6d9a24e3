use std::sync::{OnceLock, RwLock};

use atc_api::ResourceRef;
use serde_json::json;

use super::*;
use crate::bootstrap::WebhookService;

fn kind(group: &str, plural: &str, namespaced: bool) -> ProtectedKind {
    ProtectedKind {
        group: group.into(),
        version: "v1".into(),
        plural: plural.into(),
        namespaced,
    }
}

fn service() -> WebhookService {
    WebhookService {
        name: "atc".into(),
        namespace: "n".into(),
        port: 1,
        url: None,
        ca_bundle: RwLock::new(b"ca".to_vec()),
        username: OnceLock::from("me".to_owned()),
    }
}

#[test]
fn a_configuration_is_read_as_it_is_written() {
    let service = service();
    let kinds = BTreeSet::from([
        kind("", "configmaps", true),
        kind("apps", "deployments", true),
        kind("rbac.authorization.k8s.io", "clusterroles", false),
    ]);
    let mut covered = Protection {
        kinds,
        makers: BTreeSet::from(["App.x.dev".to_owned(), "Core".to_owned()]),
        any_maker: false,
    };
    let mut live = service.of_protected(&covered);
    assert_eq!(earlier::covered(&live), covered);
    // What somebody added by hand is not ours.
    for rule in [
        json!({ "apiGroups": ["*"], "apiVersions": ["v1"], "resources": ["secrets"] }),
        json!({ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["*"] }),
        json!({ "apiGroups": [""], "apiVersions": ["v1"], "resources": [] }),
        json!({}),
    ] {
        live["webhooks"][0]["rules"]
            .as_array_mut()
            .unwrap()
            .push(rule);
    }
    assert_eq!(earlier::covered(&live), covered);
    // Who tells nobody apart, or otherwise than we do, may cover what anybody has made.
    let conditions = |live: &Value| live["webhooks"][0]["matchConditions"].clone();
    let last = conditions(&live).as_array().unwrap().len() - 1;
    covered.makers = BTreeSet::new();
    covered.any_maker = true;
    live["webhooks"][0]["matchConditions"][last]["expression"] = "'a' in ['App.x.dev']".into();
    assert_eq!(earlier::covered(&live), covered);
    let without = service.of_protected(&covered);
    assert_eq!(conditions(&without).as_array().unwrap().len(), last);
    assert_eq!(earlier::covered(&without), covered);
    let nothing = earlier::covered(&json!({ "webhooks": null }));
    assert_eq!(nothing.kinds, BTreeSet::new());
}

#[test]
fn the_scale_of_an_object_bears_no_mark_and_too_many_makers_are_not_told_apart() {
    let service = service();
    for (count, expect) in [(1, true), (100, true), (101, false)] {
        let protection = Protection {
            kinds: BTreeSet::from([kind("apps", "deployments", true)]),
            makers: (0..count).map(|at| format!("Kind{at}.x.dev")).collect(),
            any_maker: false,
        };
        let configuration = service.of_protected(&protection);
        let narrowed = |at: usize| {
            let conditions = configuration["webhooks"][at]["matchConditions"].to_string();
            conditions.contains("Kind0.x.dev")
        };
        assert_eq!((narrowed(0), narrowed(1)), (expect, false), "{count}");
    }
}

fn owner(kind: &str) -> Owner {
    Owner::Instance {
        airway: "x".into(),
        target: ResourceRef::new("n", "x.dev", kind, "a"),
    }
}

fn protection(kinds: &[&ProtectedKind], makers: &[&str], any_maker: bool) -> Protection {
    Protection {
        kinds: kinds.iter().copied().cloned().collect(),
        makers: makers.iter().map(|&maker| maker.to_owned()).collect(),
        any_maker,
    }
}

#[test]
fn what_an_earlier_process_covered_is_wanted_for_a_while() {
    let (old, new) = (kind("", "secrets", true), kind("", "configmaps", true));
    let mut table = Table {
        inherited: Some(protection(&[&old], &[], true)),
        ..Table::default()
    };
    let said = |table: &mut Table, kind: &str, kinds: &[&ProtectedKind]| {
        let kinds = kinds.iter().copied().cloned().collect();
        table.by_owner.insert(owner(kind), kinds);
    };
    said(&mut table, "App", &[&new]);
    // Who has made nothing has nothing protected.
    said(&mut table, "Idle", &[]);
    assert_eq!(
        table.wanted(),
        protection(&[&old, &new], &["App.x.dev"], true)
    );
    table.inherited = Some(protection(&[&old], &["Old.x.dev"], false));
    let both = protection(&[&old, &new], &["App.x.dev", "Old.x.dev"], false);
    assert_eq!(table.wanted(), both);
    table.inherited = None;
    assert_eq!(table.wanted(), protection(&[&new], &["App.x.dev"], false));
    table.by_owner.clear();
    assert_eq!(table.wanted(), table.written);
}

#[test]
fn a_probe_from_before_a_loss_proves_nothing() {
    let (ours, other) = (kind("", "secrets", true), kind("", "configmaps", true));
    let covered = |kind: &ProtectedKind, maker: &str| Covered {
        kind: kind.clone(),
        maker: maker.to_owned(),
    };
    let mut table = Table {
        written: protection(&[&ours], &["App.x.dev"], false),
        ..Table::default()
    };
    let before = table.losses;
    let one = covered(&ours, "App.x.dev");
    table.proven(one.clone(), before);
    table.proven(covered(&other, "App.x.dev"), before);
    table.proven(covered(&ours, "Web.x.dev"), before);
    assert_eq!(table.in_force, BTreeSet::from([one.clone()]));
    table.lost();
    table.proven(one.clone(), before);
    assert!(table.in_force.is_empty());
    table.proven(one.clone(), table.losses);
    assert_eq!(table.in_force, BTreeSet::from([one]));
}
