//! The public keys that count, and the files that hold them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::key::{KeyError, PublicKey};

/// How large a file of keys may be, or all of a folder together: 1 MiB. A key has a few KiB at most.
pub const MAX_KEY_FILE_BYTES: u64 = 1 << 20;

/// How many files and folders of a folder of keys are looked at: 1,000.
pub const MAX_KEY_FILES: usize = 1000;

/// Public keys by fingerprint. Not empty.
#[derive(Clone, Debug)]
pub struct KeySet {
    keys: BTreeMap<String, PublicKey>,
}

/// Why a file or folder gives no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It could not be read.
    #[error("cannot read key file \"{}\"", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// No file, or one that no key fills.
    #[error("\"{}\" is no file of keys: {what}", path.display())]
    NoKeyFile {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// It holds no key.
    #[error("there is no usable key in \"{}\"", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: KeyError,
    },
    /// A key of a list is none.
    #[error("key {nth} of \"{}\" is not usable", path.display())]
    KeyOfList {
        /// The file.
        path: PathBuf,
        /// Which one, from 1.
        nth: usize,
        /// Why not.
        #[source]
        source: KeyError,
    },
    /// A folder without keys.
    #[error("there is no key in folder \"{}\": they are looked for in files that end with .pem", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// A folder that was not made for keys.
    #[error("folder \"{}\" holds more than {limit} files and folders: give one with keys only", path.display())]
    TooMany {
        /// The folder.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
}

impl KeySet {
    /// A set of these; `None` without any.
    pub fn new(keys: impl IntoIterator<Item = PublicKey>) -> Option<Self> {
        let keys: BTreeMap<_, _> = keys
            .into_iter()
            .map(|key| (key.fingerprint().to_owned(), key))
            .collect();
        (!keys.is_empty()).then_some(Self { keys })
    }

    /// The keys of a file, or of all files of a folder that end with `.pem`, however deep.
    ///
    /// A file holds one key, of which its first PEM block counts, or a JSON array of such texts, as the existing
    /// tool's installer writes it.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        Self::parse(&KeyFiles::read(path)?)
    }

    /// The keys of files that were read.
    pub(crate) fn parse(files: &KeyFiles) -> Result<Self, KeyFileError> {
        let mut keys = Vec::new();
        for (path, content) in &files.contents {
            keys.extend(keys_of(path, content)?);
        }
        Self::new(keys).ok_or_else(|| KeyFileError::Empty {
            path: files.root.clone(),
        })
    }

    /// The key of this fingerprint, in lower-case hex.
    pub(crate) fn get(&self, fingerprint: &str) -> Option<&PublicKey> {
        self.keys.get(fingerprint)
    }

    /// All keys, in order of their fingerprints.
    pub fn keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.keys.values()
    }
}

/// What stands in files of keys. It may be a private one, so this is neither printed nor kept.
pub(crate) struct KeyFiles {
    root: PathBuf,
    contents: BTreeMap<PathBuf, Vec<u8>>,
}

impl KeyFiles {
    pub(crate) fn read(root: &Path) -> Result<Self, KeyFileError> {
        let mut contents = BTreeMap::new();
        let read = |source| read_error(root, source);
        if fs::metadata(root).map_err(read)?.is_dir() {
            let mut left = MAX_KEY_FILES;
            collect(root, root, &mut left, &mut contents)?;
        } else {
            contents.insert(root.to_owned(), content(root, MAX_KEY_FILE_BYTES)?);
        }
        Ok(Self {
            root: root.to_owned(),
            contents,
        })
    }

    /// A digest of all of it, to see whether it has changed.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for (path, content) in &self.contents {
            hash.update(Sha256::digest(path.as_os_str().as_encoded_bytes()));
            hash.update(Sha256::digest(content));
        }
        hash.finalize().into()
    }
}

/// All `.pem` files of a folder. Links are followed, since a mounted Secret consists of them; what begins with `..` is
/// where they lead to.
fn collect(
    root: &Path,
    folder: &Path,
    left: &mut usize,
    contents: &mut BTreeMap<PathBuf, Vec<u8>>,
) -> Result<(), KeyFileError> {
    let read = |source| read_error(folder, source);
    for entry in fs::read_dir(folder).map_err(read)? {
        let path = entry.map_err(read)?.path();
        *left = left.checked_sub(1).ok_or_else(|| KeyFileError::TooMany {
            path: root.to_owned(),
            limit: MAX_KEY_FILES,
        })?;
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if name.starts_with(b"..") {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, left, contents)?;
        } else if path.extension().is_some_and(|extension| extension == "pem") {
            let read: usize = contents.values().map(Vec::len).sum();
            let limit = MAX_KEY_FILE_BYTES.saturating_sub(read as u64);
            let content = content(&path, limit)?;
            contents.insert(path, content);
        }
    }
    Ok(())
}

fn content(path: &Path, limit: u64) -> Result<Vec<u8>, KeyFileError> {
    let no_key_file = |what| KeyFileError::NoKeyFile {
        path: path.to_owned(),
        what,
    };
    let read = |source| read_error(path, source);
    // Opening a pipe would wait for whoever writes to it.
    if !fs::metadata(path).map_err(read)?.is_file() {
        return Err(no_key_file("a pipe, a device or a socket stands there"));
    }
    let mut content = Vec::new();
    let file = File::open(path).map_err(read)?;
    file.take(limit + 1)
        .read_to_end(&mut content)
        .map_err(read)?;
    if content.len() as u64 > limit {
        return Err(no_key_file(
            "it is larger than 1 MiB, alone or with the others",
        ));
    }
    Ok(content)
}

/// One key in PEM, or a JSON array of them.
fn keys_of(path: &Path, content: &[u8]) -> Result<Vec<PublicKey>, KeyFileError> {
    let path = || path.to_owned();
    if content.trim_ascii_start().first() != Some(&b'[') {
        let key = PublicKey::from_pem(content);
        return match key {
            Ok(key) => Ok(vec![key]),
            Err(source) => Err(KeyFileError::Key {
                path: path(),
                source,
            }),
        };
    }
    let texts: Vec<String> =
        serde_json::from_slice(content).map_err(|_| KeyFileError::NoKeyFile {
            path: path(),
            what: "it begins like a JSON array, and is no array of texts",
        })?;
    let numbered = texts.iter().enumerate();
    numbered
        .map(|(nth, text)| {
            PublicKey::from_pem(text.as_bytes()).map_err(|source| KeyFileError::KeyOfList {
                path: path(),
                nth: nth + 1,
                source,
            })
        })
        .collect()
}

fn read_error(path: &Path, source: io::Error) -> KeyFileError {
    KeyFileError::Read {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests;
