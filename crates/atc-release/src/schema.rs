//! Objects whose kind comes with the same output, judged by the schema that comes with it.
//!
//! The API server cannot dry-run an object of a kind that it does not serve yet. The definition is there, though: a
//! structural OpenAPI v3 schema, which this file holds the object against in the way the server will: defaults filled in,
//! then declared fields, types, enums, bounds, patterns and required fields
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>).
//! Rules in CEL and formats are not run; [`Judgement::unchecked`] says so.

use std::collections::HashMap;

use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use crate::object::Object;

mod convert;
mod fill;

/// Most faults that are named of one object.
const MAX_FAULTS: usize = 8;
/// Longest text of one, in characters: an enum may have any number of values.
const MAX_WORDS: usize = 300;

/// The kinds that an output defines.
#[derive(Debug, Default)]
pub struct Definitions<'a> {
    /// By group and kind.
    by_kind: HashMap<(&'a str, &'a str), &'a Object>,
}

/// What a definition says of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// What is wrong, each with the path of its field. Values are not repeated.
    pub faults: Vec<String>,
    /// What was not looked at, in words; empty when nothing was left out.
    pub unchecked: Vec<&'static str>,
}

impl<'a> Definitions<'a> {
    /// Those among the objects of an output.
    pub fn of(objects: impl IntoIterator<Item = &'a Object>) -> Self {
        let mut by_kind = HashMap::new();
        for object in objects {
            if !(object.is_foundation() && object.kind() == "CustomResourceDefinition") {
                continue;
            }
            let text = |path| object.value().pointer(path).and_then(Value::as_str);
            if let (Some(group), Some(kind)) = (text("/spec/group"), text("/spec/names/kind")) {
                by_kind.insert((group, kind), object);
            }
        }
        Self { by_kind }
    }

    /// The definition of an object's kind, if it is here.
    pub fn definition(&self, object: &Object) -> Option<&'a Object> {
        let kind = (object.group(), object.kind());
        self.by_kind.get(&kind).copied()
    }

    /// Holds an object against its definition; `None` if it has none here.
    pub fn judge(&self, object: &Object) -> Option<Judgement> {
        let definition = self.definition(object)?;
        let versions = definition.value()["spec"]["versions"].as_array();
        let versions = versions.map(Vec::as_slice).unwrap_or_default();
        let served = |version: &&Value| version["served"] == true;
        let name = |version: &'a Value| version["name"].as_str().unwrap_or_default();
        let wanted = object.version();
        let Some(version) = versions
            .iter()
            .filter(served)
            .find(|version| name(version) == wanted)
        else {
            let names: Vec<&str> = versions.iter().filter(served).map(name).collect();
            return Some(Judgement::wrong(format!(
                "apiVersion: {} serves {} only",
                definition.name(),
                if names.is_empty() {
                    "no version".to_owned()
                } else {
                    names.join(", ")
                }
            )));
        };
        Some(check(&version["schema"]["openAPIV3Schema"], object.value()))
    }
}

impl Judgement {
    fn wrong(fault: String) -> Self {
        Self {
            faults: vec![fault],
            ..Self::default()
        }
    }
}

/// Holds a whole object against a structural schema.
fn check(schema: &Value, object: &Value) -> Judgement {
    let converted = convert::convert(schema);
    let mut judgement = Judgement {
        faults: Vec::new(),
        unchecked: converted.unchecked(),
    };
    let options = jsonschema::options()
        .with_draft(jsonschema::Draft::Draft4)
        .with_pattern_options(jsonschema::PatternOptions::regex());
    // A schema that is none is refused by the API server, with better words, when its definition is dry-run.
    let Ok(validator) = options.build(&converted.schema) else {
        return judgement;
    };
    let mut object = object.clone();
    fill::fill(schema, &mut object);
    judgement.faults = validator
        .iter_errors(&object)
        .take(MAX_FAULTS)
        .map(|error| {
            let path = field(&error.instance_path().to_string());
            format!("{path}: {}", words(&error))
        })
        .collect();
    judgement
}

/// What is wrong, without the value.
fn words(error: &jsonschema::ValidationError<'_>) -> String {
    if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() {
        let names: Vec<&str> = unexpected
            .iter()
            .take(MAX_FAULTS)
            .map(String::as_str)
            .collect();
        return format!("its schema does not declare {}", names.join(", "));
    }
    let words = error.masked_with("its value").to_string();
    match words.char_indices().nth(MAX_WORDS) {
        Some((end, _)) => format!("{}…", words.get(..end).unwrap_or_default()),
        None => words,
    }
}

/// `/spec/ports/0/name` → `spec.ports[0].name`.
fn field(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push('[');
            path.push_str(&part);
            path.push(']');
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&part);
        }
    }
    if path.is_empty() {
        "the object".to_owned()
    } else {
        path
    }
}

#[cfg(test)]
mod tests;
