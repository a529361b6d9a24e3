//! A private folder with a bound on its size: whole files only, put there by rename, the least recently used go first.

use std::ffi::{CStr, CString};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, renameat, statat, unlinkat};
use rustix::process::geteuid;

/// How names of files begin that are being written.
const PARTIAL: &str = "partial-";
/// A file that has been "being written" for longer was left by a process that died.
const ABANDONED: Duration = Duration::from_mins(10);
const PRIVATE: u32 = 0o700;

/// An open folder; all is done relative to it, so that nothing put in its place later is touched.
pub(super) struct Folder(File);

impl Folder {
    /// Opens `name` in `dir`, creating both.
    ///
    /// # Errors
    ///
    /// Also if the folder is a link, belongs to somebody else, or is open to others.
    pub(super) fn open(dir: &Path, name: &str) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(PRIVATE)
            .create(dir)?;
        let path = dir.join(name);
        match DirBuilder::new().mode(PRIVATE).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let folder = File::from(openat(CWD, &path, flags, Mode::empty())?);
        let found = folder.metadata()?;
        if found.uid() != geteuid().as_raw() {
            return Err(io::Error::other(format!(
                "the folder \"{name}\" belongs to another user"
            )));
        }
        if found.mode() & 0o077 != 0 {
            return Err(io::Error::other(format!(
                "the folder \"{name}\" is open to other users"
            )));
        }
        Ok(Self(folder))
    }

    /// Opens a file for reading; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Also if it is no plain file, belongs to somebody else, or others can write to it.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match openat(&self.0, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(error) if error == rustix::io::Errno::NOENT => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let found = file.metadata()?;
        if !found.is_file() || found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
            return Err(io::Error::other("it is not a plain file of ours"));
        }
        Ok(Some(file))
    }

    /// Writes a file under a name of its own and puts it in place whole.
    pub(super) fn write(
        &self,
        name: &str,
        content: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // Neither another process nor another thread has this name now; one from before a restart may: it is replaced.
        let partial = format!("{PARTIAL}{}-{count}", std::process::id());
        self.remove(&partial);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.0, &partial, flags, Mode::RUSR | Mode::WUSR)?);
        let written =
            content(&mut file).and_then(|()| Ok(renameat(&self.0, &partial, &self.0, name)?));
        if written.is_err() {
            self.remove(&partial);
        }
        written
    }

    /// Removes a file, if it is there.
    pub(super) fn remove(&self, name: &str) {
        remove(&self.0, name);
    }

    /// Removes a file; whether it was there.
    pub(super) fn take_away(&self, name: &str) -> io::Result<bool> {
        match unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes what was least recently used until `bytes` more fit into `max`, and what died writers left.
    pub(super) fn make_room(&self, bytes: u64, max: u64) -> io::Result<Room> {
        let files = self.files()?;
        let mut total: u64 = files.iter().map(|file| file.size).sum();
        let mut evictions = 0;
        for file in files {
            if total.saturating_add(bytes) <= max {
                break;
            }
            remove(&self.0, file.name.as_c_str());
            evictions += 1;
            total = total.saturating_sub(file.size);
        }
        let bytes = total;
        Ok(Room { evictions, bytes })
    }

    /// Bytes of all files; none where they cannot be listed.
    pub(super) fn bytes(&self) -> u64 {
        let files = self.files().unwrap_or_default();
        files.iter().map(|file| file.size).sum()
    }

    /// All files, the least recently used first. What died writers left is removed on the way.
    pub(super) fn files(&self) -> io::Result<Vec<Found>> {
        let mut files = Vec::new();
        let abandoned = SystemTime::now()
            .checked_sub(ABANDONED)
            .and_then(seconds)
            .unwrap_or_default();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name();
            // What vanishes meanwhile was removed by another process.
            let Ok(found) = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
                continue;
            }
            let used = found.st_mtime;
            if name.to_bytes().starts_with(PARTIAL.as_bytes()) && used < abandoned {
                remove(&self.0, name);
                continue;
            }
            files.push(Found {
                used,
                nanos: u32::try_from(found.st_mtime_nsec).unwrap_or_default(),
                name: name.to_owned(),
                size: u64::try_from(found.st_size).unwrap_or_default(),
            });
        }
        files.sort_unstable();
        Ok(files)
    }
}

/// What was done to make room.
pub(super) struct Room {
    /// Files that were removed.
    pub(super) evictions: u64,
    /// Bytes that are left.
    pub(super) bytes: u64,
}

/// A file of the folder. They sort by when they were used.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Found {
    used: i64,
    nanos: u32,
    name: CString,
    pub(super) size: u64,
}

impl Found {
    pub(super) fn name(&self) -> String {
        self.name.to_string_lossy().into_owned()
    }

    pub(super) fn used(&self) -> SystemTime {
        let seconds = u64::try_from(self.used).unwrap_or_default();
        SystemTime::UNIX_EPOCH + Duration::new(seconds, self.nanos.min(999_999_999))
    }
}

/// Marks a file as used just now.
pub(super) fn touch(file: &File) {
    if let Err(error) = file.set_modified(SystemTime::now()) {
        tracing::debug!(%error, "the time of a compiled module could not be set");
    }
}

fn seconds(time: SystemTime) -> Option<i64> {
    i64::try_from(time.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs()).ok()
}

/// A name of a file, ours or as the folder lists it.
trait Name: rustix::path::Arg + Copy + std::fmt::Debug {}
impl Name for &str {}
impl Name for &CStr {}

fn remove(folder: &File, name: impl Name) {
    match unlinkat(folder, name, AtFlags::empty()) {
        Err(error) if error != rustix::io::Errno::NOENT => {
            tracing::debug!(?name, %error, "a file in the cache of compiled modules could not be removed");
        }
        _ => {}
    }
}
