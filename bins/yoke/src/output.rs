//! Standard output: data alone, byte for byte.

use std::io::{ErrorKind, Write as _};

use anyhow::Context as _;
use atc_engine::release::drift;
use serde_json::Value;

use crate::cli::Data;

/// The reader of stdout has gone. No matter for a message, and no error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stdout is closed")
    }
}

impl std::error::Error for Closed {}

/// Writes all of it, on a thread that may block: a slow reader holds up no signal.
///
/// # Errors
/// [`Closed`], or what the system says.
pub(crate) async fn write(bytes: impl AsRef<[u8]> + Send + 'static) -> anyhow::Result<()> {
    let written = tokio::task::spawn_blocking(move || {
        let mut stdout = std::io::stdout().lock();
        stdout
            .write_all(bytes.as_ref())
            .and_then(|()| stdout.flush())
    });
    match written.await.context("cannot write to stdout")? {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Closed.into()),
        result => result.context("cannot write to stdout"),
    }
}

/// Writes a value in this form.
///
/// # Errors
/// As [`write`].
pub(crate) async fn write_data(value: &Value, form: Data) -> anyhow::Result<()> {
    let text = match form {
        Data::Json => serde_json::to_string_pretty(value)? + "\n",
        Data::Yaml => drift::yaml(value)?,
    };
    write(text).await
}
