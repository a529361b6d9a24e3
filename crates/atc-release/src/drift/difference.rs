//! A recorded object against the live one: what counts as drift, and both sides of it.
//!
//! Defaults of the server, another notation of the same value, and what only the server or a controller writes (status,
//! uid, …) are none. The judge of that is the server itself, by a dry run of the recorded object ([`by_server`]); where it
//! would not give one, the fields that the record names are compared one by one ([`by_fields`]).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::hidden::{is_secret, keys};
use super::{extras, quantity};

/// What is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// What the record says: fields that others have added are their own matter.
    #[default]
    Recorded,
    /// All of the object: what others have added is drift, too.
    Everything,
}

/// The two sides of an object that is not as recorded, without what only the server writes.
///
/// Its `Debug` form shows nothing: the object may be a Secret, see [`hide`](super::hide).
#[derive(Clone, PartialEq)]
pub struct Difference {
    /// As it should be.
    pub expected: Value,
    /// As it is.
    pub actual: Value,
}

impl std::fmt::Debug for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Difference").finish_non_exhaustive()
    }
}

/// Metadata that only the server writes.
const OF_SERVER: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// What differs between what the server says an apply of the record would give, and what there is.
///
/// `manager` is the field manager of our applies. None if nothing in scope differs.
pub fn by_server(
    recorded: &Value,
    mut applied: Value,
    mut live: Value,
    manager: &str,
    scope: Scope,
) -> Option<Difference> {
    let recorded = folded(recorded);
    if scope == Scope::Everything {
        let entries = live.pointer_mut("/metadata/managedFields");
        let entries = entries.map(Value::take).unwrap_or_default();
        extras::remove(&mut applied, &entries, manager, &recorded);
    }
    strip(&mut applied);
    strip(&mut live);
    settled(&recorded, applied, live, scope, false)
}

/// What differs between the record and what there is, field by field: without the server's help.
pub fn by_fields(recorded: &Value, mut live: Value, scope: Scope) -> Option<Difference> {
    let mut expected = folded(recorded);
    strip(&mut expected);
    strip(&mut live);
    let recorded = expected.clone();
    align(&mut expected, Some(&live), false);
    settled(&recorded, expected, live, scope, true)
}

fn settled(
    recorded: &Value,
    mut expected: Value,
    mut actual: Value,
    scope: Scope,
    in_order: bool,
) -> Option<Difference> {
    if scope == Scope::Recorded {
        restrict(recorded, &mut expected, &mut actual, in_order);
    }
    (expected != actual).then_some(Difference { expected, actual })
}

/// An object without status and the server's metadata.
fn strip(object: &mut Value) {
    drop_key(object, "status");
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !OF_SERVER.contains(&field.as_str()));
    }
}

/// A Secret as the server keeps it: what it was given as `stringData` is `data`.
fn folded(object: &Value) -> Value {
    let mut object = object.clone();
    if !is_secret(&object) {
        return object;
    }
    let Some(Value::Object(texts)) = object
        .as_object_mut()
        .and_then(|fields| fields.shift_remove("stringData"))
    else {
        return object;
    };
    if !object["data"].is_object() {
        object["data"] = Value::Object(Map::new());
    }
    for (key, text) in texts {
        object["data"][&key] = STANDARD.encode(text.as_str().unwrap_or_default()).into();
    }
    object
}

