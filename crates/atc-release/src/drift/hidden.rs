//! What Secrets hold, out of diffs: keys stay, values are replaced by whether they are the same.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// In the place of a value.
pub const HIDDEN: &str = "(hidden)";
/// In the place of the second of two values that are not the same. No hash: short secrets could be guessed from it.
pub const HIDDEN_DIFFERS: &str = "(hidden, differs)";

/// Fields of a Secret that hold content.
const CONTENT: [&str; 2] = ["data", "stringData"];
/// An annotation in which kubectl keeps the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Hides what two states of one object hold if either is a Secret. A state that is absent is null.
pub fn hide(one: &mut Value, two: &mut Value) {
    if !is_secret(one) && !is_secret(two) {
        return;
    }
    for field in CONTENT {
        hide_values(one.get_mut(field), two.get_mut(field));
    }
    let annotation = format!("/metadata/annotations/{}", LAST_APPLIED.replace('/', "~1"));
    replace(one.pointer_mut(&annotation), two.pointer_mut(&annotation));
}

/// The same for maps from names to objects.
pub fn hide_all(one: &mut Value, two: &mut Value) {
    let mut none = (Value::Null, Value::Null);
    for name in keys(one, two) {
        let one = one.get_mut(&name).unwrap_or(&mut none.0);
        let two = two.get_mut(&name).unwrap_or(&mut none.1);
        hide(one, two);
    }
}

/// Whether it is a Secret of the core group.
pub(super) fn is_secret(object: &Value) -> bool {
    object["apiVersion"] == "v1" && object["kind"] == "Secret"
}

/// Each value of two maps; what is no map goes as a whole.
fn hide_values(one: Option<&mut Value>, two: Option<&mut Value>) {
    match (one, two) {
        (Some(one), None) | (None, Some(one)) => hide_values(Some(one), Some(&mut Value::Null)),
        (Some(one), Some(two)) if is_map(one) && is_map(two) => {
            for key in keys(one, two) {
                replace(one.get_mut(&key), two.get_mut(&key));
            }
        }
        (one, two) => replace(
            one.filter(|value| !value.is_null()),
            two.filter(|value| !value.is_null()),
        ),
    }
}

fn replace(one: Option<&mut Value>, two: Option<&mut Value>) {
    let differs = one.is_some() && one.as_deref() != two.as_deref();
    if let Some(one) = one {
        *one = HIDDEN.into();
    }
    if let Some(two) = two {
        *two = if differs { HIDDEN_DIFFERS } else { HIDDEN }.into();
    }
}

/// Null counts as an empty map.
fn is_map(value: &Value) -> bool {
    value.is_object() || value.is_null()
}

/// The keys of two maps, each once.
pub(super) fn keys(one: &Value, two: &Value) -> BTreeSet<String> {
    let of = |value: &Value| {
        let map = value.as_object();
        map.map(|map: &Map<String, Value>| map.keys().cloned().collect::<Vec<_>>())
    };
    [of(one), of(two)].into_iter().flatten().flatten().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "helpers of tests take what json! makes"
    )]
    fn secret(rest: Value) -> Value {
        let mut secret =
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" } });
        for (key, value) in rest.as_object().unwrap() {
            secret[key] = value.clone();
        }
        secret
    }

    #[test]
    fn values_are_hidden_and_keys_are_not() {
        let mut one = secret(
            json!({ "data": { "same": "hunter2", "other": "hunter2", "gone": "hunter2" }, "stringData": { "t": "hunter2" } }),
        );
        let mut two = secret(
            json!({ "data": { "same": "hunter2", "other": "hunter3", "new": "hunter4" }, "type": "Opaque" }),
        );
        hide(&mut one, &mut two);
        assert_eq!(
            one["data"],
            json!({ "same": HIDDEN, "other": HIDDEN, "gone": HIDDEN })
        );
        assert_eq!(one["stringData"], json!({ "t": HIDDEN }));
        assert_eq!(
            two["data"],
            json!({ "same": HIDDEN, "other": HIDDEN_DIFFERS, "new": HIDDEN })
        );
        assert_eq!(two["type"], "Opaque");
    }

    #[test]
    fn nothing_gets_through() {
        let last = |text: &str| json!({ "metadata": { "annotations": { LAST_APPLIED: text } } });
        let table = [
            (secret(json!({ "data": { "k": "hunter2" } })), Value::Null),
            (Value::Null, secret(json!({ "data": { "k": "hunter2" } }))),
            (
                secret(json!({ "data": "hunter2" })),
                secret(json!({ "data": ["hunter2"] })),
            ),
            (
                secret(json!({ "data": { "k": { "hunter2": 1 } } })),
                secret(json!({ "data": null })),
            ),
            (secret(last("hunter2")), secret(last("hunter3"))),
            (secret(last("hunter2")), secret(json!({}))),
            // Two objects of one name, only one of which is a Secret: impossible, and yet.
            (
                json!({ "kind": "X", "data": { "k": "hunter2" } }),
                secret(json!({})),
            ),
        ];
        for (one, two) in table {
            let (mut one, mut two) = (json!({ "n": one }), json!({ "n": two }));
            hide_all(&mut one, &mut two);
            let text = format!("{one}{two}");
            assert!(!text.contains("hunter"), "{text}");
        }
    }

    #[test]
    fn other_kinds_are_shown() {
        let config_map =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "k": "plain" } });
        let other = json!({ "apiVersion": "x.dev/v1", "kind": "Secret", "data": { "k": "plain" } });
        for object in [config_map, other] {
            let (mut one, mut two) = (object.clone(), Value::Null);
            hide(&mut one, &mut two);
            assert_eq!(one, object);
        }
    }
}
