//! What the API server does to a custom resource before it holds it against its schema.

use serde_json::Value;

/// Fills in defaults, where a field is missing or null and may not be; whole numbers are integers, however they are written
/// (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting-and-nullable>).
///
/// A null that nothing replaces stays: a create or an update drops it, a server-side apply is refused.
pub(super) fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(properties) = schema["properties"].as_object() {
                for (name, schema) in properties {
                    let Some(default) = schema.get("default") else {
                        continue;
                    };
                    let nullable = schema["nullable"] == true;
                    if fields
                        .get(name)
                        .is_none_or(|value| value.is_null() && !nullable)
                    {
                        fields.insert(name.clone(), default.clone());
                    }
                }
            }
            for (name, inner) in fields.iter_mut() {
                let schema = match schema["properties"].get(name) {
                    Some(schema) => schema,
                    None => &schema["additionalProperties"],
                };
                fill(schema, inner);
            }
        }
        Value::Array(items) => {
            for item in items {
                fill(&schema["items"], item);
            }
        }
        Value::Number(number) => {
            // Larger ones are not told apart from their neighbours.
            #[expect(clippy::cast_possible_truncation, reason = "whole, and within 53 bits")]
            if let Some(float) = number.as_f64().filter(|_| number.is_f64())
                && float.fract() == 0.0
                && float.abs() < 9e15
            {
                *value = (float as i64).into();
            }
        }
        _ => {}
    }
}
