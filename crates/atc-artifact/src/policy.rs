//! Which modules may run at all: those from allowed locations, signed with known keys, themselves or as artifacts.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::allow_list::AllowList;
use crate::artifact::Artifact;
use crate::fetcher::Fetcher;
use crate::figures::Counter;
use crate::joined::Joined;
use crate::key_set::{KeyFileError, KeyFiles, KeySet};
use crate::location::Location;
use crate::memory::lock;
use crate::proof::{ProofError, prove_by_artifact};
use crate::signature::{SignatureError, verify};

/// How many verdicts on modules are remembered: 4,096 of some 200 bytes each. Then the refusals are forgotten, and all where
/// that makes no room.
const MAX_VERDICTS: usize = 4096;

/// What a [`ModulePolicy`] asks for. By default nothing.
#[derive(Clone, Debug, Default)]
pub struct PolicyOptions {
    /// Where modules may come from; `None`: from anywhere.
    pub allow: Option<AllowList>,
    /// File or folder of the public keys, one of which must have signed a module; `None`: no signature is asked for.
    pub keys: Option<PathBuf>,
    /// Whether what the allow list names needs no signature, as in the existing tool.
    pub allowed_unsigned: bool,
}

/// Decides which modules may run. Cheap to clone.
///
/// # Guarantees
/// - The files of keys are read at every proof, and what was proven by others is proven again: a key that is taken away
///   proves nothing from then on. While they cannot be read, nothing is proven.
/// - A verdict is remembered for the very bytes and keys that it was given for.
#[derive(Clone, Debug, Default)]
pub struct ModulePolicy {
    allow: Option<AllowList>,
    keys: Option<Arc<Keys>>,
    refusals: Arc<Counter>,
}

/// Why a module may not run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PolicyError {
    /// It comes from somewhere else.
    #[error(
        "it is not allowed: no glob of the allow list matches it; use a module that it names, or let it name this one"
    )]
    NotAllowed,
    /// It is not known what could prove it.
    #[error("its signature cannot be checked")]
    Keys {
        /// Why the keys cannot be had.
        #[source]
        source: Arc<KeyFileError>,
    },
    /// It is not proven.
    #[error("it must be signed with one of the keys that are given, and is not")]
    NotProven {
        /// Why.
        #[source]
        source: Box<ProofError>,
    },
    /// The check was ended because the process is stopping.
    #[error("the check of its signature was ended")]
    Ended,
}

impl PolicyError {
    /// Whether it may pass with nobody changing the module's location: other keys, or another module there.
    pub fn may_pass(&self) -> bool {
        !matches!(self, Self::NotAllowed)
    }
}

impl ModulePolicy {
    /// A policy. Reads the keys once, so that what is wrong with them is told at the start.
    pub fn new(options: PolicyOptions) -> Result<Self, KeyFileError> {
        let PolicyOptions {
            allow,
            keys,
            allowed_unsigned,
        } = options;
        // All that is ever loaded is on the list then.
        let asked = !(allowed_unsigned && allow.is_some());
        let keys = match keys.filter(|_| asked) {
            Some(path) => Some(Arc::new(Keys::new(path)?)),
            None => None,
        };
        Ok(Self {
            allow,
            keys,
            refusals: Arc::default(),
        })
    }

    /// How many modules were refused so far, for where they come from or for want of a signature.
    pub fn refusals(&self) -> u64 {
        self.refusals.get()
    }

    /// Whether a module may come from there: to be asked before it is fetched.
    pub fn admit(&self, location: &Location) -> Result<(), PolicyError> {
        match &self.allow {
            Some(list) if !list.allows(location) => {
                self.refusals.one_more();
                Err(PolicyError::NotAllowed)
            }
            _ => Ok(()),
        }
    }

    /// Whether these bytes may run: to be asked at every load, wherever they come from. A module whose own signature proves
    /// nothing, and that `fetcher` has from a registry, may be proven by a cosign signature of its artifact.
    pub async fn prove(
        &self,
        fetcher: &Fetcher,
        location: &Location,
        artifact: &Artifact,
    ) -> Result<(), PolicyError> {
        let Some(keys) = self.keys.clone() else {
            return Ok(());
        };
        let proven = Self::prove_by(keys, fetcher, location, artifact).await;
        if proven.is_err() {
            self.refusals.one_more();
        }
        proven
    }

    async fn prove_by(
        keys: Arc<Keys>,
        fetcher: &Fetcher,
        location: &Location,
        artifact: &Artifact,
    ) -> Result<(), PolicyError> {
        let module = artifact.clone();
        // Files are read, and hashing takes some milliseconds a megabyte.
        let (known, verdict) = tokio::task::spawn_blocking(move || keys.look(&module))
            .await
            .unwrap_or(Err(PolicyError::Ended))?;
        let Err(own) = verdict else { return Ok(()) };
        known
            .prove_by_artifact(fetcher, location, artifact, own)
            .await
    }

