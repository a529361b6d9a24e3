//! What a cache folder holds, for whoever wants to look at it or to make room. Nothing is loaded here.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::FOLDER;
use super::folder::Folder;

/// The compiled modules below a cache folder.
pub struct CompiledFiles(Folder);

/// A compiled module on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledFile {
    /// The file's name: a hash of what it was compiled from and for.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was used last.
    pub used: SystemTime,
}

impl CompiledFiles {
    /// Those below `dir`, the folder of [`RuntimeOptions::cache_dir`](crate::RuntimeOptions::cache_dir); `None` where
    /// nothing was ever kept there. Nothing is created.
    ///
    /// # Errors
    /// Also if the folder belongs to somebody else or is open to others.
    pub fn open(dir: &Path) -> io::Result<Option<Self>> {
        if !dir.join(FOLDER).try_exists()? {
            return Ok(None);
        }
        Folder::open(dir, FOLDER).map(|folder| Some(Self(folder)))
    }

    /// All of them, the least recently used first.
    pub fn list(&self) -> io::Result<Vec<CompiledFile>> {
        let files = self.0.files()?.into_iter().map(|found| CompiledFile {
            name: found.name(),
            bytes: found.size,
            used: found.used(),
        });
        Ok(files.collect())
    }

    /// Removes one; false if it was gone already. Who has it loaded keeps it.
    ///
    /// # Errors
    /// If it is there and stays there.
    pub fn remove(&self, name: &str) -> io::Result<bool> {
        self.0.take_away(name)
    }
}
