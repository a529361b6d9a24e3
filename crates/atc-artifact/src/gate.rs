//! How many downloads run at once: over all servers, and from one of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::memory::lock;

/// How many downloads are held in memory at once: 8. The next ones wait. With the default bound of 256 MiB, packed and
/// unpacked together, that is the most memory that hostile servers can take; usual modules have 5 MiB.
pub const MAX_AT_ONCE: usize = 8;

/// How many of them may come from one host: 2, so that a slow server does not keep the others waiting.
pub const MAX_AT_ONCE_PER_HOST: usize = 2;

/// How many hosts are known before those from which nothing comes are forgotten: 64.
const HOSTS_BEFORE_SWEEP: usize = 64;

/// Lets downloads in.
pub(crate) struct Gate {
    all: Arc<Semaphore>,
    hosts: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// The place of one download: taken while it does something, left while it pauses.
pub(crate) struct Slot {
    all: Arc<Semaphore>,
    host: Arc<Semaphore>,
    held: Mutex<Option<[OwnedSemaphorePermit; 2]>>,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            hosts: Mutex::default(),
        }
    }
}

impl Gate {
    /// A place for a download from this host, not taken yet.
    pub(crate) fn slot(&self, host: &str) -> Slot {
        let mut hosts = lock(&self.hosts);
        if hosts.len() >= HOSTS_BEFORE_SWEEP {
            hosts.retain(|_, host| Arc::strong_count(host) > 1);
        }
        let host = hosts
            .entry(host.to_owned())
            .or_insert_with(|| Arc::new(Semaphore::new(MAX_AT_ONCE_PER_HOST)));
        Slot {
            all: Arc::clone(&self.all),
            host: Arc::clone(host),
            held: Mutex::default(),
        }
    }
}

impl Slot {
    /// Takes the place, if it is not taken already. The host's turn comes first: who waits for it keeps nobody else waiting.
    pub(crate) async fn take(&self) {
        if lock(&self.held).is_some() {
            return;
        }
        let host = Arc::clone(&self.host).acquire_owned().await;
        let all = Arc::clone(&self.all).acquire_owned().await;
        // They are never closed.
        if let (Ok(host), Ok(all)) = (host, all) {
            *lock(&self.held) = Some([host, all]);
        }
    }

    /// Leaves the place to others.
    pub(crate) fn leave(&self) {
        lock(&self.held).take();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn one_host_has_a_part_of_all_places() {
        let gate = Gate::default();
        let slow = [gate.slot("slow"), gate.slot("slow"), gate.slot("slow")];
        assert!(slow[0].take().now_or_never().is_some());
        assert!(slow[1].take().now_or_never().is_some());
        assert!(slow[2].take().now_or_never().is_none(), "two of one host");
        slow[0].take().now_or_never().expect("it is taken already");
        let others: Vec<Slot> = (0..7).map(|n| gate.slot(&format!("h{n}"))).collect();
        for (n, other) in others.iter().enumerate() {
            let taken = other.take().now_or_never().is_some();
            assert_eq!(taken, n < MAX_AT_ONCE - 2, "{n}");
        }
        slow[1].leave();
        assert!(others[6].take().now_or_never().is_some());
        drop(others);
        assert!(slow[2].take().now_or_never().is_some());
    }

    #[test]
    fn hosts_are_forgotten() {
        let gate = Gate::default();
        let held = gate.slot("held");
        for n in 0..1000 {
            gate.slot(&n.to_string());
        }
        let hosts = lock(&gate.hosts);
        assert!(hosts.len() <= HOSTS_BEFORE_SWEEP && hosts.contains_key("held"));
        drop((hosts, held));
    }
}
