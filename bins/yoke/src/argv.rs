//! Arguments in either style of flag → what the parser reads: `-name` and `--name` are the same, a flag's value is never
//! touched, and a switch may say `=false`.
//!
//! What is a flag, and whether it has a value, comes from the parser's own description of the command, so there is no
//! second list to keep.

use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgAction, Command};

/// Rewrites the arguments (the program's name first) for a [built](Command::build) description of the command.
///
/// - `-name`, `-name=value`, `-name value` become `--name`, `--name=value`; the value is taken as it is, whatever it
///   begins with (`-timeout -1s`).
/// - A switch given as `-name=false` is dropped, with what was said of it before: the last one counts.
/// - Everything from the first `--` on stays as it is: those are the flight's arguments.
/// - `-`, and what does not begin with a dash, is no flag. The first of them is the command's name.
/// - A flag that nobody knows is passed on with two dashes, so that the parser names it.
pub(crate) fn normalize(args: impl IntoIterator<Item = OsString>, root: &Command) -> Vec<OsString> {
    let mut args = args.into_iter();
    let mut out: Vec<OsString> = args.next().into_iter().collect();
    let mut command = root;
    while let Some(arg) = args.next() {
        if arg == "--" {
            out.push(arg);
            out.extend(args);
            break;
        }
        let Some((name, value)) = flag(&arg) else {
            // The first is the command; what follows may be one of its own.
            let below = arg.to_str().and_then(|name| command.find_subcommand(name));
            if let Some(below) = below {
                command = below;
            }
            out.push(arg);
            continue;
        };
        match Form::of(&name, command, root) {
            Form::Short => out.push(arg),
            Form::Unknown => out.push(long(&name, value.as_deref())),
            Form::Switch => match value.as_deref().map(go_bool) {
                None | Some(Some(true)) => out.push(long(&name, None)),
                Some(Some(false)) => {
                    let said = long(&name, None);
                    out.retain(|earlier| *earlier != said);
                }
                // The parser says what is wrong with it.
                Some(None) => out.push(long(&name, value.as_deref())),
            },
            Form::Choice => {
                let word = match value.as_deref().map_or(Some(true), go_bool) {
                    Some(true) => OsString::from("true"),
                    Some(false) => OsString::from("false"),
                    None => value.unwrap_or_default(),
                };
                out.push(long(&name, Some(&word)));
            }
            Form::Value => match value {
                Some(value) => out.push(long(&name, Some(&value))),
                None => match args.next() {
                    Some(end) if end == "--" => {
                        out.push(long(&name, None));
                        out.push(end);
                        out.extend(args);
                        break;
                    }
                    next => out.push(long(&name, next.as_deref())),
                },
            },
        }
    }
    out
}

/// What kind of flag a name is.
enum Form {
    /// There or not there.
    Switch,
    /// A switch whose absence is neither yes nor no: it reaches the parser with its value.
    Choice,
    /// Has a value.
    Value,
    /// One letter that the parser knows with one dash: `-h`.
    Short,
    Unknown,
}

impl Form {
    fn of(name: &str, command: &Command, root: &Command) -> Self {
        let known = |arg: &&Arg| arg.get_long() == Some(name);
        let global = || {
            root.get_arguments()
                .filter(|arg| arg.is_global_set())
                .find(known)
        };
        let Some(arg) = command.get_arguments().find(known).or_else(global) else {
            let mut letters = name.chars();
            let short = letters.next().filter(|_| letters.next().is_none());
            let is_short = |arg: &Arg| arg.get_short().is_some() && arg.get_short() == short;
            return if command.get_arguments().any(is_short) {
                Self::Short
            } else {
                Self::Unknown
            };
        };
        match arg.get_action() {
            ArgAction::Set | ArgAction::Append if arg.is_require_equals_set() => Self::Choice,
            ArgAction::Set | ArgAction::Append => Self::Value,
            _ => Self::Switch,
        }
    }
}

/// The name and the value after `=` of what is written as a flag.
///
/// A name is always text; a value may be any bytes, since it may be a path.
fn flag(arg: &OsStr) -> Option<(String, Option<OsString>)> {
    let bytes = arg.as_encoded_bytes();
    let rest = bytes.strip_prefix(b"-")?;
    let rest = rest.strip_prefix(b"-").unwrap_or(rest);
    if rest.is_empty() || rest.starts_with(b"=") {
        return None;
    }
    let end = rest.iter().position(|byte| *byte == b'=');
    let name = str::from_utf8(&rest[..end.unwrap_or(rest.len())]).ok()?;
    let Some(end) = end else {
        return Some((name.to_owned(), None));
    };
    Some((name.to_owned(), Some(os_string(&rest[end + 1..]))))
}

#[cfg(unix)]
fn os_string(bytes: &[u8]) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes.to_vec())
}

#[cfg(not(unix))]
fn os_string(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

fn long(name: &str, value: Option<&OsStr>) -> OsString {
    let mut out = OsString::from("--");
    out.push(name);
    if let Some(value) = value {
        out.push("=");
        out.push(value);
    }
    out
}

/// The words of Go's `strconv.ParseBool`.
fn go_bool(word: &OsStr) -> Option<bool> {
    match word.to_str()? {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
