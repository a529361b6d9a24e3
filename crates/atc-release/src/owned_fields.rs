//! Which of the fields that a manager applied to an object a write would change.
//!
//! What the API server completes, what controllers set and what other managers own is not the manager's: `managedFields`
//! tells the difference. They are read of the object as it is stored; a write that takes them off the manager without a
//! change of a value is one as well, or nothing would be the manager's for the next.

use serde_json::Value;

/// Paths of changed fields that are told.
const MAX_PATHS: usize = 10;

/// What is told where a write leaves all values and takes fields off the manager.
const MANAGED: &str = ".metadata.managedFields";

/// Paths of the fields that `manager` applied to `old` and that differ in `new`: at most 10, in the order of the fields.
/// Where none differs and `new` says that one is the manager's no more: `.metadata.managedFields`. Both are whole objects.
/// Values never stand in the paths, but for the keys of list entries.
pub fn changed(old: &Value, new: &Value, manager: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for entry in applied(old, manager) {
        compare(
            &entry["fieldsV1"],
            Some(old),
            Some(new),
            &mut String::new(),
            &mut paths,
        );
    }
    paths.truncate(MAX_PATHS);
    let is_kept = |old: &Value| {
        applied(new, manager).any(|new| {
            new["apiVersion"] == old["apiVersion"] && holds(&new["fieldsV1"], &old["fieldsV1"])
        })
    };
    if paths.is_empty() && !applied(old, manager).all(is_kept) {
        paths.push(MANAGED.to_owned());
    }
    paths
}

/// What a manager applied to the object itself.
fn applied<'a>(object: &'a Value, manager: &'a str) -> impl Iterator<Item = &'a Value> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().filter(move |entry| {
        entry["manager"] == manager
            && entry["operation"] == "Apply"
            && entry["subresource"].as_str().is_none_or(str::is_empty)
    })
}

/// Whether all fields of one tree are in another. A field that is held as a whole there holds what is below it.
fn holds(fields: &Value, wanted: &Value) -> bool {
    let has_parts = |fields: &Value| fields.as_object().is_some_and(|fields| !fields.is_empty());
    // `.` says that the parent was applied, too: its parts count here.
    let parts = wanted.as_object().into_iter().flatten();
    let mut parts = parts.filter(|(key, _)| *key != ".");
    parts.all(|(key, wanted)| {
        fields
            .get(key)
            .is_some_and(|held| !has_parts(held) || (has_parts(wanted) && holds(held, wanted)))
    })
}

/// Whether `manager` applied the field at this path (names of fields) of an object.
pub fn owns(object: &Value, path: &[&str], manager: &str) -> bool {
    applied(object, manager).any(|entry| {
        let below = path.iter().try_fold(&entry["fieldsV1"], |fields, name| {
            fields.get(format!("f:{name}"))
        });
        below.is_some()
    })
}

fn compare(
    fields: &Value,
    old: Option<&Value>,
    new: Option<&Value>,
    path: &mut String,
    changed: &mut Vec<String>,
) {
    if old == new || changed.len() > MAX_PATHS {
        return;
    }
    let below = fields.as_object().filter(|fields| !fields.is_empty());
    let (Some(below), Some(new)) = (below, new) else {
        // A field that is set as a whole, or one whose parent is gone.
        changed.push(path.clone());
        return;
    };
    let length = path.len();
    for (key, fields) in below {
        if let Some(name) = key.strip_prefix("f:") {
            path.push('.');
            path.push_str(name);
            compare(
                fields,
                old.and_then(|old| old.get(name)),
                new.get(name),
                path,
                changed,
            );
        } else if let Some(entry) = key.strip_prefix("k:") {
            path.push('[');
            path.push_str(entry);
            path.push(']');
            compare(
                fields,
                old.and_then(|old| by_key(old, entry)),
                by_key(new, entry),
                path,
                changed,
            );
        } else if let Some(value) = key.strip_prefix("v:") {
            path.push_str("[]");
            if has(old, value) && !has(Some(new), value) {
                changed.push(path.clone());
            }
        }
        path.truncate(length);
    }
}

/// The entry of a list with these keys (a JSON object).
fn by_key<'a>(list: &'a Value, keys: &str) -> Option<&'a Value> {
    let keys: Value = serde_json::from_str(keys).ok()?;
    let keys = keys.as_object()?;
    let mut items = list.as_array()?.iter();
    items.find(|item| {
        keys.iter()
            .all(|(name, value)| item.get(name) == Some(value))
    })
}

fn has(list: Option<&Value>, value: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(value) else {
        return false;
    };
    list.and_then(Value::as_array)
        .is_some_and(|list| list.contains(&value))
}

#[cfg(test)]
mod tests;
