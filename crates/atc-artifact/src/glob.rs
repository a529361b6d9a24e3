//! Globs with the rules of Go's `path.Match`, which allow lists are written in. They differ from every other glob:
//! `{a,b}` is literal, `[^a]` is the negation and `[!a]` is not, and `*` never crosses a `/`, not even doubled.

use std::fmt;
use std::str::FromStr;

/// A well-formed glob.
///
/// | written | matches |
/// | --- | --- |
/// | `*` | any bytes but `/` |
/// | `?` | one character but `/` |
/// | `[ab0-9]`, `[^ab0-9]` | one character that is, or is not, among these |
/// | `\x` | the character `x` |
/// | anything else | itself |
#[derive(Clone, PartialEq, Eq)]
pub struct Glob {
    text: String,
    chunks: Vec<Chunk>,
}

/// Why a text is no glob.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{glob}' is no glob: {why}")]
pub struct GlobError {
    /// The text.
    pub glob: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// What stands between two stars, with the star before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Chunk {
    star: bool,
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    Byte(u8),
    Any,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl FromStr for Glob {
    type Err = GlobError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let chunks = parse(text).map_err(|why| GlobError {
            glob: text.to_owned(),
            why,
        })?;
        let text = text.to_owned();
        Ok(Self { text, chunks })
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Glob({self})")
    }
}

impl Glob {
    /// Whether it matches the whole name.
    ///
    /// As in Go, a chunk after a star is looked for from left to right and taken where it is found first: there is no
    /// way back, so the time is bounded by the product of both lengths.
    pub fn matches(&self, name: &str) -> bool {
        let mut rest = name.as_bytes();
        for (nth, chunk) in self.chunks.iter().enumerate() {
            let last = nth + 1 == self.chunks.len();
            match chunk.find(rest, last) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        rest.is_empty()
    }
}

impl Chunk {
    /// What is left after this chunk was found: here, or after a star at the first place before a `/`. The last chunk
    /// must leave nothing.
    fn find<'a>(&self, name: &'a [u8], last: bool) -> Option<&'a [u8]> {
        if self.terms.is_empty() {
            let free = !name.contains(&b'/');
            return if self.star {
                free.then_some(&[])
            } else {
                Some(name)
            };
        }
        let fits = |rest: &&[u8]| !last || rest.is_empty();
        let mut from = name;
        loop {
            if let Some(rest) = self.strip(from).filter(fits) {
                return Some(rest);
            }
            match from {
                [first, after @ ..] if self.star && *first != b'/' => from = after,
                _ => return None,
            }
        }
    }

    /// What is left if the name begins with this chunk.
    fn strip<'a>(&self, name: &'a [u8]) -> Option<&'a [u8]> {
        self.terms
            .iter()
            .try_fold(name, |rest, term| term.strip(rest))
    }
}

impl Term {
    fn strip<'a>(&self, name: &'a [u8]) -> Option<&'a [u8]> {
        let (first, after) = name.split_first()?;
        match self {
            Self::Byte(byte) => (first == byte).then_some(after),
            Self::Any if *first == b'/' => None,
            Self::Any => Some(next_char(name).1),
            Self::Class { negated, ranges } => {
                let (char, after) = next_char(name);
                let inside = ranges
                    .iter()
                    .any(|(low, high)| (*low..=*high).contains(&char));
                (inside != *negated).then_some(after)
            }
        }
    }
}

/// The first character and the rest. A star may have stopped within a character: then it is one byte, and the character
/// is the one for what cannot be read, as in Go.
fn next_char(name: &[u8]) -> (char, &[u8]) {
    let head = name.get(..4).unwrap_or(name);
    let valid = head.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let char = valid.chars().next();
    let len = char.map_or(1, char::len_utf8);
    (
        char.unwrap_or(char::REPLACEMENT_CHARACTER),
        name.get(len..).unwrap_or_default(),
    )
}

fn parse(text: &str) -> Result<Vec<Chunk>, &'static str> {
    let mut chunks = vec![Chunk::default()];
    let mut rest = text.chars();
    let mut term = |star: bool, terms: &[Term]| match chunks.last_mut() {
        Some(chunk) if !star => chunk.terms.extend_from_slice(terms),
        // A star after a star changes nothing.
        Some(chunk) if chunk.terms.is_empty() => chunk.star = true,
        _ => chunks.push(Chunk {
            star: true,
            terms: Vec::new(),
        }),
    };
    while let Some(char) = rest.next() {
        match char {
            '*' => term(true, &[]),
            '?' => term(false, &[Term::Any]),
            '[' => term(false, &[class(&mut rest)?]),
            '\\' => term(false, &literal(rest.next().ok_or("it ends with a '\\'")?)),
            char => term(false, &literal(char)),
        }
    }
    Ok(chunks)
}

fn literal(char: char) -> Vec<Term> {
    let mut buffer = [0; 4];
    char.encode_utf8(&mut buffer)
        .bytes()
        .map(Term::Byte)
        .collect()
}

/// What stands between `[` and `]`.
fn class(rest: &mut std::str::Chars<'_>) -> Result<Term, &'static str> {
    let negated = rest.as_str().starts_with('^');
    if negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    loop {
        if rest.as_str().starts_with(']') && !ranges.is_empty() {
            rest.next();
            return Ok(Term::Class { negated, ranges });
        }
        let low = member(rest)?;
        let high = if rest.as_str().starts_with('-') {
            rest.next();
            member(rest)?
        } else {
            low
        };
        ranges.push((low, high));
    }
}

/// One end of a range. Something must follow it, at least the `]`.
fn member(rest: &mut std::str::Chars<'_>) -> Result<char, &'static str> {
    const UNCLOSED: &str = "a '[' is not closed";
    let char = match rest.next().ok_or(UNCLOSED)? {
        '-' | ']' => return Err("within '[' and ']', a '-' or ']' that is meant needs a '\\'"),
        '\\' => rest.next().ok_or(UNCLOSED)?,
        char => char,
    };
    if rest.as_str().is_empty() {
        return Err(UNCLOSED);
    }
    Ok(char)
}

#[cfg(test)]
mod tests;
