//! The clock of the time slices: a thread that moves the engine's epoch on while a flight runs.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use wasmtime::Engine;

/// A guest runs this long before others get their turn, and a time limit is noticed at most this late in a loop.
pub(crate) const SLICE: Duration = Duration::from_millis(10);

/// Ticks while at least one [`Ticking`] lives, so that an idle process stays idle. Its thread ends with it.
pub(crate) struct Ticker(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    ended: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until somebody runs; false when it is over.
    fn someone_runs(&self) -> bool {
        let state = self.state();
        let wait = self
            .changed
            .wait_while(state, |state| state.running == 0 && !state.ended);
        !wait.unwrap_or_else(PoisonError::into_inner).ended
    }
}

impl Ticker {
    pub(crate) fn start(engine: &Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let theirs = shared.clone();
        let engine = engine.weak();
        thread::Builder::new()
            .name("flight-ticker".to_owned())
            .spawn(move || {
                while theirs.someone_runs() {
                    thread::sleep(SLICE);
                    match engine.upgrade() {
                        Some(engine) => engine.increment_epoch(),
                        None => break,
                    }
                }
            })?;
        Ok(Self(shared))
    }

    /// Ticks at least until the answer is dropped.
    pub(crate) fn tick(&self) -> Ticking {
        let mut state = self.0.state();
        state.running += 1;
        if state.running == 1 {
            self.0.changed.notify_one();
        }
        Ticking(self.0.clone())
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.state().ended = true;
        self.0.changed.notify_one();
    }
}

/// A run that needs the ticks.
pub(crate) struct Ticking(Arc<Shared>);

impl Drop for Ticking {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.running = state.running.saturating_sub(1);
    }
}
