//! What ends the run of a flight before its time: the instance that it runs for goes, or asks for something else by now.
//!
//! Only the flight is ended, never an apply or a prune that follows from what it printed.

use std::future::pending;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::error::EngineError;

/// A run that an edit made worthless may go on until it has lasted so long: 10 s, what a flight may take unless its Airway
/// says otherwise. Most end by themselves before that, and one evaluation serves all edits that were made meanwhile; and
/// edits that never end keep no flight of the usual length from its end.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Default)]
struct Told {
    edits: u64,
    gone: bool,
}

/// The side that tells.
#[derive(Debug)]
pub(crate) struct Recall(watch::Sender<Told>);

impl Default for Recall {
    fn default() -> Self {
        Self(watch::Sender::new(Told::default()))
    }
}

impl Recall {
    /// The runs that are under way were started for something else than what is asked for now.
    ///
    /// *Caveats*: whoever says so has it evaluated again; what was ended does not do so by itself.
    pub(crate) fn edited(&self) {
        self.0
            .send_modify(|told| told.edits = told.edits.wrapping_add(1));
    }

    /// It is being deleted, or is gone: no flight needs to run for it.
    pub(crate) fn gone(&self) {
        self.0.send_modify(|told| told.gone = true);
    }

    /// For a run that begins now.
    pub(crate) fn watched(&self) -> Recalled {
        let told = self.0.subscribe();
        let edits = told.borrow().edits;
        Recalled {
            edits,
            told: Some(told),
        }
    }
}

/// The side of a run. The default is that of one which nobody recalls.
#[derive(Clone, Debug, Default)]
pub struct Recalled {
    /// How many edits had been told when it began.
    edits: u64,
    told: Option<watch::Receiver<Told>>,
}

impl Recalled {
    /// Waits for a turn, which only the end of the instance takes away: edits would send it to the end of the line.
    pub(crate) async fn unless_gone<T>(
        &self,
        turn: impl Future<Output = T>,
    ) -> Result<T, EngineError> {
        tokio::select! {
            biased;
            turn = turn => Ok(turn),
            () = self.gone() => Err(EngineError::Recalled),
        }
    }

    /// Runs a flight, until it is recalled: for the end of the instance at once, for an edit when it has lasted longer than
    /// [`GRACE`].
    pub(crate) async fn during<T>(
        &self,
        flight: impl Future<Output = T>,
    ) -> Result<T, EngineError> {
        let until = Instant::now() + GRACE;
        let outdated = async {
            self.edited().await;
            sleep_until(until).await;
        };
        tokio::select! {
            biased;
            done = flight => Ok(done),
            () = self.gone() => Err(EngineError::Recalled),
            () = outdated => Err(EngineError::Recalled),
        }
    }

    async fn gone(&self) {
        if let Some(told) = &self.told {
            let seen = told.clone().wait_for(|told| told.gone).await.is_ok();
            if seen {
                return;
            }
        }
        pending::<()>().await;
    }

    async fn edited(&self) {
        if let Some(told) = &self.told {
            let edits = self.edits;
            let seen = told
                .clone()
                .wait_for(|told| told.edits != edits)
                .await
                .is_ok();
            if seen {
                return;
            }
        }
        pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long an endless flight runs, on a clock that stands still while nothing waits for it; `None`: it was not ended
    /// within an hour.
    async fn lasts(recalled: &Recalled) -> Option<Duration> {
        let began = Instant::now();
        let run = recalled.during(pending::<()>());
        let ended = tokio::time::timeout(Duration::from_hours(1), run).await;
        assert!(!matches!(ended, Ok(Ok(()))));
        ended.is_ok().then(|| began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn an_edit_ends_what_lasts_long_and_a_deletion_all() {
        let recall = Recall::default();
        assert_eq!(lasts(&Recalled::default()).await, None);
        assert_eq!(lasts(&recall.watched()).await, None);
        let edited = recall.watched();
        recall.edited();
        // Edits from before it began are what it runs for.
        assert_eq!(lasts(&recall.watched()).await, None);
        let took = lasts(&edited).await;
        assert!(took.is_some_and(|took| took >= GRACE), "{took:?}");
        recall.gone();
        for run in [&edited, &recall.watched()] {
            assert_eq!(lasts(run).await, Some(Duration::ZERO));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_edit_waits_for_a_turn_and_for_the_end_of_what_is_quick() {
        let recall = Recall::default();
        let run = recall.watched();
        recall.edited();
        let quick = tokio::time::sleep(GRACE / 2);
        assert!(run.during(quick).await.is_ok());
        let turn = tokio::time::sleep(10 * GRACE);
        assert!(run.unless_gone(turn).await.is_ok());
        recall.gone();
        assert!(run.unless_gone(pending::<()>()).await.is_err());
    }
}
