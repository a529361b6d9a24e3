//! Schematics: what a module carries for its users beside its code, a text or a command to run, in custom sections.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::section::{CustomSection, SectionError, append, custom_sections, without};

/// Before the name of a schematic whose content is given as it is.
const STATIC: &str = "yoke.schematics:";
/// Before the name of a schematic that is a command.
const COMMAND: &str = "yoke.schematics.cmd:";

/// How large a schematic that is set may be: 16 MiB. It is part of a module, which every run of it fetches.
pub const MAX_SCHEMATIC_BYTES: usize = 16 << 20;

/// How many words a command may have: 4,096, far more than any has.
pub const MAX_COMMAND_WORDS: usize = 4096;

/// How many schematics of a module are listed: 10,000. More are an error: only a hostile module has them.
pub const MAX_SCHEMATICS: usize = 10_000;

/// How many schematics an error names: 20.
const MAX_NAMED: usize = 20;

/// How much of each name: 100 letters.
const MAX_NAME_SHOWN: usize = 100;

/// What a module carries under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schematic {
    /// Bytes as they were set.
    Static(Vec<u8>),
    /// Arguments to run the module with; what it then prints is the content.
    Command(Vec<String>),
}

/// What is wrong with a schematic.
#[derive(Debug, thiserror::Error)]
pub enum SchematicError {
    /// The module cannot be read.
    #[error(transparent)]
    Module(#[from] SectionError),
    /// There is none of that name.
    #[error("there is no schematic '{name}' in this module{}", others(there))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        there: Vec<String>,
    },
    /// Too many to be meant.
    #[error("the module has more than {limit} schematics")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// A schematic without a name.
    #[error("a schematic needs a name")]
    Nameless,
    /// A schematic without content.
    #[error("the content of schematic '{name}' is empty")]
    Empty {
        /// Its name.
        name: String,
    },
    /// More content than may be set.
    #[error("the content of schematic '{name}' is larger than {limit} bytes")]
    TooLarge {
        /// Its name.
        name: String,
        /// The limit.
        limit: usize,
    },
    /// A command with more words than any has.
    #[error("a command of more than {limit} words cannot be used")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// What is given is no list of words.
    #[error(
        "a command is a list of words in JSON or YAML, like [\"-schema\"], and this is not one: {why}"
    )]
    NoCommand {
        /// What the parser said.
        why: String,
    },
    /// What the module holds is no list of words.
    #[error("schematic '{name}' of this module is damaged: it is no JSON list of words")]
    Damaged {
        /// Its name.
        name: String,
        /// What the parser said.
        #[source]
        source: serde_json::Error,
    },
}

fn others(there: &[String]) -> String {
    match there {
        [] => "; it has none".to_owned(),
        some => {
            let shown = some.iter().take(MAX_NAMED).map(|name| cut(name));
            let shown = shown.collect::<Vec<_>>().join(", ");
            match some.len().saturating_sub(MAX_NAMED) {
                0 => format!("; it has: {shown}"),
                more => format!("; it has: {shown} and {more} more"),
            }
        }
    }
}

fn cut(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME_SHOWN) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
        None => name.to_owned(),
    }
}

/// The names of a module's schematics, commands first, both in order of their names.
pub fn schematic_names(module: &[u8]) -> Result<Vec<String>, SchematicError> {
    let mut found = BTreeSet::new();
    for section in custom_sections(module)? {
        let section = section?;
        let full = String::from_utf8_lossy(section.name);
        if full.starts_with(STATIC) || full.starts_with(COMMAND) {
            found.insert(full.into_owned());
        }
        if found.len() > MAX_SCHEMATICS {
            let limit = MAX_SCHEMATICS;
            return Err(SchematicError::TooMany { limit });
        }
    }
    let bare = |full: &String| full.split_once(':').map(|(_, name)| name.to_owned());
    Ok(found.iter().filter_map(bare).collect())
}

