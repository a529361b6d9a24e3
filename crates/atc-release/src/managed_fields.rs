//! Who set which fields of a live object (`metadata.managedFields`), and how fields of others become ours without a change
//! of the object: what we own and do not apply, the next apply removes.
//!
//! The form is Kubernetes' FieldsV1: a tree of `f:name` for fields, `k:{"key":value}` for the entries of a list that has
//! keys, `v:value` for those of a set, and `.` where a field with children is set itself.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

mod same;

pub use same::is_same;

/// Managers whose fields were set by client-side apply, or before there was any server-side apply. They never take
/// anything back, so what they own would stay for ever.
const CLIENT_SIDE: [&str; 2] = ["kubectl-client-side-apply", "before-first-apply"];

/// The managed fields with those of client-side apply among ours; `None` where there are none.
///
/// As kubectl does when it moves an object from one apply to the other: of several entries of the same manager the one of
/// our API version counts, and all go.
pub fn adopted(managed: &Value, us: &str) -> Option<Value> {
    let entries = managed.as_array()?;
    let is_client_side = |entry: &Value| {
        is_update(entry) && CLIENT_SIDE.iter().any(|name| entry["manager"] == *name)
    };
    let ours = entries.iter().find(|entry| is_ours(entry, us))?;
    if !entries.iter().any(is_client_side) {
        return None;
    }
    let mut fields = ours["fieldsV1"].clone();
    for theirs in entries.iter().filter(|entry| is_client_side(entry)) {
        if theirs["apiVersion"] == ours["apiVersion"] {
            unite(&mut fields, &theirs["fieldsV1"]);
        }
    }
    let kept = entries.iter().filter(|entry| !is_client_side(entry));
    Some(kept.map(|entry| with(entry, us, &fields)).collect())
}

/// The managed fields with those list entries among ours that others have put in the place of ours; `None` where there are
/// none.
///
/// That is so in a list of which an entry that we want is gone, by its keys: somebody has given it other keys, and wanted
/// beside it the two may not even be allowed together. Then all entries of that list that somebody updated into it and that
/// we do not want are taken. Entries of others who apply are left alone. With `recorded`, the object as we applied it
/// before, only an entry counts as gone that was in it.
pub fn reclaimed(
    managed: &Value,
    us: &str,
    desired: &Value,
    recorded: Option<&Value>,
) -> Option<Value> {
    let entries = managed.as_array()?;
    let ours = entries.iter().find(|entry| is_ours(entry, us))?;
    let mut all = Value::Null;
    for entry in entries {
        unite(&mut all, &entry["fieldsV1"]);
    }
    let mut replaced = Vec::new();
    find_replaced(&all, desired, recorded, &mut Vec::new(), &mut replaced);
    let mut fields = ours["fieldsV1"].clone();
    let before = fields.clone();
    let mut rest = Vec::new();
    for entry in entries {
        let mut entry = entry.clone();
        if is_update(&entry) && entry["apiVersion"] == ours["apiVersion"] {
            for path in &replaced {
                let Some(taken) = take(&mut entry["fieldsV1"], path) else {
                    continue;
                };
                unite(&mut fields, &placed(path, taken));
            }
        }
        let is_empty = entry["fieldsV1"].as_object().is_some_and(Map::is_empty);
        if !is_empty {
            rest.push(entry);
        }
    }
    (fields != before).then(|| rest.iter().map(|entry| with(entry, us, &fields)).collect())
}

/// Whether an object has lists in whose entries [`reclaimed`] could find anything.
pub fn has_entries(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(Value::is_object) || items.iter().any(has_entries),
        Value::Object(fields) => fields.values().any(has_entries),
        _ => false,
    }
}

fn is_main(entry: &Value) -> bool {
    entry["subresource"].as_str().is_none_or(str::is_empty)
}

fn is_update(entry: &Value) -> bool {
    entry["operation"] == "Update" && is_main(entry)
}

fn is_ours(entry: &Value, us: &str) -> bool {
    entry["operation"] == "Apply" && entry["manager"] == us && is_main(entry)
}

/// The entry, with these fields if it is ours.
fn with(entry: &Value, us: &str, fields: &Value) -> Value {
    let mut entry = entry.clone();
    if is_ours(&entry, us) {
        entry["fieldsV1"] = fields.clone();
    }
    entry
}

