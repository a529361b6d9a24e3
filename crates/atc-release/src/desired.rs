//! What a flight printed, as stages of objects: all of it, or an error that says where it is wrong.
//!
//! JSON or YAML; one object, several documents, a list, a list of lists. Nothing is skipped in silence: what was left out
//! here would be pruned from the cluster later.
//!
//! # Guarantees
//! - Integers of 64 bits arrive bit for bit; other integers are refused. A float that is a whole number is that integer,
//!   as kubectl has it (`1.0` is `1`, `1e3` is `1000`); infinity and NaN are refused.
//! - A key that occurs twice in a map is refused.
//! - No message holds a value of the output, but for names.
//! - Input of any kind costs bounded time and memory, see the constants.

use std::collections::HashMap;
use std::fmt;

use atc_api::ResourceRef;
use serde_json::Value;

use crate::object::{Object, ObjectError, Stages, type_name};

mod documents;
mod numbers;
mod reader;

use documents::Document;
use reader::ReadAllError;

/// Bytes of output that are read at all: what a flight may print, too.
pub const MAX_OUTPUT_BYTES: usize = 64 << 20;

/// Documents in one output. Objects beyond that fit no release record, whatever they are.
pub const MAX_DOCUMENTS: usize = 100_000;

/// Lists and maps inside one another. Kubernetes objects need some twenty, schemas of CRDs some sixty.
pub const MAX_DEPTH: usize = 120;

/// Values (maps, lists, texts, numbers…) in the whole output, after aliases are expanded. A record of 1 MiB packed holds
/// less; each costs some 100 bytes.
pub const MAX_VALUES: usize = 1_000_000;

/// Values that aliases of one document may expand to. An alias bomb of 600 bytes wants a billion; kustomizations with
/// anchors want hundreds.
pub const MAX_ALIASED_VALUES: usize = 50_000;

/// Where in an output something stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Number of the document, from 1; documents without content do not count.
    document: usize,
    /// Line on which the document begins, from 1.
    line: usize,
    /// Positions inside of it, from 1: `stage 2, element 3`.
    path: Vec<(&'static str, usize)>,
}

impl Place {
    fn with(&self, what: &'static str, index: usize) -> Self {
        let mut place = self.clone();
        place.path.push((what, index + 1));
        place
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "document {} (line {})", self.document, self.line)?;
        self.path
            .iter()
            .try_for_each(|(what, index)| write!(f, ", {what} {index}"))
    }
}

/// Why an output is no set of objects. Nothing of it is used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DesiredError {
    /// There is nothing in it. Who wants no resources says so with an empty list.
    #[error("the output {0}; to say that there are to be no resources, print []")]
    Empty(&'static str),
    /// It is longer than [`MAX_OUTPUT_BYTES`].
    #[error("the output has {size} bytes, more than {limit}")]
    TooLong {
        /// Bytes.
        size: usize,
        /// The bound.
        limit: usize,
    },
    /// It has more documents than [`MAX_DOCUMENTS`].
    #[error("the output has more than {limit} documents")]
    TooManyDocuments {
        /// The bound.
        limit: usize,
    },
    /// A byte that no text has.
    #[error("the output has {what} at line {line}, column {column}")]
    NoText {
        /// Which.
        what: &'static str,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// A document is neither JSON nor YAML, or breaks a bound.
    #[error("document {document} can't be read: {why} at line {line}, column {column}")]
    Syntax {
        /// Number of the document, from 1.
        document: usize,
        /// Line in the output, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        why: String,
    },
    /// The system has no thread left to read on.
    #[error("the output can't be read for want of a thread: {0}")]
    NoThread(String),
    /// A document is a text or a number.
    #[error(
        "{place} is {found}; it must be an object, a list of objects or a list of lists of objects"
    )]
    NotObjects {
        /// Which document.
        place: Place,
        /// What it is.
        found: &'static str,
    },
    /// Lists beside objects, or stages beside objects: the order of stages would be a guess.
    #[error(
        "{place} mixes with objects of no stage; print objects or stages (a list of lists), not both"
    )]
    Mixed {
        /// The first stage or object of the other sort.
        place: Place,
    },
    /// An element is no object.
    #[error("{place}: {source}")]
    Object {
        /// Which element.
        place: Place,
        /// What is wrong with it.
        source: ObjectError,
    },
    /// The same object twice.
    #[error("\"{object}\" occurs twice: {first}, and {second}")]
    Duplicate {
        /// Canonical name.
        object: String,
        /// Where it occurs first.
        first: Place,
        /// Where it occurs again.
        second: Place,
    },
}

