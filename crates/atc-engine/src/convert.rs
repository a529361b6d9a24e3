//! A conversion between versions of a custom resource, done by a converter module.
//!
//! The guest gets the `ConversionReview` as it came, on stdin, with `argv[0]` `converter`, no environment and no look at
//! the cluster. What it may change is the objects' content, labels and annotations, and status; the rest of the metadata
//! is the API server's and is put back, whatever the guest made of it.

use std::sync::Arc;

use atc_api::names;
use atc_flight::{Bounds, Invocation, NoCluster, StderrSink};
use serde_json::{Map, Value, json};

use crate::engine::Engine;
use crate::error::chain;
use crate::evaluate::LoadedFlight;

/// Why objects could not be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The review is none.
    #[error("the ConversionReview can't be read: {0}")]
    Review(String),
    /// The converter can't be had.
    #[error("the converter can't be had: {0}")]
    Load(String),
    /// The converter did not come to its end.
    #[error("the converter failed: {0}")]
    Run(String),
    /// It ended with another code than 0.
    #[error("the converter failed with exit_code({code}): {}", if stderr.is_empty() { "it wrote nothing to stderr" } else { stderr })]
    Exit {
        /// The code.
        code: i32,
        /// The tail of its stderr.
        stderr: String,
    },
    /// It printed something else than an answer.
    #[error("the converter's output is not usable: {0}")]
    Output(String),
    /// It says itself that it can't.
    #[error("the converter refused: {0}")]
    Refused(String),
}

/// What is asked: objects, all of them to one version.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    /// The review's `apiVersion`, `apiextensions.k8s.io/v1` as a rule.
    pub api_version: String,
    /// Goes back with the answer.
    pub uid: String,
    /// The version to convert to, with its group.
    pub desired: String,
    /// The objects, in the versions that they have.
    pub objects: Vec<Value>,
}

impl Conversion {
    /// Reads a `ConversionReview`.
    ///
    /// # Errors
    /// [`ConvertError::Review`] names the field that is missing or of another type.
    pub fn read(review: &Value) -> Result<Self, ConvertError> {
        let text = |path: &str| {
            review
                .pointer(path)
                .and_then(Value::as_str)
                .map(str::to_owned)
                .ok_or_else(|| {
                    ConvertError::Review(format!("{} is missing or no text", &path[1..]))
                })
        };
        let objects = review
            .pointer("/request/objects")
            .and_then(Value::as_array)
            .ok_or_else(|| ConvertError::Review("request/objects is missing or no list".into()))?;
        Ok(Self {
            api_version: text("/apiVersion")?,
            uid: text("/request/uid")?,
            desired: text("/request/desiredAPIVersion")?,
            objects: objects.clone(),
        })
    }

    /// The review for these objects.
    fn review(&self, objects: &[Value]) -> Value {
        json!({
            "apiVersion": self.api_version,
            "kind": "ConversionReview",
            "request": {"uid": self.uid, "desiredAPIVersion": self.desired, "objects": objects},
        })
    }

    /// The answer with what the objects became.
    #[must_use]
    pub fn done(&self, objects: &[Value]) -> Value {
        self.response(&json!({
            "uid": self.uid, "convertedObjects": objects, "result": {"status": "Success"},
        }))
    }

    /// The answer that nothing was converted.
    #[must_use]
    pub fn failed(&self, message: &str) -> Value {
        self.response(&json!({
            "uid": self.uid, "result": {"status": "Failure", "message": message},
        }))
    }

    fn response(&self, response: &Value) -> Value {
        json!({"apiVersion": self.api_version, "kind": "ConversionReview", "response": response})
    }

    /// The object as it is, called by the version that is wanted and marked with the reason.
    ///
    /// For what can't be converted: an error instead would fail every list in which the object stands, and with it the
    /// removal of any. Whoever gets it can remove it; it must not be stored.
    #[must_use]
    pub fn marked(&self, object: &Value, error: &ConvertError) -> Value {
        let mut object = object.clone();
        if !object["metadata"].is_object() {
            return object;
        }
        let words: String = chain(error).chars().take(MARK_MAX).collect();
        let annotations = &mut object["metadata"]["annotations"];
        if !annotations.is_object() {
            *annotations = json!({});
        }
        annotations[names::ANNOTATION_UNCONVERTED] = words.into();
        object["apiVersion"] = self.desired.clone().into();
        object
    }
}

