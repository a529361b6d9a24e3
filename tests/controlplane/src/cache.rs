//! The user's cache folder: finished things appear in it by rename, and a lock lets one process at a time make them.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::gobuild::say;

/// Environment variable that replaces the place of the cache.
const PLACE: &str = "ATC_CONTROLPLANE_CACHE";

/// A folder that is kept between runs.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// `$ATC_CONTROLPLANE_CACHE`, else `$XDG_CACHE_HOME/atc-controlplane`, else `~/.cache/atc-controlplane`.
    pub(crate) fn of_user() -> Result<Self> {
        let set = |name| {
            std::env::var_os(name)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from)
        };
        let folder = match (set(PLACE), set("XDG_CACHE_HOME"), set("HOME")) {
            (Some(folder), ..) => folder,
            (_, Some(base), _) => base.join("atc-controlplane"),
            (_, _, Some(home)) => home.join(".cache/atc-controlplane"),
            _ => anyhow::bail!("no place for the control plane's programs: set HOME or {PLACE}"),
        };
        fs::create_dir_all(&folder).with_context(|| format!("create \"{}\"", folder.display()))?;
        Ok(Self {
            folder: fs::canonicalize(folder)?,
        })
    }

    /// The folder whose name says what the things in it were made of: `prefix` and a hash of `parts`.
    pub(crate) fn entry(&self, prefix: &str, parts: &[&[u8]]) -> PathBuf {
        self.folder
            .join(format!("{prefix}-{:016x}", fingerprint(parts)))
    }

    /// Holds the cache's lock until the returned file is dropped. Says so when it has to wait.
    pub(crate) fn lock(&self) -> Result<File> {
        let path = self.folder.join("lock");
        let file = File::create(&path).with_context(|| format!("create \"{}\"", path.display()))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                say("waiting for another process that builds the control plane");
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("lock \"{}\"", path.display()));
            }
        }
        file.lock()
            .with_context(|| format!("lock \"{}\"", path.display()))?;
        Ok(file)
    }
}

/// Writes a file so that it is there whole or not at all.
pub(crate) fn write_whole(path: &Path, text: &[u8]) -> Result<()> {
    let partial = path.with_extension("partial");
    fs::write(&partial, text).with_context(|| format!("write \"{}\"", partial.display()))?;
    fs::rename(&partial, path).with_context(|| format!("rename to \"{}\"", path.display()))
}

/// FNV-1a over the parts and their lengths: names a version, protects against nothing.
fn fingerprint(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for part in parts {
        eat(&part.len().to_le_bytes());
        eat(part);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(fingerprint(&[b"ab", b"c"]), fingerprint(&[b"a", b"bc"]));
        assert_eq!(fingerprint(&[b"a"]), fingerprint(&[b"a"]));
    }
}
