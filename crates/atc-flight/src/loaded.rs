//! The modules in memory: each compiled once however many ask, the least recently used let go of when there are many.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::watch;

use crate::error::FlightError;
use crate::module::Linked;
use crate::runtime::ModuleDigest;

/// What came of a compile, for everybody who waits for it.
pub(crate) type Done = Option<Result<Arc<Linked>, FlightError>>;

/// What there is of a module.
pub(crate) enum Loading {
    /// It is here.
    Ready(Arc<Linked>),
    /// Somebody is at it.
    Underway(watch::Receiver<Done>),
    /// Whoever asked is to make it.
    Yours(Job, watch::Receiver<Done>),
}

pub(crate) struct Loaded {
    tables: Mutex<Tables>,
    max_modules: usize,
    max_bytes: u64,
}

#[derive(Default)]
struct Tables {
    /// Held here so that the next run finds them.
    kept: HashMap<ModuleDigest, Kept>,
    /// All that anybody holds, ourselves or a run that goes on.
    alive: HashMap<ModuleDigest, Weak<Linked>>,
    underway: HashMap<ModuleDigest, watch::Receiver<Done>>,
    /// Counts uses, to tell the least recent.
    clock: u64,
}

struct Kept {
    module: Arc<Linked>,
    used: u64,
}

/// Modules that were let go of: their code is unmapped after the lock is.
type Gone = Vec<Arc<Linked>>;

impl Loaded {
    pub(crate) fn new(max_modules: usize, max_bytes: u64) -> Self {
        Self {
            tables: Mutex::default(),
            max_modules,
            max_bytes,
        }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The module if it is here.
    pub(crate) fn peek(&self, digest: ModuleDigest) -> Option<Arc<Linked>> {
        let mut gone = Gone::new();
        self.find(&mut self.tables(), digest, &mut gone)
    }

    pub(crate) fn get(&self, digest: ModuleDigest) -> Loading {
        let mut gone = Gone::new();
        let mut tables = self.tables();
        if let Some(module) = self.find(&mut tables, digest, &mut gone) {
            return Loading::Ready(module);
        }
        // A receiver whose sender is gone belongs to a compile that died; the next one takes its place.
        if let Some(underway) = tables
            .underway
            .get(&digest)
            .filter(|underway| underway.has_changed().is_ok())
        {
            return Loading::Underway(underway.clone());
        }
        let (sender, receiver) = watch::channel(None);
        tables.underway.insert(digest, receiver.clone());
        Loading::Yours(Job { digest, sender }, receiver)
    }

    fn find(
        &self,
        tables: &mut Tables,
        digest: ModuleDigest,
        gone: &mut Gone,
    ) -> Option<Arc<Linked>> {
        tables.clock += 1;
        if let Some(kept) = tables.kept.get_mut(&digest) {
            kept.used = tables.clock;
            return Some(kept.module.clone());
        }
        let module = tables.alive.get(&digest)?.upgrade()?;
        self.keep(tables, module.clone(), gone);
        Some(module)
    }

    fn keep(&self, tables: &mut Tables, module: Arc<Linked>, gone: &mut Gone) {
        tables.clock += 1;
        let used = tables.clock;
        tables.alive.retain(|_, weak| weak.strong_count() > 0);
        tables.alive.insert(module.digest, Arc::downgrade(&module));
        tables.kept.insert(module.digest, Kept { module, used });
        let mut bytes: u64 = tables
            .kept
            .values()
            .map(|kept| kept.module.code_bytes())
            .sum();
        while tables.kept.len() > self.max_modules || bytes > self.max_bytes {
            let oldest = tables
                .kept
                .iter()
                .min_by_key(|(_, kept)| kept.used)
                .map(|(digest, _)| *digest);
            let Some(kept) = oldest.and_then(|digest| tables.kept.remove(&digest)) else {
                break;
            };
            bytes = bytes.saturating_sub(kept.module.code_bytes());
            gone.push(kept.module);
        }
    }
}

/// A compile that others wait for.
pub(crate) struct Job {
    digest: ModuleDigest,
    sender: watch::Sender<Done>,
}

impl Job {
    /// Tells everybody. A failure is told only to those who wait now: the next to ask tries again.
    pub(crate) fn done(self, loaded: &Loaded, result: Result<Arc<Linked>, FlightError>) {
        let mut gone = Gone::new();
        let mut tables = loaded.tables();
        if let Ok(module) = &result {
            loaded.keep(&mut tables, module.clone(), &mut gone);
        }
        tables.underway.remove(&self.digest);
        drop(tables);
        drop(gone);
        self.sender.send_replace(Some(result));
    }
}