/// Reads an output.
///
/// Objects of one document or of several make one stage; a list of lists makes a stage of each inner list, also when
/// several documents hold such lists. `[]` is an explicit "nothing". Lists of kinds (`List`, `ConfigMapList`) count as
/// their items. In each stage Namespaces and CustomResourceDefinitions are moved to a stage of their own before the rest.
///
/// Every `status` stays, so that the parent's can be taken ([`Stages::take`]); [`decorate`](crate::decorate::decorate)
/// drops the others.
pub fn parse(output: &[u8]) -> Result<Stages, DesiredError> {
    let text = text_of(output)?;
    let documents = documents::split(text)?;
    if documents.is_empty() {
        return Err(DesiredError::Empty(nothing_in(output, text)));
    }
    let values = reader::read_all(&documents).map_err(|error| unreadable(&documents, error))?;
    let mut reading = Reading::default();
    for (index, (value, document)) in values.into_iter().zip(&documents).enumerate() {
        reading.add(
            &Place {
                document: index + 1,
                line: document.line,
                path: Vec::new(),
            },
            value,
        )?;
    }
    reading.finish()
}

/// What an output without documents is.
fn nothing_in(output: &[u8], text: &str) -> &'static str {
    if output.is_empty() {
        "is empty"
    } else if text.trim().is_empty() {
        "is blank"
    } else {
        "holds only comments and separators"
    }
}

/// The output as text without its byte order mark.
fn text_of(output: &[u8]) -> Result<&str, DesiredError> {
    if output.len() > MAX_OUTPUT_BYTES {
        return Err(DesiredError::TooLong {
            size: output.len(),
            limit: MAX_OUTPUT_BYTES,
        });
    }
    let (what, good) = match std::str::from_utf8(output) {
        Ok(text) => match text.find('\0') {
            None => return Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
            Some(at) => ("a NUL byte", at),
        },
        Err(error) => ("a byte that is no UTF-8", error.valid_up_to()),
    };
    let before = String::from_utf8_lossy(&output[..good]);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    Err(DesiredError::NoText { what, line, column })
}

