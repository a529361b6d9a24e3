//! Reads one document into a JSON value: strict about keys and numbers, bounded in depth and size.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::documents::Document;
use super::numbers;
use super::{MAX_ALIASED_VALUES, MAX_DEPTH, MAX_VALUES};

/// Characters of a parser's words that are repeated.
const MAX_WORDS: usize = 300;

/// Why a document can't be read, and where in it.
#[derive(Debug)]
pub(super) struct ReadError {
    /// Line in the document, from 1.
    pub(super) line: usize,
    /// Column, from 1.
    pub(super) column: usize,
    /// What is wrong, without content.
    pub(super) why: String,
}

/// What the documents of one output may use together.
#[derive(Debug)]
struct Budget {
    values: usize,
    /// Whether the document at hand has a number that may have been an integer beyond 64 bits.
    has_huge: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            values: MAX_VALUES,
            has_huge: false,
        }
    }
}

/// Stack for reading YAML. Its parser takes up to 30 KiB a level in a debug build (measured), too much for the 2 MiB that
/// threads of async runtimes have; only what is used is ever taken from the system.
const YAML_STACK_BYTES: usize = 16 << 20;

/// Why documents can't be read.
#[derive(Debug)]
pub(super) enum ReadAllError {
    /// One of them, by its index.
    Document(usize, ReadError),
    /// The system gives us no thread.
    Thread(std::io::Error),
}

/// Reads all documents or none: in place if all are JSON, else on a thread with a stack of its own.
pub(super) fn read_all(documents: &[Document<'_>]) -> Result<Vec<Value>, ReadAllError> {
    if let Some(result) = read_all_json(documents) {
        return result;
    }
    let work = || {
        let mut budget = Budget::default();
        let read = |(index, document)| {
            read(document, &mut budget).map_err(|error| ReadAllError::Document(index, error))
        };
        documents.iter().enumerate().map(read).collect()
    };
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new()
            .name("read-yaml".to_owned())
            .stack_size(YAML_STACK_BYTES);
        let thread = builder
            .spawn_scoped(scope, work)
            .map_err(ReadAllError::Thread)?;
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// All documents as JSON, or what is wrong with the first that is JSON but refused; `None` if one is no JSON.
fn read_all_json(documents: &[Document<'_>]) -> Option<Result<Vec<Value>, ReadAllError>> {
    if !documents.iter().all(looks_like_json) {
        return None;
    }
    let mut budget = Budget::default();
    let mut values = Vec::with_capacity(documents.len());
    for (index, document) in documents.iter().enumerate() {
        match read_json(document.body(), &mut budget) {
            Ok(value) => values.push(value),
            Err((error, true)) => return Some(Err(ReadAllError::Document(index, error))),
            Err((_, false)) => return None,
        }
    }
    Some(Ok(values))
}

fn looks_like_json(document: &Document<'_>) -> bool {
    document.body().trim_start().starts_with(['{', '['])
}

/// Reads a document: as JSON if it begins like JSON, and as YAML if it is none or does not begin so. Of two errors the one
/// further on counts.
fn read(document: &Document<'_>, budget: &mut Budget) -> Result<Value, ReadError> {
    if !looks_like_json(document) {
        return read_yaml(document.text, budget);
    }
    let left = budget.values;
    let (json, is_final) = match read_json(document.body(), budget) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    if is_final {
        return Err(json);
    }
    budget.values = left;
    read_yaml(document.text, budget).map_err(|yaml| {
        if (yaml.line, yaml.column) > (json.line, json.column) {
            yaml
        } else {
            json
        }
    })
}

/// On an error also whether it is final: the text is JSON, but one that we refuse.
fn read_json(text: &str, budget: &mut Budget) -> Result<Value, (ReadError, bool)> {
    budget.has_huge = false;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = Seed {
        budget,
        depth: 0,
        is_yaml: false,
    }
    .deserialize(&mut deserializer);
    let value = read
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| {
            let why = without_position(&error.to_string());
            (
                ReadError {
                    line: error.line(),
                    column: error.column().max(1),
                    why,
                },
                error.is_data(),
            )
        })?;
    if budget.has_huge
        && let Some(position) = numbers::out_of_range_in_json(text)
    {
        return Err((out_of_range(position), true));
    }
    Ok(value)
}

fn read_yaml(text: &str, budget: &mut Budget) -> Result<Value, ReadError> {
    budget.has_huge = false;
    let read = serde_saphyr::with_deserializer_from_str_with_options(
        text,
        yaml_options(),
        |deserializer| {
            Seed {
                budget,
                depth: 0,
                is_yaml: true,
            }
            .deserialize(deserializer)
        },
    );
    let value = read.map_err(|error| {
        let location = error.location();
        let why = match error.without_snippet() {
            serde_saphyr::Error::MultipleDocuments { .. } => {
                "there is more behind the end of the document".to_owned()
            }
            error => without_position(&error.to_string()),
        };
        let position = |of: fn(&serde_saphyr::Location) -> u64| {
            location
                .as_ref()
                .and_then(|location| usize::try_from(of(location)).ok())
                .unwrap_or(1)
                .max(1)
        };
        ReadError {
            line: position(|at| at.line().into()),
            column: position(|at| at.column().into()),
            why,
        }
    })?;
    if budget.has_huge
        && let Some(position) = numbers::out_of_range_in_yaml(text)
    {
        return Err(out_of_range(position));
    }
    Ok(value)
}

fn out_of_range((line, column): (usize, usize)) -> ReadError {
    ReadError {
        line,
        column,
        why: "an integer does not fit 64 bits".to_owned(),
    }
}

/// YAML as kubectl reads it (YAML 1.1 booleans and octals), strict about duplicate keys, bounded in what aliases make.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        legacy_octal_numbers: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH + 1,
            max_nodes: MAX_VALUES,
            max_events: 4 * MAX_VALUES,
            max_recorded_anchor_events: MAX_ALIASED_VALUES,
            max_recorded_anchor_bytes: 16 << 20,
            // A name that is used often is no bomb: what counts is what it expands to, below.
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_ALIASED_VALUES,
        },
    }
}

