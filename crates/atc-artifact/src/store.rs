//! Keeps downloaded contents on disk, so that a restart needs no server.
//!
//! Two folders below the given one: `content/<sha256>` holds unpacked bytes, `urls/<sha256 of the URL>` says which
//! content a URL gave last and how to ask whether that is still so. URLs themselves are not written down: they may
//! hold passwords. A third one, `signatures/<sha256 of an artifact's digest>`, holds what has proven it. Files are written aside and renamed, and contents are checked against their name each time they
//! are read, so a torn or changed file is a miss and is removed.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::artifact::{Content, Digests};
use crate::figures::Counter;
use crate::http::Validators;
use crate::verify::sha256_hex;

mod signatures;

/// How much a disk cache holds unless told otherwise: 1 GiB, some 200 Go flights. The least recently used contents go
/// first.
pub const DEFAULT_CACHE_BYTES: u64 = 1 << 30;

/// How many URLs a disk cache remembers: 4,096, of some 200 bytes each. Those looked at longest ago go first.
pub const MAX_INDEXED_URLS: usize = 4096;

/// The folder of everything, below the given one.
const ROOT: &str = "modules";
/// The folder of contents, below the given one.
pub(crate) const CONTENT: &str = "modules/content";
/// The first line of an index entry; another one is not read.
const FORMAT: &str = "atc-artifact 1";
/// The largest index entry that is read: 8 KiB, over twice what is ever written.
const MAX_ENTRY: u64 = 8 << 10;

/// A folder of contents and URLs. All methods block.
#[derive(Debug)]
pub(crate) struct Store {
    content: PathBuf,
    urls: PathBuf,
    signatures: PathBuf,
    max_bytes: u64,
    /// Contents that were removed to make room.
    evictions: Counter,
    /// Bytes of contents, as they were last seen.
    bytes: AtomicU64,
}

/// What the store remembers of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) digests: Digests,
    pub(crate) validators: Validators,
}

impl Store {
    /// A store below `dir`, which is made if missing; the folders are private to this user.
    pub(crate) fn open(dir: &Path, max_bytes: u64) -> io::Result<Self> {
        let root = dir.join(ROOT);
        let store = Self {
            content: dir.join(CONTENT),
            urls: root.join("urls"),
            signatures: root.join("signatures"),
            max_bytes,
            evictions: Counter::default(),
            bytes: AtomicU64::default(),
        };
        fs::create_dir_all(dir)?;
        for folder in [&root, &store.content, &store.urls, &store.signatures] {
            private_folder(folder)?;
        }
        let there = files(&store.content)?;
        let bytes = there.iter().map(|file| file.size).sum();
        store.bytes.store(bytes, Ordering::Relaxed);
        Ok(store)
    }

    /// How many contents were removed to make room.
    pub(crate) fn evictions(&self) -> u64 {
        self.evictions.get()
    }

    /// Bytes of contents when this process looked last.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// What a URL gave last, if that is known.
    pub(crate) fn entry(&self, url: &str) -> Option<Entry> {
        let path = self.urls.join(sha256_hex(url.as_bytes()));
        let mut text = String::new();
        let file = File::open(&path).ok()?;
        (&file).take(MAX_ENTRY).read_to_string(&mut text).ok()?;
        let entry = parse(&text);
        match entry {
            Some(_) => touch(&file),
            None => remove(&path),
        }
        entry
    }

    /// The bytes with these digests, if they are there and whole.
    pub(crate) fn content(&self, sha256: &str, max_bytes: u64) -> Option<Content> {
        if !is_digest(sha256, 64) {
            return None;
        }
        let path = self.content.join(sha256);
        let file = File::open(&path).ok()?;
        let mut data =
            Vec::with_capacity(usize::try_from(file.metadata().ok()?.len().min(max_bytes)).ok()?);
        (&file)
            .take(max_bytes.saturating_add(1))
            .read_to_end(&mut data)
            .ok()?;
        if data.len() as u64 > max_bytes {
            return None;
        }
        let content = Content::digest(data);
        if content.digests.sha256 == sha256 {
            touch(&file);
            return Some(content);
        }
        tracing::warn!(file = %path.display(), "a cached module is damaged and is fetched again");
        remove(&path);
        None
    }

