//! `-out`.

use crate::{Home, configmap};

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d\n  namespace: team\nspec:\n  replicas: 0\n";

#[test]
fn a_file_each() {
    let home = Home::bare();
    home.put("o/r/stale", "");
    let both = format!("{}---\n{DEPLOYMENT}", configmap("a"));
    let ran = home.yoke_with(&["takeoff", "-out", "o", "r"], &both);
    assert_eq!(ran.ok(), "");
    let read = |path: &str| std::fs::read_to_string(home.path().join(path)).expect(path);
    // Keys are in order, whatever the flight's.
    let sorted = "apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\nmetadata:\n  name: a\n";
    assert_eq!(read("o/r/_/core/v1/configmap/a.yaml"), sorted);
    assert_eq!(read("o/r/team/apps/v1/deployment/d.yaml"), DEPLOYMENT);
    assert!(!home.path().join("o/r/stale").exists());
    assert_eq!(
        std::fs::read_dir(home.path().join("o"))
            .expect("list")
            .count(),
        1
    );
}

#[test]
fn one_map() {
    let home = Home::bare();
    let ran = home.yoke_with(
        &["takeoff", "-out", "-", "r"],
        format!("{}---\n{DEPLOYMENT}", configmap("a")),
    );
    let text = ran.ok();
    assert!(
        text.starts_with(
            "_:\n  core:\n    v1:\n      configmap:\n        a:\n          apiVersion: v1\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("\nteam:\n  apps:\n    v1:\n      deployment:\n        d:\n"),
        "{text}"
    );
}

#[test]
fn nothing_outside_the_folder() {
    let home = Home::bare();
    for release in ["..", "../x", "/tmp/x", "a/b", "."] {
        home.yoke_with(&["takeoff", "-out", "o", release], configmap("a"))
            .failed(1, &[release]);
    }
    for name in ["../../../../../x", "a/b", "..", "/x"] {
        home.yoke_with(&["takeoff", "-out", "o", "r"], configmap(name))
            .failed(1, &["metadata.name"]);
    }
    assert!(!home.path().join("x").exists() && !home.path().join("x.yaml").exists());
}

#[test]
fn all_or_nothing() {
    let home = Home::bare();
    home.put("o/r/before", "");
    let broken = format!("{}---\nkind: ConfigMap\n", configmap("a"));
    home.yoke_with(&["takeoff", "-out", "o", "r"], &broken)
        .failed(1, &["document 2"]);
    let capital = |name: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {name}\n"
        )
    };
    home.yoke_with(
        &["takeoff", "-out", "o", "r"],
        format!("{}---\n{}", capital("a"), capital("A")),
    )
    .failed(1, &["same canonical name"]);
    assert!(home.path().join("o/r/before").exists());
    assert_eq!(
        std::fs::read_dir(home.path().join("o"))
            .expect("list")
            .count(),
        1
    );
}
