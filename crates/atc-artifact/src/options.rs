//! How a fetcher behaves: where it keeps things, how large and how slow they may be.

use std::path::PathBuf;
use std::time::Duration;

use crate::certificates::Certificates;
use crate::credentials::Credentials;
use crate::http::{DEFAULT_CONNECT_TIMEOUT, DEFAULT_STALL_TIMEOUT, DEFAULT_TIMEOUT, Limits};
use crate::retry::DEFAULT_TRIES;
use crate::store::DEFAULT_CACHE_BYTES;
use crate::unpack::DEFAULT_MAX_BYTES;

/// How long an answer of a server counts as current unless told otherwise: 1 min. Within it, [`Fetcher::fetch`](crate::Fetcher::fetch) gives
/// what was fetched before.
pub const DEFAULT_FRESH_FOR: Duration = Duration::from_mins(1);

/// How a [`Fetcher`](crate::Fetcher) behaves.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// Where downloads are kept. `None`: nowhere but in memory, and there only while somebody uses them. Kept in a
    /// folder of its own below this one, which only this user can write to; a cache that does not work is logged and
    /// done without.
    pub cache_dir: Option<PathBuf>,
    /// How much is kept there, in bytes; default [`DEFAULT_CACHE_BYTES`].
    pub cache_max_bytes: u64,
    /// How large a program may be, in bytes, as stored and after unpacking; default [`DEFAULT_MAX_BYTES`].
    pub max_bytes: u64,
    /// How long connecting may take; default [`DEFAULT_CONNECT_TIMEOUT`].
    pub connect_timeout: Duration,
    /// How long a server may stay silent; default [`DEFAULT_STALL_TIMEOUT`].
    pub stall_timeout: Duration,
    /// How long a whole download may take; default [`DEFAULT_TIMEOUT`].
    pub timeout: Duration,
    /// How often a request is sent while its server is in trouble (busy, out of order, connection broken), the first
    /// time included; default [`DEFAULT_TRIES`].
    pub tries: u32,
    /// Who proves to registries who we are; default nobody.
    pub credentials: Credentials,
    /// Where client certificates and CAs for single hosts lie; default nowhere.
    pub certificates: Certificates,
    /// How long an answer counts as current; default [`DEFAULT_FRESH_FOR`].
    pub fresh_for: Duration,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            cache_dir: None,
            cache_max_bytes: DEFAULT_CACHE_BYTES,
            max_bytes: DEFAULT_MAX_BYTES,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            stall_timeout: DEFAULT_STALL_TIMEOUT,
            timeout: DEFAULT_TIMEOUT,
            tries: DEFAULT_TRIES,
            credentials: Credentials::default(),
            certificates: Certificates::default(),
            fresh_for: DEFAULT_FRESH_FOR,
        }
    }
}

impl FetchOptions {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            connect: self.connect_timeout,
            stall: self.stall_timeout,
            total: self.timeout,
            max_bytes: self.max_bytes,
            tries: self.tries,
        }
    }
}
