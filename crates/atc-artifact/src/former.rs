//! Modules that the existing tool has kept in the same folder: for the switch from it, while the server of a module is
//! away. They are only read.
//!
//! It keeps a module as `<folder>/<SHA-1 of the URL's text>`, packed with gzip, and never asks for it again.

use std::fs;
use std::path::Path;

use crate::artifact::Content;
use crate::file;

/// The module that was kept under this name, if there is one that nobody else could have put there. Blocks.
pub(crate) fn read(dir: &Path, name: &str, max_bytes: u64) -> Option<Content> {
    let path = dir.join(name);
    let metadata = fs::symlink_metadata(&path).ok()?;
    if !metadata.is_file() {
        return None;
    }
    if !is_trusted(&metadata, dir) {
        tracing::warn!(file = %path.display(), "not taking a module that the existing tool has kept: others can write to it, or own it");
        return None;
    }
    match file::read(&path, max_bytes) {
        Ok(content) => Some(content),
        Err(error) => {
            tracing::warn!(file = %path.display(), error = &error as &dyn std::error::Error, "cannot read a module that the existing tool has kept");
            None
        }
    }
}

/// Whether only this user, its group or the system's administrator could have written it: the folder may be one for all.
#[cfg(unix)]
fn is_trusted(metadata: &fs::Metadata, dir: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    /// The administrator, who can write everything.
    const ROOT: u32 = 0;
    let owner = metadata.uid();
    let is_ours = || crate::store::our_id(dir).is_ok_and(|ours| ours == owner);
    metadata.mode() & 0o002 == 0 && (owner == ROOT || is_ours())
}

#[cfg(not(unix))]
fn is_trusted(_: &fs::Metadata, _: &Path) -> bool {
    true
}