/// The schematic of this name. Of several, which `set` leaves nowhere, it is the first.
pub fn schematic(module: &[u8], name: &str) -> Result<Schematic, SchematicError> {
    for section in custom_sections(module)? {
        let section = section?;
        if is(&section, STATIC, name) {
            return Ok(Schematic::Static(section.data.to_vec()));
        }
        if is(&section, COMMAND, name) {
            return command_of_section(name, section.data);
        }
    }
    Err(SchematicError::Unknown {
        name: name.to_owned(),
        there: schematic_names(module)?,
    })
}

/// The module with this schematic at its end, in place of all that it had under the name. No other byte is changed.
pub fn set_schematic(
    module: &[u8],
    name: &str,
    schematic: &Schematic,
) -> Result<Vec<u8>, SchematicError> {
    let (prefix, data) = match schematic {
        Schematic::Static(data) => (STATIC, std::borrow::Cow::Borrowed(&data[..])),
        Schematic::Command(words) => (COMMAND, json(words).into()),
    };
    if name.is_empty() {
        return Err(SchematicError::Nameless);
    }
    if data.is_empty() {
        let name = name.to_owned();
        return Err(SchematicError::Empty { name });
    }
    if data.len() > MAX_SCHEMATIC_BYTES {
        return Err(SchematicError::TooLarge {
            name: name.to_owned(),
            limit: MAX_SCHEMATIC_BYTES,
        });
    }
    let mut out = without(module, |section| {
        is(section, STATIC, name) || is(section, COMMAND, name)
    })?;
    append(&mut out, &format!("{prefix}{name}"), &data)?;
    Ok(out)
}

/// A command as a user writes it: a list of words in JSON or YAML.
pub fn parse_command(text: &[u8]) -> Result<Vec<String>, SchematicError> {
    let no = |why: String| SchematicError::NoCommand { why };
    if text.len() > MAX_SCHEMATIC_BYTES {
        return Err(no(format!("it is larger than {MAX_SCHEMATIC_BYTES} bytes")));
    }
    let text = std::str::from_utf8(text).map_err(|error| no(error.to_string()))?;
    if text.trim().is_empty() {
        return Err(no("it is empty".to_owned()));
    }
    let one_line = |words: String| words.lines().next().unwrap_or_default().to_owned();
    let words: Words =
        serde_saphyr::from_str(text).map_err(|error| no(one_line(error.to_string())))?;
    bounded(words)
}

/// What a module holds as a command.
fn command_of_section(name: &str, data: &[u8]) -> Result<Schematic, SchematicError> {
    if data.len() > MAX_SCHEMATIC_BYTES {
        return Err(SchematicError::TooLarge {
            name: name.to_owned(),
            limit: MAX_SCHEMATIC_BYTES,
        });
    }
    let words: Words = serde_json::from_slice(data).map_err(|source| SchematicError::Damaged {
        name: name.to_owned(),
        source,
    })?;
    bounded(words).map(Schematic::Command)
}

fn bounded(words: Words) -> Result<Vec<String>, SchematicError> {
    if words.more {
        let limit = MAX_COMMAND_WORDS;
        return Err(SchematicError::TooLong { limit });
    }
    Ok(words.first)
}

/// A list of words of which no more are kept than a command may have: each takes ten times what it has in the text.
struct Words {
    first: Vec<String>,
    more: bool,
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Counting;
        impl<'de> Visitor<'de> for Counting {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence of words")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
                let mut first = Vec::new();
                while first.len() < MAX_COMMAND_WORDS {
                    match list.next_element()? {
                        Some(word) => first.push(word),
                        None => return Ok(Words { first, more: false }),
                    }
                }
                let mut more = false;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    more = true;
                }
                Ok(Words { first, more })
            }
        }
        from.deserialize_seq(Counting)
    }
}

fn json(words: &[String]) -> Vec<u8> {
    serde_json::Value::from(words).to_string().into_bytes()
}

fn is(section: &CustomSection<'_>, prefix: &str, name: &str) -> bool {
    section.name.strip_prefix(prefix.as_bytes()) == Some(name.as_bytes())
}

#[cfg(test)]
mod tests;
