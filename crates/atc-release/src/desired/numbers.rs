//! Finds integers that no 64 bits hold: parsers turn them into floats, and a rounded number is a wrong one.

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle};

/// The first integer of a JSON text that is out of range: its line and column, from 1.
pub(super) fn out_of_range_in_json(text: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_text(bytes, at),
            b'-' | b'0'..=b'9' => {
                let rest = &text[at..];
                let end = rest
                    .find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
                    .unwrap_or(rest.len());
                if is_out_of_range(&rest[..end]) {
                    return Some(position(text, at));
                }
                at += end;
            }
            _ => at += 1,
        }
    }
    None
}

/// The same in a YAML document, among its plain scalars.
pub(super) fn out_of_range_in_yaml(text: &str) -> Option<(usize, usize)> {
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else {
            return None;
        };
        if let Event::Scalar(value, ScalarStyle::Plain, ..) = event
            && is_out_of_range(&value.replace('_', ""))
        {
            return Some((span.start.line(), span.start.col() + 1));
        }
    }
    None
}

/// Index behind the text that begins at `at`.
fn end_of_text(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

fn is_out_of_range(number: &str) -> bool {
    let digits = number.strip_prefix(['-', '+']).unwrap_or(number);
    !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && number.parse::<i64>().is_err()
        && number.parse::<u64>().is_err()
}

fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    (before.matches('\n').count() + 1, column)
}