fn unreadable(documents: &[Document<'_>], error: ReadAllError) -> DesiredError {
    match error {
        ReadAllError::Document(index, error) => DesiredError::Syntax {
            document: index + 1,
            line: documents[index].line + error.line.saturating_sub(1),
            column: error.column,
            why: error.why,
        },
        ReadAllError::Thread(error) => DesiredError::NoThread(error.to_string()),
    }
}

/// What has been read so far.
#[derive(Default)]
struct Reading {
    /// Objects of no stage.
    loose: Vec<(Object, Place)>,
    /// Objects of lists of lists.
    staged: Vec<Vec<(Object, Place)>>,
    /// Whether something said "nothing" in so many words.
    said_nothing: bool,
    /// Where the first list of lists begins.
    first_stages: Option<Place>,
}

impl Reading {
    fn add(&mut self, place: &Place, value: Value) -> Result<(), DesiredError> {
        match value {
            Value::Null => Ok(()),
            Value::Object(map) if map.is_empty() => Err(DesiredError::NotObjects {
                place: place.clone(),
                found: "an empty object",
            }),
            Value::Object(_) => {
                self.no_stages_before(place)?;
                unfold(place, value, &mut self.loose)?;
                self.said_nothing |= self.loose.is_empty();
                Ok(())
            }
            Value::Array(list) if list.is_empty() => {
                self.said_nothing = true;
                Ok(())
            }
            Value::Array(list) if list[0].is_array() => self.add_stages(place, list),
            Value::Array(list) => {
                self.no_stages_before(place)?;
                add_list(place, list, &mut self.loose)
            }
            other => Err(DesiredError::NotObjects {
                place: place.clone(),
                found: type_name(&other),
            }),
        }
    }

    fn no_stages_before(&self, place: &Place) -> Result<(), DesiredError> {
        if self.first_stages.is_some() {
            return Err(DesiredError::Mixed {
                place: place.clone(),
            });
        }
        Ok(())
    }

    fn add_stages(&mut self, place: &Place, list: Vec<Value>) -> Result<(), DesiredError> {
        if !self.loose.is_empty() {
            return Err(DesiredError::Mixed {
                place: place.clone(),
            });
        }
        self.first_stages.get_or_insert_with(|| place.clone());
        self.said_nothing = true;
        for (index, stage) in list.into_iter().enumerate() {
            let place = place.with("stage", index);
            let Value::Array(elements) = stage else {
                return Err(DesiredError::Mixed { place });
            };
            let mut objects = Vec::new();
            add_list(&place, elements, &mut objects)?;
            self.staged.push(objects);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Stages, DesiredError> {
        if self.first_stages.is_none() {
            self.staged = vec![self.loose];
        }
        let mut seen: HashMap<ResourceRef, Place> = HashMap::new();
        let mut stages = Vec::new();
        for stage in self.staged {
            let (mut foundations, mut rest) = (Vec::new(), Vec::new());
            for (object, place) in stage {
                if let Some(first) = seen.get(&object.reference()) {
                    let first = first.clone();
                    return Err(DesiredError::Duplicate {
                        object: object.canonical(),
                        first,
                        second: place,
                    });
                }
                seen.insert(object.reference(), place);
                if object.is_foundation() {
                    foundations.push(object)
                } else {
                    rest.push(object)
                }
            }
            stages.extend([foundations, rest]);
        }
        let stages = Stages::new(stages);
        if stages.is_empty() && !self.said_nothing {
            return Err(DesiredError::Empty("is null"));
        }
        Ok(stages)
    }
}

/// Adds the elements of a flat list. One that is null or a list is an error: it can only be a slip.
fn add_list(
    place: &Place,
    list: Vec<Value>,
    into: &mut Vec<(Object, Place)>,
) -> Result<(), DesiredError> {
    for (index, element) in list.into_iter().enumerate() {
        unfold(&place.with("element", index), element, into)?;
    }
    Ok(())
}

/// Adds an object, or the items of a list of a kind.
fn unfold(
    place: &Place,
    value: Value,
    into: &mut Vec<(Object, Place)>,
) -> Result<(), DesiredError> {
    let Some((items, item_kind, api_version)) = items_of(&value) else {
        let object = Object::try_from(value).map_err(|source| DesiredError::Object {
            place: place.clone(),
            source,
        })?;
        into.push((object, place.clone()));
        return Ok(());
    };
    for (index, mut item) in items.into_iter().enumerate() {
        // Typed Go programs leave API version and kind out of the items of a typed list.
        if let (Some(kind), Value::Object(map)) = (&item_kind, &mut item)
            && !map.contains_key("kind")
            && !map.contains_key("apiVersion")
        {
            map.insert("apiVersion".to_owned(), api_version.clone().into());
            map.insert("kind".to_owned(), kind.clone().into());
        }
        // As deep as lists may nest, which the depth bound of reading limits.
        unfold(&place.with("item", index), item, into)?;
    }
    Ok(())
}

/// The items of a `List` or a typed list, which has a kind that ends in `List`, items, and no name of its own; for a typed
/// list also the kind of its items.
fn items_of(value: &Value) -> Option<(Vec<Value>, Option<String>, String)> {
    let kind = value["kind"].as_str()?;
    let item_kind = kind.strip_suffix("List")?;
    let api_version = value["apiVersion"].as_str()?;
    if !matches!(value["metadata"]["name"], Value::Null) {
        return None;
    }
    let items = match value.get("items")? {
        Value::Array(items) => items.clone(),
        Value::Null => Vec::new(),
        _ => return None,
    };
    let item_kind = (!item_kind.is_empty()).then(|| item_kind.to_owned());
    Some((items, item_kind, api_version.to_owned()))
}

#[cfg(test)]
mod tests;
