//! What a flight prints: resources, in stages if it likes.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

/// The resources that shall exist. What an earlier run of the flight gave and this one does not is removed.
///
/// Resources of one stage are applied together; the next stage waits until they are ready. Without [`Output::stage`]
/// there is one stage. An output without any resource is good too: it removes what was there.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Never empty: the last one takes what is pushed.
    stages: Vec<Vec<Value>>,
}

/// Why an output cannot be made or printed.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// A value does not serialize, for example a map whose keys are no strings.
    #[error("cannot print a resource as JSON")]
    Serialize(#[source] serde_json::Error),
    /// Stdout does not take it. Hosts bound how much it takes (usually 64 MiB).
    #[error("cannot write the output")]
    Write(#[source] io::Error),
}

impl Default for Output {
    fn default() -> Self {
        Self::new()
    }
}

impl Output {
    /// No resources.
    pub fn new() -> Self {
        Self {
            stages: vec![Vec::new()],
        }
    }

    /// Adds a resource to the last stage.
    ///
    /// # Errors
    /// When the value does not serialize.
    pub fn push(&mut self, resource: impl Serialize) -> Result<&mut Self, OutputError> {
        let value = serde_json::to_value(resource).map_err(OutputError::Serialize)?;
        if let Some(last) = self.stages.last_mut() {
            last.push(value);
        }
        Ok(self)
    }

    /// Begins a new stage; does nothing when the last one is still empty.
    pub fn stage(&mut self) -> &mut Self {
        if self.stages.last().is_some_and(|last| !last.is_empty()) {
            self.stages.push(Vec::new());
        }
        self
    }

    /// The stages, without empty ones: for tests.
    pub fn stages(&self) -> impl Iterator<Item = &[Value]> {
        self.stages
            .iter()
            .map(Vec::as_slice)
            .filter(|stage| !stage.is_empty())
    }

    /// Writes it to stdout: a list of resources, or a list of such lists when there are several stages. To be called
    /// once, and by whoever does not use [`run`](crate::run).
    ///
    /// # Errors
    /// When stdout does not take it.
    pub fn print(&self) -> Result<(), OutputError> {
        let mut stdout = io::stdout().lock();
        self.write(&mut stdout)
    }

    fn write(&self, to: &mut impl Write) -> Result<(), OutputError> {
        let stages: Vec<&[Value]> = self.stages().collect();
        match stages.as_slice() {
            [] => write_json(to, &[Value::Null; 0]),
            [one] => write_json(to, one),
            several => write_json(to, several),
        }
    }
}

/// Writes resources to stdout without an [`Output`]: a list of resources is one stage, a list of lists of resources one
/// stage each. To be called once.
///
/// # Errors
/// When a value does not serialize or stdout does not take it.
pub fn print(resources: &[impl Serialize]) -> Result<(), OutputError> {
    write_json(&mut io::stdout().lock(), resources)
}

fn write_json(to: &mut impl Write, resources: &[impl Serialize]) -> Result<(), OutputError> {
    let mut text = serde_json::to_vec(resources).map_err(OutputError::Serialize)?;
    text.push(b'\n');
    to.write_all(&text)
        .and_then(|()| to.flush())
        .map_err(OutputError::Write)
}

#[cfg(test)]
mod tests;
