//! What a fetch gives: bytes and their digests.

use std::sync::{Arc, Weak};

use bytes::Bytes;

use crate::verify::{sha1_hex, sha256_hex};

/// A program's bytes, unpacked, and their digests. Cheap to clone.
#[derive(Clone)]
pub struct Artifact {
    /// The unpacked bytes.
    pub bytes: Bytes,
    /// Hex SHA-256 of [`Self::bytes`], 64 lower-case digits: what checksums are compared with.
    pub sha256: String,
    /// Hex SHA-1 of [`Self::bytes`], 40 lower-case digits: what release records keep.
    pub sha1: String,
    /// Where the bytes came from this time.
    pub origin: Origin,
}

/// Where an [`Artifact`]'s bytes came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A local file.
    File,
    /// The server sent them, or said that what we hold is still what it would send.
    Server,
    /// Kept from before, the server was not asked: the checksum was known, or it was asked a short while ago.
    Cache,
    /// Kept from before although the server should have been asked: it could not be reached.
    Stale,
}

impl std::fmt::Debug for Artifact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Artifact")
            .field("bytes", &self.bytes.len())
            .field("sha256", &self.sha256)
            .field("sha1", &self.sha1)
            .field("origin", &self.origin)
            .finish()
    }
}

/// Unpacked bytes with their digests, shared between everybody who holds them.
#[derive(Clone)]
pub(crate) struct Content {
    data: Arc<Vec<u8>>,
    pub(crate) digests: Arc<Digests>,
}

/// Both digests of one content, in hex.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Digests {
    pub(crate) sha256: String,
    pub(crate) sha1: String,
}

impl Content {
    /// Takes bytes and computes their digests: some milliseconds a megabyte, so not on an async thread.
    pub(crate) fn digest(data: Vec<u8>) -> Self {
        let digests = Digests {
            sha256: sha256_hex(&data),
            sha1: sha1_hex(&data),
        };
        Self {
            data: Arc::new(data),
            digests: Arc::new(digests),
        }
    }

    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    pub(crate) fn artifact(&self, origin: Origin) -> Artifact {
        Artifact {
            bytes: Bytes::from_owner(Owner(Arc::clone(&self.data))),
            sha256: self.digests.sha256.clone(),
            sha1: self.digests.sha1.clone(),
            origin,
        }
    }

    /// A reference that keeps nothing alive.
    pub(crate) fn downgrade(&self) -> Held {
        Held {
            data: Arc::downgrade(&self.data),
            digests: Arc::clone(&self.digests),
        }
    }
}

/// Content that is still there only while somebody else uses it.
#[derive(Clone)]
pub(crate) struct Held {
    data: Weak<Vec<u8>>,
    digests: Arc<Digests>,
}

impl Held {
    pub(crate) fn is_held(&self) -> bool {
        self.data.strong_count() > 0
    }

    pub(crate) fn upgrade(&self) -> Option<Content> {
        Some(Content {
            data: self.data.upgrade()?,
            digests: Arc::clone(&self.digests),
        })
    }
}

/// Lets `Bytes` share the allocation that [`Held`] watches.
struct Owner(Arc<Vec<u8>>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
