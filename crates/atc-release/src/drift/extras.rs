//! What others have added to an object, by the server's own account of who set which field.

use serde_json::{Map, Value};

/// Takes out of `object` the fields that field managers other than our applies own, as `entries` (`managedFields`) have it,
/// and that the record does not name. What nobody owns, the server's defaults, stays.
pub(super) fn remove(object: &mut Value, entries: &Value, manager: &str, recorded: &Value) {
    for entry in entries.as_array().into_iter().flatten() {
        let ours = entry["manager"] == *manager && entry["operation"] == "Apply";
        if !ours {
            remove_owned(object, &entry["fieldsV1"], Some(recorded));
        }
    }
}

/// `owned` is a set of fields as `fieldsV1` has it: `f:<key>` of a map, `k:<keys as JSON>` of a list of maps,
/// `v:<value as JSON>` of a set; below each stands what of it is owned, nothing for all of it.
fn remove_owned(object: &mut Value, owned: &Value, recorded: Option<&Value>) {
    for (path, below) in owned.as_object().into_iter().flatten() {
        match path.split_once(':') {
            Some(("f", key)) => remove_field(object, key, below, recorded),
            Some(("k", keys)) => remove_item(object, keys, below, recorded),
            Some(("v", value)) => remove_value(object, value, recorded),
            _ => {}
        }
    }
}

fn remove_field(object: &mut Value, key: &str, below: &Value, recorded: Option<&Value>) {
    let known = recorded.and_then(|recorded| recorded.get(key));
    let Some(field) = object.get_mut(key) else {
        return;
    };
    let whole = below.as_object().is_none_or(Map::is_empty);
    if !whole {
        remove_owned(field, below, known);
    }
    let goes = known.is_none() && (whole || is_bare(field));
    if let Some(fields) = object.as_object_mut().filter(|_| goes) {
        fields.shift_remove(key);
    }
}

fn remove_item(list: &mut Value, keys: &str, below: &Value, recorded: Option<&Value>) {
    let (Ok(Value::Object(keys)), Some(items)) = (serde_json::from_str(keys), list.as_array_mut())
    else {
        return;
    };
    let is_it = |item: &Value| keys.iter().all(|(key, value)| item[key] == *value);
    // The record need not name keys that have a default.
    let may_be = |item: &&Value| {
        let fits = |(key, value)| item.get(key).is_none_or(|there| there == value);
        keys.iter().all(fits)
    };
    let known = recorded
        .and_then(Value::as_array)
        .and_then(|items| items.iter().find(may_be));
    if known.is_none() && below.get(".").is_some() {
        items.retain(|item| !is_it(item));
    } else if let Some(item) = items.iter_mut().find(|item| is_it(item)) {
        remove_owned(item, below, known);
        for (key, value) in &keys {
            item[key] = value.clone();
        }
    }
}

fn remove_value(list: &mut Value, value: &str, recorded: Option<&Value>) {
    let Ok(value) = serde_json::from_str::<Value>(value) else {
        return;
    };
    let known = recorded
        .and_then(Value::as_array)
        .is_some_and(|items| items.contains(&value));
    if let Some(items) = list.as_array_mut().filter(|_| !known) {
        items.retain(|item| *item != value);
    }
}

fn is_bare(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "helpers of tests take what json! makes"
    )]
    fn check(object: Value, others: Value, recorded: Value, wanted: Value) {
        let entries = json!([
            { "manager": "yoke", "operation": "Apply", "fieldsV1": { "f:spec": { "f:ours": {} } } },
            { "manager": "other", "operation": "Update", "fieldsV1": others },
        ]);
        let mut left = object;
        remove(&mut left, &entries, "yoke", &recorded);
        assert_eq!(left, wanted, "{others} {recorded}");
    }

    #[test]
    fn what_others_own_goes() {
        check(
            json!({ "data": { "k": "v", "extra": "y" } }),
            json!({ "f:data": { ".": {}, "f:extra": {}, "f:k": {} } }),
            json!({ "data": { "k": "v" } }),
            json!({ "data": { "k": "v" } }),
        );
        // A map that is only theirs goes with its last field; a default beside it stays.
        check(
            json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "ours": 1, "default": 2, "theirs": 3 } }),
            json!({ "f:metadata": { "f:labels": { "f:a": {} } }, "f:spec": { "f:theirs": {} } }),
            json!({ "metadata": {}, "spec": { "ours": 1 } }),
            json!({ "metadata": {}, "spec": { "ours": 1, "default": 2 } }),
        );
        // Our own entry, and a field of theirs that is not there, are no matter.
        check(
            json!({ "spec": { "ours": 1 } }),
            json!({ "f:x": { "f:y": {} } }),
            json!({}),
            json!({ "spec": { "ours": 1 } }),
        );
    }

    #[test]
    fn items_of_lists() {
        let containers = |items: Value| json!({ "containers": items });
        check(
            containers(json!([{ "name": "a", "image": "i" }, { "name": "sidecar", "image": "s" }])),
            json!({ "f:containers": { "k:{\"name\":\"sidecar\"}": { ".": {}, "f:name": {}, "f:image": {} } } }),
            containers(json!([{ "name": "a", "image": "i" }])),
            containers(json!([{ "name": "a", "image": "i" }])),
        );
        // A field within an item of ours, whose keys the record does not spell out.
        check(
            json!({ "ports": [{ "port": 80, "protocol": "TCP", "nodePort": 1 }] }),
            json!({ "f:ports": { "k:{\"port\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:nodePort": {}, "f:protocol": {} } } }),
            json!({ "ports": [{ "port": 80 }] }),
            json!({ "ports": [{ "port": 80, "protocol": "TCP" }] }),
        );
        check(
            json!({ "finalizers": ["ours", "theirs"] }),
            json!({ "f:finalizers": { ".": {}, "v:\"theirs\"": {}, "v:\"ours\"": {} } }),
            json!({ "finalizers": ["ours"] }),
            json!({ "finalizers": ["ours"] }),
        );
    }

    #[test]
    fn nonsense_is_passed_over() {
        for others in [
            json!(null),
            json!([1]),
            json!({ "x": {}, "k:{": {}, "v:{": {}, "f:data": 7, "k:1": {}, "i:0": {} }),
        ] {
            check(
                json!({ "data": { "k": 1 } }),
                others,
                json!({ "data": {} }),
                json!({ "data": { "k": 1 } }),
            );
        }
    }
}
