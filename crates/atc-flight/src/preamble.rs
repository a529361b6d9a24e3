//! What a module is, told from its first bytes and its import section: seconds before a compiler would say so.

use std::collections::BTreeSet;

use wasmparser::{Encoding, Operator, Parser, Payload};

use crate::error::FlightError;

/// A message with more names than these is read by nobody.
const NAMED: usize = 50;

/// Checks that this is a core module and that all it imports is there by name; types are compared when it is linked.
///
/// # Errors
///
/// [`FlightError::Compile`] for what is no module, [`FlightError::Link`] with every import that is missing.
pub(crate) fn check(wasm: &[u8], offered: impl Fn(&str, &str) -> bool) -> Result<(), FlightError> {
    if !wasm.starts_with(b"\0asm") {
        return Err(FlightError::compile(what_else(wasm)));
    }
    let mut missing = BTreeSet::new();
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.map_err(FlightError::compile)? {
            Payload::Version {
                encoding: Encoding::Component,
                ..
            } => {
                return Err(FlightError::compile(
                    "it is a component, and flights are core modules: build it for wasm32-wasip1 (WASI preview 1)",
                ));
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import.map_err(FlightError::compile)?;
                    if !offered(import.module, import.name) {
                        missing.insert(format!(
                            "\"{}.{}\"",
                            printable(import.module),
                            printable(import.name)
                        ));
                    }
                }
            }
            // What follows is code; imports stand before it.
            Payload::CodeSectionStart { .. } => break,
            _ => {}
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    let more = match missing.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let hint = if missing
        .iter()
        .any(|name| name.starts_with("\"gojs.") || name.starts_with("\"go."))
    {
        " (it was built for a browser: use GOOS=wasip1)"
    } else {
        ""
    };
    Err(FlightError::link(format!(
        "it imports what no host offers: {names}{more}{hint}"
    )))
}

/// Loops within loops. Programs have a dozen; the compiler's time and memory grow with the square: 4 s and 40 MB at
/// 4,000 of them, which are 12 KB of module, and 5 GB at 500,000.
const NESTED_LOOPS: usize = 256;

/// Checks that a sound module has nothing in it that is small and yet takes the compiler for ever.
///
/// # Errors
///
/// [`FlightError::Compile`] with the function.
pub(crate) fn check_code(wasm: &[u8]) -> Result<(), FlightError> {
    let mut number = 0_usize;
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::CodeSectionEntry(body) = payload.map_err(FlightError::compile)? else {
            continue;
        };
        let mut operators = body.get_operators_reader().map_err(FlightError::compile)?;
        let (mut open, mut loops) = (Vec::new(), 0_usize);
        while !operators.eof() {
            match operators.read().map_err(FlightError::compile)? {
                Operator::Loop { .. } => {
                    open.push(true);
                    loops += 1;
                    if loops > NESTED_LOOPS {
                        return Err(FlightError::compile(format!(
                            "function {number} of its code has more than {NESTED_LOOPS} nested loops"
                        )));
                    }
                }
                Operator::Block { .. } | Operator::If { .. } => open.push(false),
                Operator::End => loops -= usize::from(open.pop() == Some(true)),
                _ => {}
            }
        }
        number += 1;
    }
    Ok(())
}

/// A name as the guest chose it, fit for a message.
fn printable(name: &str) -> String {
    /// Names of functions are shorter.
    const LONGEST: usize = 100;
    let mut chars = name.chars();
    let mut text: String = chars
        .by_ref()
        .take(LONGEST)
        .flat_map(char::escape_debug)
        .collect();
    if chars.next().is_some() {
        text.push('…');
    }
    text
}

/// What the bytes are instead of a module, as far as one can tell.
fn what_else(bytes: &[u8]) -> &'static str {
    let text = bytes.trim_ascii_start();
    match bytes {
        [] => "it is empty",
        [0x7f, b'E', b'L', b'F', ..] => "it is an ELF binary",
        [0x1f, 0x8b, ..] => "it is gzip data",
        _ if text.starts_with(b"(module")
            || text.starts_with(b"(component")
            || text.starts_with(b";;") =>
        {
            "it is WebAssembly text, which must be assembled first"
        }
        _ if text.starts_with(b"<") => "it is an HTML or XML text",
        _ => "it does not begin with the WebAssembly magic number",
    }
}

#[cfg(test)]
mod tests;
