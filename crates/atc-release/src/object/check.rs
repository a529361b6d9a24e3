//! What makes a value an object.

use serde_json::Value;

use super::{Object, type_name};

/// Why a value is no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// It is a text, a number, a list.
    #[error("it is {0}, not an object")]
    NotAMap(&'static str),
    /// A field that every object has is absent, null or empty.
    #[error("it has no {field}{of}")]
    Missing {
        /// Dotted path.
        field: &'static str,
        /// `" (ConfigMap)"`: what is known of the object.
        of: String,
    },
    /// A field is of another type than Kubernetes wants.
    #[error("{field} is {found}, not {wanted}{of}")]
    WrongType {
        /// Dotted path.
        field: &'static str,
        /// What stands there.
        found: &'static str,
        /// What must stand there.
        wanted: &'static str,
        /// `" (ConfigMap \"a\")"`: what is known of the object.
        of: String,
    },
    /// A name that the server would make up: such an object could never be found again.
    #[error("metadata.generateName can't be used, a release needs a fixed metadata.name{of}")]
    GenerateName {
        /// `" (Job)"`: what is known of the object.
        of: String,
    },
    /// A text that can't be part of a URL.
    #[error("{field} \"{value}\" is not possible: {why}")]
    Illegal {
        /// Dotted path.
        field: &'static str,
        /// What stands there.
        value: String,
        /// The rule.
        why: &'static str,
    },
}

impl TryFrom<Value> for Object {
    type Error = ObjectError;

    fn try_from(value: Value) -> Result<Self, ObjectError> {
        let Value::Object(map) = &value else {
            return Err(ObjectError::NotAMap(type_name(&value)));
        };
        let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default();
        let name = map
            .get("metadata")
            .and_then(|metadata| metadata["name"].as_str())
            .unwrap_or_default();
        let of = || match (kind, name) {
            ("", "") => String::new(),
            (kind, "") => format!(" ({kind})"),
            ("", name) => format!(" (\"{name}\")"),
            (kind, name) => format!(" ({kind} \"{name}\")"),
        };
        let api_version = wanted_text(map.get("apiVersion"), "apiVersion", of)?;
        let kind_text = wanted_text(map.get("kind"), "kind", of)?;
        let null = Value::Null;
        let metadata = map.get("metadata").unwrap_or(&null);
        match metadata {
            Value::Null => {
                return Err(ObjectError::Missing {
                    field: "metadata.name",
                    of: of(),
                });
            }
            Value::Object(_) => (),
            other => {
                return Err(ObjectError::WrongType {
                    field: "metadata",
                    found: type_name(other),
                    wanted: "a map",
                    of: of(),
                });
            }
        }
        let has_name =
            !matches!(&metadata["name"], Value::Null) && metadata["name"].as_str() != Some("");
        if !has_name
            && metadata["generateName"]
                .as_str()
                .is_some_and(|name| !name.is_empty())
        {
            return Err(ObjectError::GenerateName { of: of() });
        }
        let name_text = wanted_text(metadata.get("name"), "metadata.name", of)?;
        check_api_version(api_version)?;
        check_word("kind", kind_text)?;
        check_segment("metadata.name", name_text)?;
        match &metadata["namespace"] {
            Value::Null => (),
            Value::String(namespace) if namespace.is_empty() => (),
            Value::String(namespace) => check_segment("metadata.namespace", namespace)?,
            other => {
                let found = type_name(other);
                return Err(ObjectError::WrongType {
                    field: "metadata.namespace",
                    found,
                    wanted: "a text",
                    of: of(),
                });
            }
        }
        for (key, field) in [
            ("labels", "metadata.labels"),
            ("annotations", "metadata.annotations"),
        ] {
            if !matches!(metadata[key], Value::Null | Value::Object(_)) {
                let found = type_name(&metadata[key]);
                return Err(ObjectError::WrongType {
                    field,
                    found,
                    wanted: "a map",
                    of: of(),
                });
            }
        }
        if !matches!(metadata["ownerReferences"], Value::Null | Value::Array(_)) {
            let found = type_name(&metadata["ownerReferences"]);
            return Err(ObjectError::WrongType {
                field: "metadata.ownerReferences",
                found,
                wanted: "a list",
                of: of(),
            });
        }
        Ok(Self(value))
    }
}

fn wanted_text<'a>(
    value: Option<&'a Value>,
    field: &'static str,
    of: impl Fn() -> String,
) -> Result<&'a str, ObjectError> {
    match value {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        None | Some(Value::Null | Value::String(_)) => {
            Err(ObjectError::Missing { field, of: of() })
        }
        Some(other) => Err(ObjectError::WrongType {
            field,
            found: type_name(other),
            wanted: "a text",
            of: of(),
        }),
    }
}

fn check_api_version(text: &str) -> Result<(), ObjectError> {
    let parts: Vec<&str> = text.split('/').collect();
    let good = parts.len() <= 2 && parts.iter().all(|part| !part.is_empty() && is_word(part));
    if good {
        return Ok(());
    }
    Err(ObjectError::Illegal {
        field: "apiVersion",
        value: text.to_owned(),
        why: "it must be a version, or a group, a slash and a version",
    })
}

fn check_word(field: &'static str, text: &str) -> Result<(), ObjectError> {
    if is_word(text) {
        return Ok(());
    }
    Err(ObjectError::Illegal {
        field,
        value: text.to_owned(),
        why: "only letters, digits, '-' and '.' may stand there",
    })
}

fn is_word(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.')
        && text.bytes().any(|byte| byte.is_ascii_alphanumeric())
}

/// Kubernetes' own rule for path segments (no `.`, `..`, `/`, `%`), and nothing that would end or split a URL.
fn check_segment(field: &'static str, text: &str) -> Result<(), ObjectError> {
    let why = if text == "." || text == ".." {
        "it can't be '.' or '..'"
    } else if let Some(bad) = text
        .chars()
        .find(|c| !c.is_ascii_graphic() || "/%?#\\".contains(*c))
    {
        if bad == '/' || bad == '%' {
            "it can't hold '/' or '%'"
        } else {
            "it holds a character that no name may hold"
        }
    } else {
        return Ok(());
    };
    Err(ObjectError::Illegal {
        field,
        value: text.escape_debug().collect(),
        why,
    })
}