/// Drops from both sides what the record does not name. Items of lists are told apart by their names where all have one.
/// Other lists that differ stay whole, unless the expected items stand in the order of the record (`in_order`): the
/// server may have put them into another.
fn restrict(recorded: &Value, expected: &mut Value, actual: &mut Value, in_order: bool) {
    if recorded.is_object() && expected.is_object() && actual.is_object() {
        for key in keys(expected, actual) {
            if let Some(inner) = recorded.get(&key) {
                let (expected, actual) = (expected.get_mut(&key), actual.get_mut(&key));
                restrict_pair(inner, expected, actual, in_order);
            } else {
                drop_key(expected, &key);
                drop_key(actual, &key);
            }
        }
    } else if let Some(names) = [recorded, &*expected, &*actual]
        .into_iter()
        .map(names)
        .collect::<Option<Vec<_>>>()
    {
        let wanted = names.into_iter().next().unwrap_or_default();
        for name in &wanted {
            if let Some(inner) = named(recorded, name) {
                restrict_pair(
                    inner,
                    named_mut(expected, name),
                    named_mut(actual, name),
                    in_order,
                );
            }
        }
        for side in [expected, actual] {
            if let Some(items) = side.as_array_mut() {
                items.retain(|item| wanted.iter().any(|name| item["name"] == **name));
            }
        }
    } else if (in_order || expected == actual)
        && let (Value::Array(recorded), Value::Array(expected), Value::Array(actual)) =
            (recorded, expected, actual)
        && recorded.len() == expected.len()
        && recorded.len() == actual.len()
    {
        for ((recorded, expected), actual) in recorded.iter().zip(expected).zip(actual) {
            restrict(recorded, expected, actual, in_order);
        }
    }
}

/// The same for a field that a side may lack.
fn restrict_pair(
    recorded: &Value,
    expected: Option<&mut Value>,
    actual: Option<&mut Value>,
    in_order: bool,
) {
    match (expected, actual) {
        (Some(expected), Some(actual)) => restrict(recorded, expected, actual, in_order),
        (Some(only), None) | (None, Some(only)) => {
            let mut same = only.clone();
            restrict(recorded, only, &mut same, in_order);
        }
        (None, None) => {}
    }
}

fn drop_key(value: &mut Value, key: &str) {
    if let Some(fields) = value.as_object_mut() {
        fields.shift_remove(key);
    }
}

/// The names of a list's items, if each has one of its own.
fn names(list: &Value) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for item in list.as_array()? {
        let name = item.as_object()?.get("name")?.as_str()?;
        if names.iter().any(|other| other == name) {
            return None;
        }
        names.push(name.to_owned());
    }
    Some(names)
}

fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|item| item["name"] == *name)
}

fn named_mut<'a>(list: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    list.as_array_mut()?
        .iter_mut()
        .find(|item| item["name"] == *name)
}

/// Maps whose values are quantities.
const OF_QUANTITIES: [&str; 10] = [
    "capacity",
    "default",
    "defaultRequest",
    "hard",
    "limits",
    "max",
    "min",
    "overhead",
    "podFixed",
    "requests",
];

/// Writes into `expected` the live notation of values that mean the same, and drops empty ones that the server drops.
/// `quantities` says whether the values of this map are such.
fn align(expected: &mut Value, live: Option<&Value>, quantities: bool) {
    let Some(live) = live else { return };
    if let (Value::Object(fields), Value::Object(there)) = (&mut *expected, live) {
        fields.retain(|key, value| there.contains_key(key) || !is_empty(value));
        for (key, value) in fields {
            let quantities = if value.is_object() {
                OF_QUANTITIES.contains(&key.as_str())
            } else {
                quantities
            };
            align(value, there.get(key), quantities);
        }
    } else if let (Value::Array(items), Value::Array(there)) = (&mut *expected, live) {
        let has_names = names(live).is_some();
        for (index, item) in items.iter_mut().enumerate() {
            let name = item["name"].as_str().filter(|_| has_names);
            let live = match name {
                Some(name) => there.iter().find(|other| other["name"] == *name),
                None => there.get(index),
            };
            align(item, live, false);
        }
    } else if means(expected, live, quantities) || is_empty(expected) && is_empty(live) {
        *expected = live.clone();
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Number(_) => false,
    }
}

/// Whether two scalars mean the same.
fn means(one: &Value, two: &Value, quantities: bool) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => one.as_f64() == two.as_f64(),
        (Value::String(_) | Value::Number(_), Value::String(_) | Value::Number(_)) => {
            let text = |value: &Value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            quantities && quantity::same(&text(one), &text(two))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
