//! Splits an output at its document markers.
//!
//! A line that begins with `---`, alone or followed by a blank, is always a marker: YAML forbids it in block and quoted
//! texts, where it would have to be indented, and JSON has no line ends in texts.

use super::{DesiredError, MAX_DOCUMENTS};

/// A document with content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Document<'a> {
    /// Its text, with the marker that begins it.
    pub(super) text: &'a str,
    /// Line of its first character in the output, from 1.
    pub(super) line: usize,
}

impl<'a> Document<'a> {
    /// The text behind the marker, if it is on one line with content or alone.
    pub(super) fn body(&self) -> &'a str {
        if is_marker(self.text) {
            &self.text[3..]
        } else {
            self.text
        }
    }
}

/// The documents that hold more than blanks and comments.
pub(super) fn split(text: &str) -> Result<Vec<Document<'_>>, DesiredError> {
    let mut documents = Vec::new();
    let mut start = (0, 1);
    let mut has = Content::Nothing;
    let mut offset = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if is_marker(line) {
            if has == Content::Some {
                documents.push(Document {
                    text: &text[start.0..offset],
                    line: start.1,
                });
            }
            // Directives belong to the document behind the marker.
            if has != Content::Directives {
                start = (offset, index + 1);
            }
            has = content_of(&line[3..]);
        } else {
            has = has.max(content_of(line));
        }
        offset += line.len();
        if documents.len() >= MAX_DOCUMENTS {
            return Err(DesiredError::TooManyDocuments {
                limit: MAX_DOCUMENTS,
            });
        }
    }
    if has == Content::Some {
        documents.push(Document {
            text: &text[start.0..],
            line: start.1,
        });
    }
    Ok(documents)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Content {
    Nothing,
    Directives,
    Some,
}

fn content_of(line: &str) -> Content {
    let trimmed = line.trim_matches([' ', '\t', '\r', '\n']);
    match trimmed.as_bytes().first() {
        None | Some(b'#') => Content::Nothing,
        Some(b'.') if trimmed == "..." => Content::Nothing,
        Some(b'%') if line.starts_with('%') => Content::Directives,
        Some(_) => Content::Some,
    }
}

fn is_marker(line: &str) -> bool {
    line.strip_prefix("---")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}
