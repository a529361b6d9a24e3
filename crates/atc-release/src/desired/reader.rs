//! Reads one document into a JSON value: strict about keys and numbers, bounded in depth and size.

use serde::de::DeserializeSeed;
use serde_json::Value;

use super::documents::Document;
use super::numbers;
use super::value::{Budget, Seed};
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
        let why = words_of(error.without_snippet());
        let position = |of: fn(&serde_saphyr::Location) -> u64| {
            location
                .as_ref()
                .and_then(|location| usize::try_from(of(location)).ok())
                .unwrap_or(1)
                .max(1)
        };
        ReadError {
            line: position(serde_saphyr::Location::line),
            column: position(serde_saphyr::Location::column),
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

fn words_of(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error;
    use serde_saphyr::budget::BudgetBreach;
    match error {
        Error::MultipleDocuments { .. } => {
            "there is more behind the end of the document".to_owned()
        }
        Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::Budget {
            breach:
                BudgetBreach::RecordedAnchorEvents { .. } | BudgetBreach::RecordedAnchorBytes { .. },
            ..
        } => format!("its aliases expand to more than {MAX_ALIASED_VALUES} values"),
        Error::AliasError { error, .. } => words_of(error),
        error => without_position(&error.to_string()),
    }
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
