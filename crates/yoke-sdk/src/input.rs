//! What a flight is given on stdin.

use std::io::{self, Read as _};

use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// Why there is no input.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// Stdin could not be read.
    #[error("cannot read the input")]
    Read(#[source] io::Error),
    /// Nothing was given.
    #[error("there was no input on stdin")]
    Empty,
    /// It is something else than JSON, YAML for example, or ends in the middle.
    #[error("the input is no JSON")]
    NotJson(#[source] serde_json::Error),
    /// It is not what the flight wants: a field is missing, or of another type.
    #[error("the input is not what this flight takes")]
    Parse(#[source] serde_json::Error),
}

/// The input as the type that the flight works on, an [`Object`](crate::Object) for instances of an Airway.
///
/// # Errors
/// When stdin cannot be read, is empty, is not JSON, or does not fit the type; the source says where.
pub fn input<T: DeserializeOwned>() -> Result<T, InputError> {
    parse_input(&input_bytes()?)
}

/// The input as it came, for flights that take something else than JSON; empty when nothing was given.
///
/// # Errors
/// When stdin cannot be read.
pub fn input_bytes() -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(InputError::Read)?;
    Ok(bytes)
}

/// What [`input`] does with what it reads: for tests.
///
/// # Errors
/// As [`input`].
pub fn parse_input<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, InputError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(InputError::Empty);
    }
    serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        Category::Syntax | Category::Eof => InputError::NotJson(error),
        Category::Data | Category::Io => InputError::Parse(error),
    })
}
