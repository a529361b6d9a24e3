//! Tables: what objects look like as text, and what differs.

use serde_json::json;

use super::*;

fn object(value: Value) -> Object {
    Object::try_from(value).unwrap()
}

fn config_map(name: &str, k: &str) -> Object {
    object(
        json!({ "kind": "ConfigMap", "metadata": { "name": name, "namespace": "ns" }, "data": { "k": k }, "apiVersion": "v1" }),
    )
}

fn stages(objects: &[Object]) -> Stages {
    Stages::new(vec![objects.to_vec()])
}

#[test]
fn diff_of_one_value() {
    let options = DiffOptions {
        context: 2,
        ..DiffOptions::default()
    };
    let got = diff(
        &stages(&[config_map("a", "1")]),
        &stages(&[config_map("a", "2")]),
        &options,
    )
    .unwrap();
    let want = "\
--- current
+++ next
@@ -2,5 +2,5 @@
   apiVersion: v1
   data:
-    k: \"1\"
+    k: \"2\"
   kind: ConfigMap
   metadata:
";
    assert_eq!(got, want);
    let coloured = diff(
        &stages(&[config_map("a", "1")]),
        &stages(&[config_map("a", "2")]),
        &DiffOptions {
            colour: true,
            ..options
        },
    )
    .unwrap();
    assert!(
        coloured.contains("\x1b[32m-    k: \"1\"\x1b[0m\n\x1b[31m+    k: \"2\"\x1b[0m\n"),
        "{coloured}"
    );
    assert!(coloured.starts_with("--- current\n+++ next\n"));
}

#[test]
fn no_difference_is_no_text() {
    let one = object(
        json!({ "apiVersion": "v1", "kind": "X", "metadata": { "name": "a" }, "b": 1, "a": [{ "d": 1, "c": 2 }] }),
    );
    let two = object(
        json!({ "a": [{ "c": 2, "d": 1 }], "b": 1, "metadata": { "name": "a" }, "kind": "X", "apiVersion": "v1" }),
    );
    assert_eq!(
        diff(&stages(&[one]), &stages(&[two]), &DiffOptions::default()).unwrap(),
        ""
    );
    assert_eq!(
        diff(
            &Stages::default(),
            &Stages::default(),
            &DiffOptions::default()
        )
        .unwrap(),
        ""
    );
}

#[test]
fn all_new_and_all_gone() {
    let some = stages(&[config_map("b", "1")]);
    let new = diff(&Stages::default(), &some, &DiffOptions::default()).unwrap();
    assert!(
        new.contains("+ns/core/v1/configmap/b:\n") && !new.contains("\n-"),
        "{new}"
    );
    let gone = diff(&some, &Stages::default(), &DiffOptions::default()).unwrap();
    assert!(
        gone.contains("-ns/core/v1/configmap/b:\n") && !gone.contains("\n+n"),
        "{gone}"
    );
}

#[test]
fn secrets_are_hidden_in_diffs() {
    let secret = |value: &str| {
        object(
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" }, "data": { "k": value, "same": "aHVudGVy" } }),
        )
    };
    let text = diff(
        &stages(&[secret("b25l")]),
        &stages(&[secret("dHdv")]),
        &DiffOptions::default(),
    )
    .unwrap();
    assert!(
        text.contains("-    k: (hidden)\n+    k: (hidden, differs)\n     same: (hidden)\n"),
        "{text}"
    );
    for value in ["b25l", "dHdv", "aHVudGVy"] {
        assert!(!text.contains(value), "{text}");
    }
    let same = stages(&[secret("b25l")]);
    assert_eq!(diff(&same, &same, &DiffOptions::default()).unwrap(), "");
}

#[test]
fn texts_that_need_quotes_or_blocks() {
    let value = sorted(json!({
        "block": "---\na: 1\n", "list": [{ "b": 1, "a": "yes" }, []], "empty": {}, "no": null, "big": 9_123_456_789_012_345_678_u64,
        "float": 0.1, "text": "1", "word": "word", "bool": "true", "time": "2001-01-01", "escape": "\u{1b}[0m",
    }));
    let text = yaml(&value).unwrap();
    assert!(!text.contains('\u{1b}'));
    let back: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(back, value, "{text}");
    println!("{text}");
}

#[test]
fn nested_by_parts() {
    let deployment = object(
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" } }),
    );
    let config_map = config_map("a", "1");
    let got = nested([&deployment, &config_map]);
    assert_eq!(
        got,
        json!({
            "_": { "apps": { "v1": { "deployment": { "d": deployment.value() } } } },
            "ns": { "core": { "v1": { "configmap": { "a": config_map.value() } } } },
        })
    );
}
