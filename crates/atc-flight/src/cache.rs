//! Compiled modules on disk: loaded in milliseconds where compiling takes seconds.
//!
//! A compiled module is machine code, and wasmtime loads whatever it is given. So nobody but us may write it (a folder of
//! our own, mode 0700), what is written carries its own hash together with what it was compiled from and for, and the
//! bytes that are hashed are the very ones that then are mapped ([`image`]). Any doubt about a file, and the module is
//! compiled again.

mod folder;
mod image;
mod inspect;

use std::hash::{Hash as _, Hasher};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest as _, Sha256};
use wasmtime::{Engine, Module};

use folder::Folder;
use image::Image;
pub(crate) use image::load_compiled;
pub use inspect::{CompiledFile, CompiledFiles};

use crate::runtime::ModuleDigest;

/// The folder inside the given one. The number goes up with the form of the files.
const FOLDER: &str = "compiled-modules-1";
/// How every file begins.
const MAGIC: &[u8; 16] = b"\0flight-compiled";
/// The magic and the hash.
const HEADER: usize = MAGIC.len() + 32;
/// What is hashed before the name and the code, so that a hash from elsewhere fits nothing here.
const DOMAIN: &str = "atc-flight 2026-11 compiled module, form 1";

/// The folder of one user's compiled modules; several processes may share it.
pub(crate) struct DiskCache {
    folder: Folder,
    max_bytes: u64,
    evictions: AtomicU64,
    /// Bytes of files, as they were last seen.
    bytes: AtomicU64,
    /// What the code is for: engine version, settings, processor.
    compatibility: [u8; 32],
}

/// Which file, by what it was compiled from and for.
struct Key(String);

impl DiskCache {
    /// Opens or creates the folder; `None`, with a warning in the log, where it can't be used.
    pub(crate) fn open(dir: &Path, max_bytes: u64, engine: &Engine) -> Option<Self> {
        match Folder::open(dir, FOLDER) {
            Ok(folder) => Some(Self {
                bytes: AtomicU64::new(folder.bytes()),
                folder,
                max_bytes,
                evictions: AtomicU64::default(),
                compatibility: compatibility(engine),
            }),
            Err(error) => {
                let dir = dir.display();
                tracing::warn!(%dir, %error, "compiled modules are not kept on disk");
                None
            }
        }
    }

    /// Files that were removed to make room.
    pub(crate) fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }

    /// Bytes of files when this process looked last.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn key(&self, digest: ModuleDigest) -> Key {
        let hash = Sha256::new()
            .chain_update(DOMAIN)
            .chain_update(digest)
            .chain_update(self.compatibility);
        Key(hex::encode(hash.finalize()))
    }

    /// The compiled form of the module with this digest; `None` if there is none that is beyond doubt.
    pub(crate) fn load(&self, engine: &Engine, digest: ModuleDigest) -> Option<Module> {
        let key = self.key(digest);
        let mut file = match self.folder.read(&key.0) {
            Ok(file) => file?,
            Err(error) => {
                tracing::warn!(file = key.0, %error, "a compiled module can't be read; it is compiled again");
                self.folder.remove(&key.0);
                return None;
            }
        };
        let loaded = (|| {
            let mut header = [0; HEADER];
            file.read_exact(&mut header)?;
            let Some(expected) = header.strip_prefix(MAGIC) else {
                return Err(Doubt::Form);
            };
            let image = Image::of_file(&file, HEADER as u64)?;
            if hash(&key, |hasher| image.hash_into(hasher))?.as_slice() != expected {
                return Err(Doubt::Hash);
            }
            Ok(image.load(engine)?)
        })();
        match loaded {
            Ok(module) => {
                folder::touch(&file);
                Some(module)
            }
            Err(doubt) => {
                tracing::warn!(file = key.0, %doubt, "a compiled module on disk is not sound; it is compiled again");
                self.folder.remove(&key.0);
                None
            }
        }
    }

    /// Keeps a compiled module. Best effort: a full disk costs a compile next time, no more.
    pub(crate) fn store(&self, digest: ModuleDigest, code: &[u8]) {
        let bytes = (HEADER + code.len()) as u64;
        if bytes > self.max_bytes {
            return;
        }
        let key = self.key(digest);
        let stored = (|| {
            let hash = hash(&key, |hasher| {
                hasher.update(code);
                Ok(())
            })?;
            let room = self.folder.make_room(bytes, self.max_bytes)?;
            self.evictions.fetch_add(room.evictions, Ordering::Relaxed);
            let bytes = room.bytes.saturating_add(bytes);
            self.bytes.store(bytes, Ordering::Relaxed);
            self.folder.write(&key.0, |file| {
                file.write_all(MAGIC)?;
                file.write_all(&hash)?;
                file.write_all(code)
            })
        })();
        if let Err(error) = stored {
            tracing::warn!(file = key.0, %error, "a compiled module could not be kept on disk");
        }
    }
}

/// Why a file is not loaded.
#[derive(Debug, thiserror::Error)]
enum Doubt {
    #[error("it has another form")]
    Form,
    #[error("its hash does not match")]
    Hash,
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0:#}")]
    Load(#[from] wasmtime::Error),
}

/// The hash that a file carries: of its name as well, so that a file under another's name does not match.
fn hash(
    key: &Key,
    code: impl FnOnce(&mut blake3::Hasher) -> std::io::Result<()>,
) -> std::io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new_derive_key(DOMAIN);
    hasher.update(key.0.as_bytes());
    code(&mut hasher)?;
    Ok(hasher.finalize().into())
}

/// A hash of all that compiled code depends on besides the module. `std`'s hashers may change between releases.
fn compatibility(engine: &Engine) -> [u8; 32] {
    struct Sha(Sha256);
    impl Hasher for Sha {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut hasher = Sha(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.0.finalize().into()
}

#[cfg(test)]
mod tests;
