//! Whether an apply would change nothing, told from the live object alone.
//!
//! A server-side apply sets the fields that it names, and takes out those that its manager owned and names no more. Where
//! the manager owns exactly the fields that the object names, and each has the very value, neither is anything left to set
//! nor to take out. What is not clear from that (defaults of list keys, another notation of a value, empty maps) is answered
//! by no: then the server is asked.

use serde_json::{Map, Value};

use super::is_ours;

/// What only the server writes, and what names the object: no field of these is owned.
const UNOWNED: [&str; 9] = [
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Whether it is sure that applying `desired` as the manager `us` leaves `live` as it is.
///
/// *Caveats*: what a webhook would do to it on the way is not in the object.
pub fn is_same(live: &Value, desired: &Value, us: &str) -> bool {
    let entries = live["metadata"]["managedFields"].as_array();
    let mut ours = entries
        .into_iter()
        .flatten()
        .filter(|entry| is_ours(entry, us));
    let (Some(entry), None) = (ours.next(), ours.next()) else {
        return false;
    };
    let named = |object: &Value| {
        let metadata = &object["metadata"];
        [&object["apiVersion"], &object["kind"], &metadata["name"]].map(Value::clone)
    };
    let (Some(fields), Some(wanted)) = (entry["fieldsV1"].as_object(), desired.as_object()) else {
        return false;
    };
    named(live) == named(desired)
        && live["metadata"].get("namespace") == desired["metadata"].get("namespace")
        && entry["apiVersion"] == desired["apiVersion"]
        && entry["fieldsType"] == "FieldsV1"
        && is_map_same(fields, &owned(wanted), live)
}

/// The object without what nobody owns.
fn owned(desired: &Map<String, Value>) -> Map<String, Value> {
    let mut owned = desired.clone();
    owned.retain(|key, _| key != "apiVersion" && key != "kind");
    if let Some(metadata) = owned.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !UNOWNED.contains(&key.as_str()));
        if metadata.is_empty() {
            owned.shift_remove("metadata");
        }
    }
    owned
}

/// Whether all of these fields are named, each with the value that is there, and no other is.
fn is_map_same(fields: &Map<String, Value>, wanted: &Map<String, Value>, live: &Value) -> bool {
    fields.len() == wanted.len()
        && wanted.iter().all(|(key, wanted)| {
            let (Some(fields), Some(live)) = (fields.get(&format!("f:{key}")), live.get(key))
            else {
                return false;
            };
            is_value_same(fields, wanted, live)
        })
}

fn is_value_same(fields: &Value, wanted: &Value, live: &Value) -> bool {
    let Some(fields) = fields.as_object() else {
        return false;
    };
    if fields.is_empty() {
        // A scalar, or a map or list that is owned as a whole.
        return !wanted.is_null() && wanted == live;
    }
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(_)) => is_map_same(fields, wanted, live),
        (Value::Array(wanted), Value::Array(live)) => {
            // In another order, or with entries of others, the server decides what comes first.
            fields.len() == wanted.len()
                && wanted.len() == live.len()
                && wanted
                    .iter()
                    .zip(live)
                    .all(|(wanted, live)| is_entry_same(fields, wanted, live))
        }
        _ => false,
    }
}

/// Whether an entry of a list that has keys, or is a set, is owned as it is named, and is there like that.
fn is_entry_same(fields: &Map<String, Value>, wanted: &Value, live: &Value) -> bool {
    let mut owned = fields.iter().filter_map(|(path, below)| {
        let (sort, key) = path.split_once(':')?;
        let key: Value = serde_json::from_str(key).ok()?;
        let is_this = match (sort, &key) {
            ("v", _) => &key == wanted,
            ("k", Value::Object(key)) => key
                .iter()
                .all(|(name, value)| wanted.get(name) == Some(value)),
            _ => false,
        };
        is_this.then_some((sort, below))
    });
    let (Some((sort, below)), None) = (owned.next(), owned.next()) else {
        return false;
    };
    if sort == "v" {
        return wanted == live;
    }
    let (Some(below), Some(wanted)) = (below.as_object(), wanted.as_object()) else {
        return false;
    };
    // The entry itself is owned, too.
    let mut below = below.clone();
    below.shift_remove(".").is_some() && is_map_same(&below, wanted, live)
}

#[cfg(test)]
mod tests;