/// Characters of the reason in a mark. Annotations of an object are 256 KiB at most, all together.
const MARK_MAX: usize = 1_024;

/// Why an object could not be converted to the version in which it is here.
pub fn mark(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][names::ANNOTATION_UNCONVERTED].as_str()
}

impl Engine {
    /// Converts some of the objects of a review.
    ///
    /// # Errors
    /// All are converted, or an error says why not. Contents of objects never stand in it, but for the words that the
    /// converter wrote itself.
    pub async fn convert(
        &self,
        converter: &LoadedFlight,
        conversion: &Conversion,
        objects: &[Value],
        bounds: Bounds,
    ) -> Result<Vec<Value>, ConvertError> {
        let _slot = self.conversion_slot().await;
        let invocation = Invocation {
            stdin: conversion.review(objects).to_string().into(),
            args: vec!["converter".to_owned()],
            env: Vec::new(),
            bounds,
            stderr: StderrSink::Tail,
        };
        let outcome = converter
            .module
            .run(invocation, Arc::new(NoCluster))
            .await
            .map_err(|error| ConvertError::Run(chain(&error)))?;
        if outcome.exit != 0 {
            return Err(ConvertError::Exit {
                code: outcome.exit,
                stderr: outcome.stderr.trim().to_owned(),
            });
        }
        answer(&outcome.stdout, &conversion.desired, objects)
    }
}

/// The objects that a converter printed, each with what is not its own put back.
fn answer(stdout: &[u8], desired: &str, originals: &[Value]) -> Result<Vec<Value>, ConvertError> {
    let output = |why: String| ConvertError::Output(why);
    // The parser's own words may quote what it stumbled over, so only the place is told.
    let mut review: Value = serde_json::from_slice(stdout).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        output(format!("no JSON at line {line} column {column}"))
    })?;
    let mut response = review.get_mut("response").map_or(Value::Null, Value::take);
    let result = &response["result"];
    if result["status"]
        .as_str()
        .is_some_and(|status| status != "Success")
    {
        let words = result["message"].as_str().unwrap_or("it gives no message");
        return Err(ConvertError::Refused(words.to_owned()));
    }
    let Some(Value::Array(converted)) = response.get_mut("convertedObjects").map(Value::take)
    else {
        return Err(output("response.convertedObjects is no list".into()));
    };
    if converted.len() != originals.len() {
        return Err(output(format!(
            "response.convertedObjects has {} objects, asked for were {}",
            converted.len(),
            originals.len()
        )));
    }
    let pairs = converted.into_iter().zip(originals).enumerate();
    pairs
        .map(|(at, (object, original))| {
            restore(object, original, desired)
                .map_err(|why| output(format!("response.convertedObjects[{at}] {why}")))
        })
        .collect()
}

/// A converted object with kind and metadata of the original, but for labels and annotations.
fn restore(mut object: Value, original: &Value, desired: &str) -> Result<Value, String> {
    let Some(fields) = object.as_object_mut() else {
        return Err("is no object".into());
    };
    match fields.get("apiVersion").and_then(Value::as_str) {
        Some(version) if version == desired => {}
        Some(version) => return Err(format!("has apiVersion \"{version}\", not \"{desired}\"")),
        None => return Err("has no apiVersion".into()),
    }
    fields.insert("kind".into(), original["kind"].clone());
    let mut metadata = original["metadata"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let theirs = match fields.get_mut("metadata").map(Value::take) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(theirs)) => theirs,
        Some(_) => return Err("has a metadata that is no object".into()),
    };
    for field in ["labels", "annotations"] {
        match theirs.get(field) {
            Some(Value::Object(map)) => {
                metadata.insert(field.into(), Value::Object(map.clone()));
            }
            None | Some(Value::Null) => {
                metadata.shift_remove(field);
            }
            Some(_) => return Err(format!("has a metadata.{field} that is no object")),
        }
    }
    fields.insert("metadata".into(), Value::Object(metadata));
    Ok(object)
}

#[cfg(test)]
mod tests;
