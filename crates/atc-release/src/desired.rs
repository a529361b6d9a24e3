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

use std::fmt;

use crate::object::{ObjectError, Stages};

mod documents;
mod numbers;
mod reader;
mod stages;
mod value;

use documents::Document;
use reader::ReadAllError;
use stages::Reading;

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
    #[error("{place}")]
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

#[cfg(test)]
mod tests;