/// A parser's words in one line, without the position at their end.
fn without_position(words: &str) -> String {
    let end = [" at line ", " (defined at line ", " (used at line "]
        .iter()
        .filter_map(|mark| words.find(mark))
        .min();
    let words = &words[..end.unwrap_or(words.len())];
    words
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_WORDS)
        .collect()
}

/// Builds a value, counting depth and values.
struct Seed<'a> {
    budget: &'a mut Budget,
    depth: usize,
    is_yaml: bool,
}

impl Seed<'_> {
    fn inner(&mut self) -> Seed<'_> {
        Seed {
            budget: self.budget,
            depth: self.depth + 1,
            is_yaml: self.is_yaml,
        }
    }

    fn enter<E: serde::de::Error>(&self) -> Result<(), E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(format!(
                "lists and maps are nested more than {MAX_DEPTH} deep"
            )));
        }
        Ok(())
    }

    fn check_key<E: serde::de::Error>(&self, key: &str, map: &Map<String, Value>) -> Result<(), E> {
        let shown = || {
            key.chars()
                .take(100)
                .collect::<String>()
                .escape_debug()
                .to_string()
        };
        if map.contains_key(key) {
            return Err(E::custom(format!("the key \"{}\" occurs twice", shown())));
        }
        if self.is_yaml && key.starts_with('\u{a0}') {
            return Err(E::custom(format!(
                "the key \"{}\" begins with a non-breaking space",
                shown()
            )));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.budget.values.checked_sub(1) {
            Some(left) => self.budget.values = left,
            None => {
                return Err(D::Error::custom(format!(
                    "the output has more than {MAX_VALUES} values"
                )));
            }
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has, too")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        /// 2⁶³: whole floats below it are integers of 64 bits.
        const LIMIT: f64 = 9_223_372_036_854_775_808.0;
        if value.fract() != 0.0 || value.abs() >= LIMIT {
            self.budget.has_huge |= value.abs() >= LIMIT;
            return Number::from_f64(value)
                .map(Value::Number)
                .ok_or_else(|| E::custom("a number is not finite"));
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is whole, and below 2⁶³"
        )]
        Ok(Value::from(value as i64))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    /// `!!binary` of YAML: the text that it encodes.
    fn visit_bytes<E: serde::de::Error>(self, value: &[u8]) -> Result<Value, E> {
        let text = std::str::from_utf8(value)
            .map_err(|_| E::custom("a !!binary value is no UTF-8 text"))?;
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut list = Vec::new();
        while let Some(value) = access.next_element_seed(self.inner())? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            self.check_key(&key, &map)?;
            map.insert(key, access.next_value_seed(self.inner())?);
        }
        Ok(Value::Object(map))
    }
}
