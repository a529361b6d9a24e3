//! What users read on stderr: errors with their causes and hints, warnings, what was done.
//!
//! A closed stderr is no matter: there is nobody to tell.

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};

use atc_engine::EngineError;
use atc_engine::api::ResourceRef;
use atc_engine::release::cluster::WaitError;
use tracing_subscriber::EnvFilter;

mod hint;
mod table;

pub(crate) use hint::Hinted;
pub(crate) use table::table;

/// Objects that are named one by one; of more only the number is told. Two or three screens hold them all.
const NAMED: usize = 20;

const RED: &str = "31";
const YELLOW: &str = "33";
const CYAN: &str = "36";

/// Whether a stream that is or is not a terminal gets colours: not where `NO_COLOR` says something (<https://no-color.org>).
pub(crate) fn coloured(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints an error: its causes in one line, each once, objects that were refused one a line, then what may help.
pub(crate) fn error(error: &anyhow::Error) {
    let (line, items) = words(error);
    label("error", RED, line);
    list(&items);
    for hint in hint::hints(error) {
        label("hint", CYAN, hint);
    }
}

/// Prints what a message is about, one a line, the first ones.
pub(crate) fn list(items: &[String]) {
    let shown = items.iter().take(NAMED).map(|item| printable(item));
    let mut lines: Vec<String> = shown.map(|item| format!("  - {item}\n")).collect();
    if items.len() > NAMED {
        lines.push(format!("  … and {} more\n", items.len() - NAMED));
    }
    text(&lines.concat());
}

/// The first names of many, and how many more there are.
pub(crate) fn names(names: &[impl Display]) -> String {
    let mut shown: Vec<String> = names.iter().take(NAMED).map(ToString::to_string).collect();
    if names.len() > NAMED {
        shown.push(format!("and {} more", names.len() - NAMED));
    }
    shown.join(", ")
}

/// A resource by name, for a person: what lies in no namespace has none in front.
pub(crate) fn resource(resource: &ResourceRef) -> String {
    resource.to_string().trim_start_matches('/').to_owned()
}

/// Prints that something is not as it perhaps should be.
pub(crate) fn warning(message: impl Display) {
    label("warning", YELLOW, message);
}

/// Prints what was done.
pub(crate) fn message(message: impl Display) {
    text(&format!("{}\n", printable(&message.to_string())));
}

fn label(word: &str, colour: &str, message: impl Display) {
    let message = printable(&message.to_string());
    if coloured(std::io::stderr().is_terminal()) {
        text(&format!("\x1b[1;{colour}m{word}:\x1b[0m {message}\n"));
    } else {
        text(&format!("{word}: {message}\n"));
    }
}

fn text(text: &str) {
    // In one write, so that lines of others do not fall between.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// An error and its causes in one line, and the objects that it is about where there are several.
fn words(error: &anyhow::Error) -> (String, Vec<String>) {
    let mut line = String::new();
    let mut items = Vec::new();
    for cause in error.chain() {
        let words = match cause.downcast_ref::<EngineError>() {
            Some(EngineError::Refused { step, failures, .. }) if failures.len() > 1 => {
                items.clone_from(failures);
                format!("{step}: {} objects were refused", failures.len())
            }
            _ => {
                items.extend(details(cause));
                cause.to_string()
            }
        };
        let words = words.trim();
        // A cause that its parent has repeated already.
        if words.is_empty() || line.ends_with(words) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(words);
    }
    (line, items)
}

/// What is known of the objects that are not ready, one line each.
fn details(cause: &(dyn std::error::Error + 'static)) -> Vec<String> {
    let waited = cause
        .downcast_ref::<WaitError>()
        .or_else(|| Some(&**cause.downcast_ref::<Box<WaitError>>()?));
    let objects = waited.map(WaitError::objects).unwrap_or_default();
    let lines = objects
        .iter()
        .flat_map(|unready| unready.details.iter().map(|line| (&unready.object, line)));
    lines
        .map(|(object, line)| format!("{object}: {line}"))
        .collect()
}

/// Text of others without what would steer a terminal: control characters but line ends and tabs are shown as escapes.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && !matches!(c, '\n' | '\t') {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Warnings of the libraries go to stderr; with `-debug` their timings do too.
pub(crate) fn start_logging(debug: bool) {
    const OURS: [&str; 5] = [
        "atc_engine",
        "atc_flight",
        "atc_artifact",
        "atc_release",
        "atc_access",
    ];
    let level = if debug { "debug" } else { "warn" };
    // What other crates log is in the errors that they return.
    let filter = OURS
        .iter()
        .fold(format!("off,yoke={level}"), |filter, ours| {
            format!("{filter},{ours}={level}")
        });
    let filter = EnvFilter::new(filter);
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(coloured(std::io::stderr().is_terminal()))
        .with_target(false)
        // By default a closed stderr ends the process with a panic.
        .log_internal_errors(false);
    // A subscriber is set once; nobody did before.
    let _ = if debug {
        lines
            .with_timer(tracing_subscriber::fmt::time::uptime())
            .try_init()
    } else {
        lines.without_time().try_init()
    };
}

#[cfg(test)]
mod tests;
