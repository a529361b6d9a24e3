//! Reads a local file, within bounds.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::artifact::Content;
use crate::error::ArtifactError;
use crate::unpack::unpack;

/// How long reading a local file may take: 30 s. Only a file system over a network can be that slow.
pub const FILE_TIMEOUT: Duration = Duration::from_secs(30);

/// The unpacked content of a file. Blocks.
pub(crate) fn read(path: &Path, max_bytes: u64) -> Result<Content, ArtifactError> {
    let failed = |source| ArtifactError::File {
        path: path.to_owned(),
        source: Arc::new(source),
    };
    // Asked before opening: opening a pipe waits until somebody writes to it.
    refuse_others(path, &std::fs::metadata(path).map_err(failed)?)?;
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    refuse_others(path, &metadata)?;
    let location = || path.display().to_string();
    let too_large = || ArtifactError::TooLarge {
        location: location(),
        limit: max_bytes,
        unpacked: false,
    };
    if metadata.len() > max_bytes {
        return Err(too_large());
    }
    let mut data = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    // The length above may be a lie (files of /proc) or out of date.
    file.take(max_bytes.saturating_add(1))
        .read_to_end(&mut data)
        .map_err(failed)?;
    if data.len() as u64 > max_bytes {
        return Err(too_large());
    }
    Ok(Content::digest(unpack(data, max_bytes, &location())?))
}

fn refuse_others(path: &Path, metadata: &std::fs::Metadata) -> Result<(), ArtifactError> {
    if metadata.is_file() {
        return Ok(());
    }
    let what = if metadata.is_dir() {
        "a directory"
    } else {
        "a pipe, a device or a socket"
    };
    Err(ArtifactError::NotAFile {
        path: path.to_owned(),
        what,
    })
}
