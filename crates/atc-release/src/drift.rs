//! What differs: a recorded object from the live one, one release from another, and both as text.
//!
//! Text is YAML with sorted keys by canonical names, so that equal objects give equal text whatever printed them. In
//! diffs, the content of Secrets is hidden.

use std::fmt::Write;

use serde_json::{Map, Value};
use similar::TextDiff;

use crate::object::{Object, Stages, canonical_parts};

mod difference;
mod extras;
mod hidden;
mod quantity;

pub use difference::{Difference, Scope, by_fields, by_server};
pub use hidden::{HIDDEN, HIDDEN_DIFFERS, hide, hide_all};

/// Why objects can't be shown as text.
#[derive(Debug, thiserror::Error)]
#[error("the objects can't be written as YAML")]
pub struct DriftError(#[source] serde_saphyr::ser_error::Error);

/// How a diff looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffOptions<'a> {
    /// What stands behind `---`.
    pub from: &'a str,
    /// What stands behind `+++`.
    pub to: &'a str,
    /// Equal lines shown around each change.
    pub context: usize,
    /// Lines of the first text green, of the second red, by terminal escapes.
    pub colour: bool,
}

impl Default for DiffOptions<'_> {
    /// What takeoff shows: `current` and `next`, 4 lines of context, no colour.
    fn default() -> Self {
        Self {
            from: "current",
            to: "next",
            context: 4,
            colour: false,
        }
    }
}

const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// Objects by their canonical names, with sorted keys throughout.
pub fn by_canonical_name<'a>(objects: impl IntoIterator<Item = &'a Object>) -> Value {
    let map: Map<String, Value> = objects
        .into_iter()
        .map(|object| (object.canonical(), object.value().clone()))
        .collect();
    sorted(Value::Object(map))
}

/// Objects in nested maps, a level for each part of the canonical name: namespace (or `_`), group (or `core`), version,
/// kind, name.
pub fn nested<'a>(objects: impl IntoIterator<Item = &'a Object>) -> Value {
    let mut root = Value::Object(Map::new());
    for object in objects {
        let mut level = &mut root;
        for part in canonical_parts(&object.reference(), object.version()) {
            level = &mut level[part.as_str()];
        }
        *level = object.value().clone();
    }
    sorted(root)
}

/// YAML of a value, keys as they stand, with a line end at its end.
pub fn yaml(value: &Value) -> Result<String, DriftError> {
    let mut text = serde_saphyr::to_string(value).map_err(DriftError)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// The unified diff of two releases, without what their Secrets hold; empty if there is no difference.
pub fn diff(from: &Stages, to: &Stages, options: &DiffOptions<'_>) -> Result<String, DriftError> {
    let mut from = by_canonical_name(from.objects());
    let mut to = by_canonical_name(to.objects());
    hide_all(&mut from, &mut to);
    diff_values(&from, &to, options)
}

/// The unified diff of two values as YAML; empty if there is no difference. An empty map is no text at all.
pub fn diff_values(
    from: &Value,
    to: &Value,
    options: &DiffOptions<'_>,
) -> Result<String, DriftError> {
    let text = |value: &Value| {
        if value.as_object().is_some_and(Map::is_empty) {
            Ok(String::new())
        } else {
            yaml(value)
        }
    };
    let (from, to) = (text(from)?, text(to)?);
    if from == to {
        return Ok(String::new());
    }
    let diff = TextDiff::from_lines(&from, &to);
    let unified = diff
        .unified_diff()
        .context_radius(options.context)
        .header(options.from, options.to)
        .to_string();
    Ok(if options.colour {
        coloured(&unified)
    } else {
        unified
    })
}

/// Lines that only one text has, in its colour. The two header lines stay plain.
fn coloured(unified: &str) -> String {
    let mut text = String::with_capacity(unified.len() * 2);
    for (index, line) in unified.lines().enumerate() {
        let colour = match line.as_bytes().first() {
            Some(b'-') if index > 1 => GREEN,
            Some(b'+') if index > 1 => RED,
            _ => "",
        };
        // Writing to a String can't fail.
        let _ = if colour.is_empty() {
            writeln!(text, "{line}")
        } else {
            writeln!(text, "{colour}{line}{PLAIN}")
        };
    }
    text
}

/// The same value with the keys of all its maps sorted.
pub fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = map
                .into_iter()
                .map(|(key, value)| (key, sorted(value)))
                .collect();
            entries.sort_by(|one, two| one.0.cmp(&two.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(sorted).collect()),
        scalar => scalar,
    }
}

#[cfg(test)]
mod tests;