    /// Remembers that `url` gave `content`, and makes room.
    pub(crate) fn put(
        &self,
        url: &str,
        content: &Content,
        validators: &Validators,
    ) -> io::Result<()> {
        let path = self.content.join(&content.digests.sha256);
        let size = content.data().len() as u64;
        if size > self.max_bytes {
            return Ok(());
        }
        let there = File::open(&path)
            .ok()
            .filter(|file| file.metadata().is_ok_and(|meta| meta.len() == size));
        match there {
            Some(file) => touch(&file),
            None => write(&self.content, &path, content.data())?,
        }
        let text = print(&content.digests, validators);
        write(
            &self.urls,
            &self.urls.join(sha256_hex(url.as_bytes())),
            text.as_bytes(),
        )?;
        self.make_room(&path)
    }

    fn make_room(&self, newest: &Path) -> io::Result<()> {
        let contents = files(&self.content)?;
        let mut total: u64 = contents.iter().map(|file| file.size).sum();
        for file in contents.iter().filter(|file| file.path != newest) {
            if total <= self.max_bytes {
                break;
            }
            remove(&file.path);
            self.evictions.one_more();
            total = total.saturating_sub(file.size);
        }
        self.bytes.store(total, Ordering::Relaxed);
        keep_newest(&self.urls, MAX_INDEXED_URLS)
    }
}

/// Removes files of a folder until so many are left.
fn keep_newest(folder: &Path, count: usize) -> io::Result<()> {
    let all = files(folder)?;
    for file in all.iter().take(all.len().saturating_sub(count)) {
        remove(&file.path);
    }
    Ok(())
}

fn print(digests: &Digests, validators: &Validators) -> String {
    let line = |text: &Option<String>| {
        text.as_deref()
            .unwrap_or_default()
            .replace(['\r', '\n'], " ")
    };
    let (etag, modified) = (line(&validators.etag), line(&validators.last_modified));
    format!(
        "{FORMAT}\n{}\n{}\n{etag}\n{modified}\n",
        digests.sha256, digests.sha1
    )
}

fn parse(text: &str) -> Option<Entry> {
    let lines: Vec<&str> = text.split('\n').collect();
    let [FORMAT, sha256, sha1, etag, modified, ""] = lines[..] else {
        return None;
    };
    if !is_digest(sha256, 64) || !is_digest(sha1, 40) {
        return None;
    }
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Some(Entry {
        digests: Digests {
            sha256: sha256.to_owned(),
            sha1: sha1.to_owned(),
        },
        validators: Validators {
            etag: some(etag),
            last_modified: some(modified),
        },
    })
}

fn is_digest(text: &str, len: usize) -> bool {
    text.len() == len
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

pub(crate) struct Stored {
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
    pub(crate) used: SystemTime,
}

/// The files of a folder, least recently used first.
pub(crate) fn files(folder: &Path) -> io::Result<Vec<Stored>> {
    let mut out = Vec::new();
    for item in fs::read_dir(folder)? {
        let item = item?;
        // Gone meanwhile: somebody else made room.
        let Ok(metadata) = item.metadata() else {
            continue;
        };
        let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        out.push(Stored {
            path: item.path(),
            size: metadata.len(),
            used,
        });
    }
    out.sort_by_key(|file| file.used);
    Ok(out)
}

/// Writes aside and renames: whoever reads sees the old file or the new one.
fn write(folder: &Path, path: &Path, data: &[u8]) -> io::Result<()> {
    let mut aside = tempfile::NamedTempFile::new_in(folder)?;
    aside.write_all(data)?;
    aside.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Marks as used just now. That it fails costs at most an early eviction.
fn touch(file: &File) {
    let _ = file.set_modified(SystemTime::now());
}

/// Whether it was there and is gone now.
pub(crate) fn take_away(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn remove(path: &Path) {
    if let Err(error) = take_away(path) {
        tracing::warn!(file = %path.display(), %error, "cannot remove a file of the module cache");
    }
}

/// Makes a folder that only this user can change, or sees that it is one: whoever can write here decides what runs.
#[cfg(unix)]
fn private_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)?;
    let metadata = fs::symlink_metadata(path)?;
    let ours = our_id(path)?;
    if metadata.is_dir() && metadata.uid() == ours && metadata.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        "others can write to this folder",
    ))
}

/// The user that this process writes as, told by a file of its own in a folder.
#[cfg(unix)]
pub(crate) fn our_id(folder: &Path) -> io::Result<u32> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(tempfile::tempfile_in(folder)?.metadata()?.uid())
}

#[cfg(not(unix))]
fn private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

#[cfg(test)]
mod tests;
