//! Who may import whom: the table of `docs/architecture.md`, and the one owner of each external library.

use anyhow::Result;
use serde_json::Value;

use crate::{Workspace, workspace::output};

/// What a crate may use of ours, and which externals must not be reachable from it at all.
struct Room {
    name: &'static str,
    /// Crates of this workspace that it may depend on; dev-dependencies are free.
    ours: &'static [&'static str],
    /// Crates that must not be in its tree, however far down.
    never: &'static [&'static str],
}

const ROOMS: &[Room] = &[
    Room {
        name: "atc-api",
        ours: &[],
        never: &["tokio", "kube-client", "wasmtime"],
    },
    Room {
        name: "atc-access",
        ours: &["atc-api"],
        never: &["tokio", "kube-client", "wasmtime"],
    },
    Room {
        name: "atc-flight",
        ours: &["atc-api"],
        never: &["kube-client", "reqwest", "hyper", "oci-client"],
    },
    Room {
        name: "atc-artifact",
        ours: &[],
        never: &["kube-core", "wasmtime"],
    },
    Room {
        name: "atc-readiness",
        ours: &[],
        never: &["tokio", "kube-core", "wasmtime"],
    },
    Room {
        name: "atc-release",
        ours: &["atc-api"],
        never: &["wasmtime", "oci-client", "axum", "reqwest"],
    },
    Room {
        name: "atc-watch",
        ours: &["atc-api"],
        never: &["wasmtime", "axum", "reqwest"],
    },
    Room {
        name: "atc-engine",
        ours: &[
            "atc-access",
            "atc-api",
            "atc-artifact",
            "atc-flight",
            "atc-readiness",
            "atc-release",
            "atc-watch",
        ],
        never: &["axum", "clap"],
    },
    Room {
        name: "atc-controller",
        ours: &["atc-api", "atc-engine", "atc-watch"],
        never: &["clap"],
    },
    Room {
        name: "atc-bin",
        ours: &["atc-controller"],
        never: TWO_TLS,
    },
    Room {
        name: "yoke-cli",
        ours: &["atc-artifact", "atc-engine"],
        never: TWO_TLS,
    },
    Room {
        name: "yoke-sdk",
        ours: &[],
        never: &["tokio", "kube-core", "wasmtime", "reqwest"],
    },
    Room {
        name: "xtask",
        ours: &["controlplane"],
        never: &["tokio", "kube-core", "wasmtime"],
    },
    Room {
        name: "controlplane",
        ours: &[],
        never: &["tokio", "kube-core", "wasmtime"],
    },
];

/// A second TLS library in a binary: aws-lc-rs is the one. Others are in the lock file, as options that nobody takes.
const TWO_TLS: &[&str] = &["ring", "openssl-sys", "native-tls"];

/// Packages of the workspace without a row above: tests may use everything.
const FREE: &[&str] = &["atc-fuzz", "atc-tests"];

/// External libraries and the only crates that may depend on them directly.
const OWNERS: &[(&str, &[&str])] = &[
    ("wasmtime", &["atc-flight"]),
    ("wasmtime-wasi", &["atc-flight"]),
    ("oci-client", &["atc-artifact"]),
    ("reqwest", &["atc-artifact"]),
    ("hyper", &["atc-artifact"]),
    // Modules are gzipped, and so are revisions.
    ("flate2", &["atc-artifact", "atc-release"]),
    ("rsa", &["atc-artifact"]),
    ("p256", &["atc-artifact"]),
    ("p384", &["atc-artifact"]),
    ("p521", &["atc-artifact"]),
    ("ed25519-dalek", &["atc-artifact"]),
    ("mlua", &["atc-readiness"]),
    ("indicatif", &["yoke-cli"]),
    ("prometheus-client", &["atc-controller"]),
    ("axum", &["atc-controller"]),
    ("axum-server", &["atc-controller"]),
    ("clap", &["atc-bin", "yoke-cli", "xtask"]),
    ("anyhow", &["atc-bin", "yoke-cli", "xtask", "controlplane"]),
];

/// Features of kube and who may turn them on: writing calls, and watchers and queues.
const KUBE: &[(&str, &[&str])] = &[
    (
        "client",
        &[
            "atc-release",
            "atc-watch",
            "atc-engine",
            "atc-controller",
            "atc-bin",
            "yoke-cli",
        ],
    ),
    ("runtime", &["atc-release", "atc-watch", "atc-controller"]),
];

