//! A structural OpenAPI v3 schema → the JSON schema (draft 4) that says the same.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// Keywords that mean the same in both.
const SAME: [&str; 14] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "required",
    "type",
];

/// Keywords with more schemas that say something of the same value.
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Says that fields which are not declared are kept.
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
/// What every object has: the server keeps schemas from saying more of these than of their names.
const OF_ALL: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// A schema, and what of the original it does not hold.
#[derive(Debug, Default)]
pub(super) struct Converted {
    pub(super) schema: Value,
    left: BTreeSet<Left>,
}

/// What a converted schema does not check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Left {
    Rules,
    Formats,
    Patterns,
    Keys,
}

impl Left {
    fn words(self) -> &'static str {
        match self {
            Self::Rules => "its rules in CEL (x-kubernetes-validations)",
            Self::Formats => "formats",
            Self::Patterns => "patterns that are no regular expressions",
            Self::Keys => "whether keys of lists are unique",
        }
    }
}

impl Converted {
    pub(super) fn unchecked(&self) -> Vec<&'static str> {
        self.left.iter().map(|left| left.words()).collect()
    }

    fn leaves(&mut self, left: Left, out: bool) {
        if out {
            self.left.insert(left);
        }
    }
}

/// Converts the schema of a whole object: without what every object has, and without `status`, which no apply sends.
pub(super) fn convert(schema: &Value) -> Converted {
    let mut schema = schema.clone();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.shift_remove("status");
        for name in OF_ALL {
            properties.insert(name.to_owned(), json!({}));
        }
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name != "status");
    }
    let mut converted = Converted::default();
    converted.schema = Value::Object(converted.one(&schema));
    converted
}

impl Converted {
    fn one(&mut self, schema: &Value) -> Map<String, Value> {
        let mut result = Map::new();
        let Some(schema) = schema.as_object() else {
            return result;
        };
        let nullable = schema.get("nullable") == Some(&Value::Bool(true));
        for keyword in SAME {
            if let Some(value) = schema.get(keyword) {
                result.insert(keyword.to_owned(), value.clone());
            }
        }
        // Draft 4 wants at least one name.
        if result
            .get("required")
            .is_some_and(|list| list == &json!([]))
        {
            result.shift_remove("required");
        }
        if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
            result.insert("type".to_owned(), json!(["integer", "string"]));
        }
        if nullable {
            allow_null(&mut result);
        }
        // Null must be among the values even where it is allowed.
        if let Some(values @ Value::Array(_)) = schema.get("enum") {
            result.insert("enum".to_owned(), values.clone());
        }
        self.pattern(schema, &mut result);
        self.leaves(Left::Rules, schema.contains_key("x-kubernetes-validations"));
        self.leaves(Left::Formats, schema.contains_key("format"));
        match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => {
                result.insert("uniqueItems".to_owned(), json!(true));
            }
            Some("map") => self.leaves(Left::Keys, true),
            _ => {}
        }
        self.children(schema, &mut result);
        if nullable {
            spare_null(&mut result);
        }
        close(schema, &mut result);
        result
    }

    /// A schema that says more of what another one declares, and declares nothing itself.
    fn part(&mut self, schema: &Value) -> Value {
        let mut part = schema.clone();
        open(&mut part);
        Value::Object(self.one(&part))
    }

    fn pattern(&mut self, schema: &Map<String, Value>, result: &mut Map<String, Value>) {
        let Some(pattern) = schema.get("pattern").and_then(Value::as_str) else {
            return;
        };
        // The server's are Go's, which this crate reads but for corner cases.
        if regex::Regex::new(pattern).is_ok() {
            result.insert("pattern".to_owned(), pattern.into());
        } else {
            self.leaves(Left::Patterns, true);
        }
    }

    fn children(&mut self, schema: &Map<String, Value>, result: &mut Map<String, Value>) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            let properties = properties
                .iter()
                .map(|(name, schema)| (name.clone(), Value::Object(self.one(schema))))
                .collect();
            result.insert("properties".to_owned(), Value::Object(properties));
        }
        for keyword in ["items", "additionalProperties"] {
            if let Some(inner @ Value::Object(_)) = schema.get(keyword) {
                let inner = Value::Object(self.one(inner));
                result.insert(keyword.to_owned(), inner);
            }
        }
        if let Some(inner @ Value::Object(_)) = schema.get("not") {
            result.insert("not".to_owned(), self.part(inner));
        }
        for keyword in LISTS {
            let Some(list) = schema.get(keyword).and_then(Value::as_array) else {
                continue;
            };
            let list: Vec<Value> = list.iter().map(|inner| self.part(inner)).collect();
            if !list.is_empty() {
                result.insert(keyword.to_owned(), Value::Array(list));
            }
        }
    }
}

fn allow_null(result: &mut Map<String, Value>) {
    match result.get_mut("type") {
        Some(Value::Array(kinds)) => kinds.push("null".into()),
        Some(one) => *one = json!([one.take(), "null"]),
        None => {}
    }
}

/// Where null is allowed, the server does not hold it against further schemas.
fn spare_null(result: &mut Map<String, Value>) {
    let further: Map<String, Value> = LISTS
        .into_iter()
        .chain(["not"])
        .filter_map(|keyword| Some((keyword.to_owned(), result.shift_remove(keyword)?)))
        .collect();
    if !further.is_empty() {
        result.insert("anyOf".to_owned(), json!([{ "enum": [null] }, further]));
    }
}

/// A server-side apply refuses fields that the schema does not declare, where it declares any at all and does not say
/// that others are kept.
fn close(schema: &Map<String, Value>, result: &mut Map<String, Value>) {
    let is_embedded = schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    let keeps = schema.get(PRESERVE) == Some(&Value::Bool(true));
    if keeps || result.contains_key("additionalProperties") {
        return;
    }
    let Some(properties) = result.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    if properties.is_empty() {
        return;
    }
    if is_embedded {
        for name in OF_ALL {
            properties.entry(name).or_insert_with(|| json!({}));
        }
    }
    result.insert("additionalProperties".to_owned(), json!(false));
}

/// Marks a schema and all below it as one that may meet more fields than it names.
fn open(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("properties") {
                fields.insert(PRESERVE.to_owned(), json!(true));
            }
            fields.values_mut().for_each(open);
        }
        Value::Array(items) => items.iter_mut().for_each(open),
        _ => {}
    }
}
