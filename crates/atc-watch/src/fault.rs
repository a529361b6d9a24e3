//! From what the client says to why a watch does not get on.

use std::error::Error;

use kube::core::Status;

use crate::health::{Fault, FaultKind};

/// Longest message that is kept, in characters: it goes into logs and health reports.
const MESSAGE_MAX: usize = 512;

impl Fault {
    pub(crate) fn new(kind: FaultKind, message: &str) -> Self {
        let message: String = message
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .take(MESSAGE_MAX)
            .collect();
        Self { kind, message }
    }

    pub(crate) fn of_status(status: &Status) -> Self {
        let kind = match status.code {
            // What the client makes of a line that is neither an event nor a status.
            0 => {
                return Self::new(
                    FaultKind::Unreadable,
                    "an event can't be read as JSON metadata",
                );
            }
            410 => FaultKind::Expired,
            404 => FaultKind::NoSuchKind,
            403 => FaultKind::Forbidden,
            401 => FaultKind::Unauthorized,
            405 | 406 => FaultKind::NotWatchable,
            _ if status.reason == "Expired" => FaultKind::Expired,
            _ => FaultKind::Server,
        };
        Self::new(
            kind,
            &format!(
                "the api server answered {}: {}",
                status.code, status.message
            ),
        )
    }

    pub(crate) fn of(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::of_status(status),
            kube::Error::SerdeError(error) => Self::of_json(error),
            kube::Error::Auth(_) => Self::new(FaultKind::Unauthorized, &chain(error)),
            other => Self::new(FaultKind::Unreachable, &chain(other)),
        }
    }

    /// Without the text that could not be read: a Secret's annotations may hold what nobody should see in a log.
    pub(crate) fn of_json(error: &serde_json::Error) -> Self {
        let place = format!("line {}, column {}", error.line(), error.column());
        Self::new(
            FaultKind::Unreadable,
            &format!("the answer can't be read as JSON metadata at {place}"),
        )
    }
}

/// An error and its sources, those left out that its text already holds.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}
