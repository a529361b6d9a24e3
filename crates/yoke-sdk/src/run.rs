//! From stdin to stdout, and how a flight fails.

use std::process::ExitCode;

use serde::de::DeserializeOwned;

use crate::input::input;
use crate::output::Output;

/// Any error: a flight's `?` takes all of them.
pub type Error = Box<dyn std::error::Error>;

/// What a flight gives.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reads the input, runs the flight, prints its output. An error is written to stderr with all its causes, and the exit
/// code is 1: nothing is applied and nothing removed, and the error stands in the instance's condition.
pub fn run<Input: DeserializeOwned>(flight: impl FnOnce(&Input) -> Result<Output>) -> ExitCode {
    let result = input()
        .map_err(Error::from)
        .and_then(|input| flight(&input))
        .and_then(|output| Ok(output.print()?));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", in_words(&*error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes in one line.
fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        words.push_str(": ");
        words.push_str(&next.to_string());
        cause = next.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Object, parse_input};

    #[test]
    fn causes_are_named_in_turn() {
        for (input, words) in [
            ("{", "the input is no JSON: EOF while parsing"),
            (
                "kind: App",
                "the input is no JSON: expected value at line 1",
            ),
            (
                "[]",
                "the input is not what this flight takes: invalid length 0",
            ),
            (" \n", "there was no input on stdin"),
            ("", "there was no input on stdin"),
        ] {
            let error = parse_input::<Object>(input.as_bytes()).unwrap_err();
            let said = in_words(&error);
            assert!(said.starts_with(words), "{said}");
        }
    }
}