/// Adds one tree of fields to another.
fn unite(to: &mut Value, from: &Value) {
    let Value::Object(from) = from else {
        return;
    };
    if !to.is_object() {
        *to = Value::Object(Map::new());
    }
    for (key, from) in from {
        // A field that was a leaf and has children now is still set itself.
        let to = &mut to[key.as_str()];
        let was_leaf = to.as_object().is_some_and(Map::is_empty);
        let is_leaf = from.as_object().is_some_and(Map::is_empty);
        let had_children = to.as_object().is_some_and(|to| !to.is_empty());
        unite(to, from);
        if key != "." && (was_leaf && !is_leaf || is_leaf && had_children) {
            to["."] = Value::Object(Map::new());
        }
    }
}

/// Finds the entries, by their paths, that stand where entries of `desired` should.
fn find_replaced(
    fields: &Value,
    desired: &Value,
    recorded: Option<&Value>,
    path: &mut Vec<String>,
    replaced: &mut Vec<Vec<String>>,
) {
    let Value::Object(fields) = fields else {
        return;
    };
    if let Value::Array(items) = desired {
        let keys: Vec<(&String, Value)> = fields.keys().filter_map(parse_key).collect();
        let former = recorded.map(|recorded| recorded.as_array().map_or(&[][..], Vec::as_slice));
        let unwanted = |key: &Value| !items.iter().any(|item| matches(key, item));
        let is_lost = |item: &&Value| {
            let was_ours = |key: &Value| {
                former.is_none_or(|former| former.iter().any(|one| same_by(key, one, item)))
            };
            !keys.iter().any(|(_, key)| matches(key, item))
                && keys.iter().any(|(_, key)| was_ours(key))
        };
        if items.iter().any(|item| is_lost(&item)) {
            for (text, _) in keys.iter().filter(|(_, key)| unwanted(key)) {
                let mut path = path.clone();
                path.push((*text).clone());
                replaced.push(path);
            }
        }
        for (text, key) in &keys {
            let find = |list: &[Value]| list.iter().position(|item| matches(key, item));
            if let Some(index) = find(items) {
                let former = former.map(|list| find(list).map_or(&Value::Null, |at| &list[at]));
                path.push((*text).clone());
                find_replaced(&fields[*text], &items[index], former, path, replaced);
                path.pop();
            }
        }
        return;
    }
    for (key, below) in fields {
        let Some(name) = key.strip_prefix("f:") else {
            continue;
        };
        if let Some(desired) = desired.get(name) {
            path.push(key.clone());
            let recorded = recorded.map(|recorded| &recorded[name]);
            find_replaced(below, desired, recorded, path, replaced);
            path.pop();
        }
    }
}

/// `k:{…}`, with the keys in it.
fn parse_key(text: &String) -> Option<(&String, Value)> {
    let key: Value = serde_json::from_str(text.strip_prefix("k:")?).ok()?;
    key.is_object().then_some((text, key))
}

/// Whether an entry has these keys. One that it does not say has its default, which may be any.
fn matches(key: &Value, item: &Value) -> bool {
    let keys = key.as_object().into_iter().flatten();
    let mut said = 0;
    for (name, value) in keys {
        match item.get(name) {
            Some(has) if has == value => said += 1,
            Some(_) => return false,
            None => {}
        }
    }
    said > 0
}

/// Whether two entries have the same values for the keys of a list.
fn same_by(key: &Value, one: &Value, two: &Value) -> bool {
    let names: BTreeSet<&String> = key
        .as_object()
        .map(|key| key.keys().collect())
        .unwrap_or_default();
    names.into_iter().all(|name| one.get(name) == two.get(name))
}

/// Takes what is at a path out of a tree, and what is empty then; but for the whole tree.
fn take(fields: &mut Value, path: &[String]) -> Option<Value> {
    let (first, rest) = path.split_first()?;
    let fields = fields.as_object_mut()?;
    if rest.is_empty() {
        return fields.shift_remove(first);
    }
    let below = fields.get_mut(first)?;
    let taken = take(below, rest)?;
    if below.as_object().is_some_and(Map::is_empty) {
        fields.shift_remove(first);
    }
    Some(taken)
}

/// A tree with this at its path.
fn placed(path: &[String], fields: Value) -> Value {
    path.iter().rev().fold(fields, |below, key| {
        let mut tree = Map::new();
        tree.insert(key.clone(), below);
        Value::Object(tree)
    })
}

#[cfg(test)]
mod tests;