pub(super) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let names: Vec<&str> = workspace
        .packages()
        .iter()
        .filter_map(|p| p["name"].as_str())
        .collect();
    let mut findings = Vec::new();
    for package in workspace.packages() {
        findings.extend(direct(package, &names));
    }
    for room in ROOMS {
        // Alone, with its default features: what a stranger gets.
        let mut tree = workspace.cargo();
        tree.args([
            "tree",
            "--quiet",
            "--package",
            room.name,
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ]);
        findings.extend(reachable(room, &output(&mut tree)?));
    }
    Ok(findings)
}

/// Direct dependencies that are not those of the table.
fn direct(package: &Value, workspace: &[&str]) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    if FREE.contains(&name) {
        return Vec::new();
    }
    let Some(room) = ROOMS.iter().find(|room| room.name == name) else {
        return vec![format!(
            "{name}: has no row in the import table (xtask/src/tidy/imports.rs)"
        )];
    };
    let mut findings = Vec::new();
    let dependencies = package["dependencies"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    for dependency in dependencies.iter().filter(|d| d["kind"] != "dev") {
        let Some(other) = dependency["name"].as_str() else {
            continue;
        };
        if workspace.contains(&other) && !room.ours.contains(&other) {
            findings.push(format!("{name}: may not import {other}"));
        }
        if let Some((_, owners)) = OWNERS.iter().find(|(library, _)| *library == other)
            && !owners.contains(&name)
        {
            findings.push(format!("{name}: {other} belongs to {}", owners.join(", ")));
        }
        if other == "kube" {
            findings.extend(kube(name, dependency));
        }
    }
    findings
}

fn kube(name: &str, dependency: &Value) -> Vec<String> {
    let features = dependency["features"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let mut findings = Vec::new();
    if dependency["uses_default_features"] != false {
        findings.push(format!(
            "{name}: kube's default features bring a second TLS library"
        ));
    }
    for (feature, owners) in KUBE {
        if features.iter().any(|f| f == feature) && !owners.contains(&name) {
            findings.push(format!(
                "{name}: kube's feature {feature} belongs to {}",
                owners.join(", ")
            ));
        }
    }
    findings
}

/// Crates in a room's tree that must not be there. Lines are `name v1.2.3 …`.
fn reachable(room: &Room, tree: &str) -> Vec<String> {
    let there = |name: &&&str| {
        tree.lines()
            .any(|line| line.split(' ').next() == Some(**name))
    };
    room.never
        .iter()
        .filter(there)
        .map(|name| format!("{}: must never see {name}", room.name))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ROOMS, direct, reachable};

    fn check(dependency: &serde_json::Value, expect: &[&str]) {
        let package = json!({ "name": "atc-access", "dependencies": [dependency] });
        assert_eq!(
            direct(&package, &["atc-api", "atc-access", "atc-release"]),
            expect,
            "{dependency}"
        );
    }

    #[test]
    fn direct_dependencies() {
        check(&json!({ "name": "atc-api", "kind": null }), &[]);
        check(&json!({ "name": "serde", "kind": null }), &[]);
        check(
            &json!({ "name": "atc-release", "kind": null }),
            &["atc-access: may not import atc-release"],
        );
        check(&json!({ "name": "atc-release", "kind": "dev" }), &[]);
        check(
            &json!({ "name": "axum", "kind": "build" }),
            &["atc-access: axum belongs to atc-controller"],
        );
        check(
            &json!({ "name": "kube", "kind": null, "features": ["derive"], "uses_default_features": true }),
            &["atc-access: kube's default features bring a second TLS library"],
        );
        let stranger = json!({ "name": "new-crate", "dependencies": [] });
        assert_eq!(direct(&stranger, &[]).len(), 1);
    }

    #[test]
    fn trees() {
        let room = ROOMS.iter().find(|room| room.name == "atc-access").unwrap();
        assert!(
            reachable(
                room,
                "atc-access v0.1.0 (/x)\nkube-core v5.0.0\ntokio-util v1.0.0"
            )
            .is_empty()
        );
        assert_eq!(
            reachable(room, "atc-access v0.1.0\ntokio v1.0.0 (*)"),
            ["atc-access: must never see tokio"]
        );
    }
}
