//! Standard input: the resources themselves, or the input of a flight.

use std::io::IsTerminal as _;

use anyhow::{Context as _, bail};
use tokio::io::AsyncReadExt as _;

/// Bytes of resources on stdin: as many as a flight may print.
pub(crate) const MAX_RESOURCES: u64 = 64 << 20;
/// Bytes of a flight's input. A quarter of what a flight can address at most, so that it could hold it at all.
pub(crate) const MAX_INPUT: u64 = 1 << 30;

/// All of stdin; `None` if it is a terminal, which is never read.
///
/// # Errors
/// More than `limit` bytes.
pub(crate) async fn read(limit: u64) -> anyhow::Result<Option<Vec<u8>>> {
    if std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    tokio::io::stdin()
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .await
        .context("cannot read stdin")?;
    if bytes.len() as u64 > limit {
        bail!("stdin has more than {limit} bytes");
    }
    Ok(Some(bytes))
}
