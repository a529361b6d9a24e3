use std::sync::{OnceLock, RwLock};

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

#[test]
fn a_configuration_is_read_as_it_is_written() {
    let service = WebhookService {
        name: "atc".into(),
        namespace: "n".into(),
        port: 1,
        url: None,
        ca_bundle: RwLock::new(b"ca".to_vec()),
        username: OnceLock::from("me".to_owned()),
    };
    let kinds = BTreeSet::from([
        kind("", "configmaps", true),
        kind("apps", "deployments", true),
        kind("rbac.authorization.k8s.io", "clusterroles", false),
    ]);
    let mut live = service.of_protected(&kinds);
    assert_eq!(earlier::covered(&live), kinds);
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
    assert_eq!(earlier::covered(&live), kinds);
    assert_eq!(
        earlier::covered(&json!({ "webhooks": null })),
        BTreeSet::new()
    );
}

#[test]
fn what_an_earlier_process_covered_is_wanted_for_a_while() {
    let (old, new) = (kind("", "secrets", true), kind("", "configmaps", true));
    let mut table = Table {
        inherited: Some(BTreeSet::from([old.clone()])),
        ..Table::default()
    };
    table
        .by_owner
        .insert(Owner::Process, BTreeSet::from([new.clone()]));
    assert_eq!(table.wanted(), BTreeSet::from([new.clone(), old]));
    table.inherited = None;
    assert_eq!(table.wanted(), BTreeSet::from([new]));
}

#[test]
fn a_probe_from_before_a_loss_proves_nothing() {
    let (kind, other) = (kind("", "secrets", true), kind("", "configmaps", true));
    let mut table = Table {
        written: BTreeSet::from([kind.clone()]),
        ..Table::default()
    };
    let before = table.losses;
    table.proven(kind.clone(), before);
    table.proven(other, before);
    assert_eq!(table.in_force, BTreeSet::from([kind.clone()]));
    table.lost();
    table.proven(kind.clone(), before);
    assert!(table.in_force.is_empty());
    table.proven(kind.clone(), table.losses);
    assert_eq!(table.in_force, BTreeSet::from([kind]));
}
