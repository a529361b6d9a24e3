//! Compiled code in memory that nobody can change any more, and the one unsafe step: loading it.
//!
//! On Linux that is an anonymous file, sealed before it is hashed: from then on neither this process nor any other can
//! write to it or cut it, so what is hashed is what runs, for as long as it runs. Only the pages that are used become
//! resident. Elsewhere, and where sealing is not allowed, it is plain memory of ours.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;

use blake3::Hasher;
use wasmtime::{Engine, Module};

/// Code whose bytes are settled.
pub(super) enum Image {
    /// An anonymous file, sealed.
    #[cfg(target_os = "linux")]
    Sealed(File),
    /// A copy of our own.
    Owned(Vec<u8>),
}

/// The most that is read in one step while hashing: it stays in the processor's second cache.
const STEP: usize = 128 << 10;

impl Image {
    /// A copy of what the file has from `start` on.
    pub(super) fn of_file(file: &File, start: u64) -> io::Result<Self> {
        let length = file.metadata()?.len().saturating_sub(start);
        #[cfg(target_os = "linux")]
        match sealed::of_file(file, start, length) {
            Ok(sealed) => return Ok(Self::Sealed(sealed)),
            Err(error) => tracing::debug!(%error, "no sealed memory for a compiled module"),
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, start)?;
        Ok(Self::Owned(bytes))
    }

    /// Feeds the code to a hash, all of it.
    pub(super) fn hash_into(&self, hasher: &mut Hasher) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Sealed(file) => {
                let mut file = file;
                io::Seek::rewind(&mut file)?;
                let mut step = vec![0; STEP];
                loop {
                    let read = file.read(&mut step)?;
                    if read == 0 {
                        return Ok(());
                    }
                    hasher.update(step.get(..read).unwrap_or_default());
                }
            }
            Self::Owned(bytes) => {
                hasher.update(bytes);
                Ok(())
            }
        }
    }

    /// Loads the code.
    #[expect(
        unsafe_code,
        reason = "loading machine code can't be checked by the compiler; the cache checks its hash"
    )]
    pub(super) fn load(self, engine: &Engine) -> wasmtime::Result<Module> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Sealed(file) => {
                // SAFETY: the bytes are those that this engine's compiler gave: they come from it directly
                // (`load_compiled`), or their hash, taken after the file was sealed, is the one that was written beside
                // them into a folder that only we can write to, and which covers module, engine version, settings and
                // processor. The seals forbid every later change, so the mapping stays what was hashed.
                unsafe { Module::deserialize_open_file(engine, file) }
            }
            Self::Owned(bytes) => {
                // SAFETY: as above, for bytes in memory that is ours alone and which wasmtime copies.
                unsafe { Module::deserialize(engine, bytes) }
            }
        }
    }
}

/// Loads what the engine's own compiler has just given.
pub(crate) fn load_compiled(engine: &Engine, code: Vec<u8>) -> wasmtime::Result<Module> {
    #[cfg(target_os = "linux")]
    match sealed::of_bytes(&code) {
        Ok(sealed) => {
            drop(code);
            return Image::Sealed(sealed).load(engine);
        }
        Err(error) => tracing::debug!(%error, "no sealed memory for a compiled module"),
    }
    Image::Owned(code).load(engine)
}

#[cfg(target_os = "linux")]
mod sealed {
    //! Anonymous files that nobody can change any more.

    use std::fs::File;
    use std::io::{self, Write as _};

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create, sendfile};

    pub(super) fn of_bytes(bytes: &[u8]) -> io::Result<File> {
        let mut memory = create()?;
        memory.write_all(bytes)?;
        seal(memory)
    }

    /// Copies inside the kernel.
    pub(super) fn of_file(file: &File, start: u64, length: u64) -> io::Result<File> {
        let memory = create()?;
        let (mut offset, mut left) = (start, length);
        while left > 0 {
            /// The kernel does at most this much at once.
            const AT_ONCE: usize = 1 << 30;
            let count = usize::try_from(left).map_or(AT_ONCE, |left| left.min(AT_ONCE));
            match sendfile(&memory, file, Some(&mut offset), count)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                sent => left = left.saturating_sub(sent as u64),
            }
        }
        seal(memory)
    }

    fn create() -> io::Result<File> {
        Ok(memfd_create(
            "compiled-flight",
            MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
        )?
        .into())
    }

    fn seal(memory: File) -> io::Result<File> {
        fcntl_add_seals(
            &memory,
            SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL,
        )?;
        Ok(memory)
    }
}