    /// Whether a module that was proven before is so by the keys of now, told by its SHA-256. Not if that has been
    /// forgotten: its bytes are needed then.
    pub async fn still_proves(&self, sha256: &str) -> bool {
        let Some(keys) = self.keys.clone() else {
            return true;
        };
        let sha256 = sha256.to_owned();
        let look = move || keys.current().is_ok_and(|known| known.has_proven(&sha256));
        tokio::task::spawn_blocking(look).await.unwrap_or(false)
    }
}

/// Files of keys, what was in them, and what they have proven.
#[derive(Debug)]
struct Keys {
    path: PathBuf,
    known: Mutex<Arc<Known>>,
}

/// Keys and the verdicts that were given with them, by the module's SHA-256.
#[derive(Debug)]
struct Known {
    files: [u8; 32],
    keys: Arc<KeySet>,
    verdicts: Mutex<HashMap<String, Verdict>>,
    /// Registries that are being asked what lies beside an artifact, by it and its module.
    asked: Arc<Joined<Result<(), ProofError>>>,
}

/// What the keys say of a module.
type Verdict = Result<(), SignatureError>;

impl Keys {
    fn new(path: PathBuf) -> Result<Self, KeyFileError> {
        let known = Known::of(&KeyFiles::read(&path)?)?;
        Ok(Self {
            path,
            known: Mutex::new(Arc::new(known)),
        })
    }

    /// The keys of now, and what they say of a module.
    fn look(&self, module: &Artifact) -> Result<(Arc<Known>, Verdict), PolicyError> {
        let known = self.current().map_err(|source| PolicyError::Keys {
            source: Arc::new(source),
        })?;
        let verdict = known.verdict(module);
        Ok((known, verdict))
    }

    /// What is known, with the keys as they are in the files now.
    fn current(&self) -> Result<Arc<Known>, KeyFileError> {
        let files = KeyFiles::read(&self.path)?;
        let known = Arc::clone(&lock(&self.known));
        if known.files == files.digest() {
            return Ok(known);
        }
        let newer = Arc::new(Known::of(&files)?);
        *lock(&self.known) = Arc::clone(&newer);
        tracing::info!(path = %self.path.display(), keys = newer.keys.keys().count(), "the keys of modules have changed");
        Ok(newer)
    }
}

impl Known {
    fn of(files: &KeyFiles) -> Result<Self, KeyFileError> {
        Ok(Self {
            files: files.digest(),
            keys: Arc::new(KeySet::parse(files)?),
            verdicts: Mutex::default(),
            asked: Arc::default(),
        })
    }

    /// Asks a registry for what proves a module whose own signature does not: once, however many want to know.
    async fn prove_by_artifact(
        self: Arc<Self>,
        fetcher: &Fetcher,
        location: &Location,
        artifact: &Artifact,
        own: SignatureError,
    ) -> Result<(), PolicyError> {
        let key = format!("{} {location}", artifact.sha256);
        let proven = || self.has_proven(&artifact.sha256).then_some(());
        let work = || {
            let (known, fetcher) = (Arc::clone(&self), fetcher.clone());
            let (location, artifact) = (location.clone(), artifact.clone());
            async move {
                prove_by_artifact(&fetcher, &location, &artifact, &known.keys, own).await?;
                known.remember(&artifact.sha256, Ok(()));
                Ok(())
            }
        };
        match self.asked.join_or_start(&key, proven, work).await {
            Err(()) => Ok(()),
            Ok(None) => Err(PolicyError::Ended),
            Ok(Some(asked)) => asked.map_err(|source| PolicyError::NotProven {
                source: Box::new(source),
            }),
        }
    }

    fn has_proven(&self, sha256: &str) -> bool {
        lock(&self.verdicts).get(sha256).is_some_and(Result::is_ok)
    }

    fn verdict(&self, artifact: &Artifact) -> Verdict {
        if let Some(verdict) = lock(&self.verdicts).get(&artifact.sha256) {
            return verdict.clone();
        }
        let verdict = verify(&artifact.bytes, &self.keys).map(drop);
        self.remember(&artifact.sha256, verdict.clone());
        verdict
    }

    fn remember(&self, sha256: &str, verdict: Verdict) {
        let mut verdicts = lock(&self.verdicts);
        // The same keys have proven it by another way: by its artifact, which its own bytes say nothing of.
        if verdict.is_err() && verdicts.get(sha256).is_some_and(Result::is_ok) {
            return;
        }
        if verdicts.len() >= MAX_VERDICTS {
            verdicts.retain(|_, known| known.is_ok());
        }
        if verdicts.len() >= MAX_VERDICTS {
            verdicts.clear();
        }
        verdicts.insert(sha256.to_owned(), verdict);
    }
}

#[cfg(test)]
mod tests;
