//! SIGINT and SIGTERM: what runs is dropped, unless it holds something in the cluster, which it then gives back itself.

use std::time::Duration;

use atc_engine::EngineError;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cli::EXIT_ERROR;

/// How long an ended command may take to let go before the process ends anyway: a write to a pipe that nobody reads
/// would otherwise hold it for ever.
const GRACE: Duration = Duration::from_secs(1);
/// The same for one that holds something in the cluster: a few calls. What is not given back by then runs out.
const HELD_GRACE: Duration = Duration::from_secs(5);

/// The first of these signals, as the parts of a command see it.
#[derive(Debug)]
pub(crate) struct Interrupt {
    stop: watch::Receiver<bool>,
    held: watch::Sender<usize>,
}

/// While it lives, an interrupt does not drop the command: whoever has it ends by itself, soon.
pub(crate) struct Holding<'a>(&'a watch::Sender<usize>);

impl Interrupt {
    /// Listens from now on. At a second signal, or when the grace is over, the process ends at once.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let (sender, stop) = watch::channel(false);
        let (held, holders) = watch::channel(0);
        tokio::spawn(async move {
            tokio::select! { _ = interrupt.recv() => (), _ = terminate.recv() => () }
            // Nobody listens where the command has ended by itself.
            let _ = sender.send(true);
            let grace = if *holders.borrow() == 0 {
                GRACE
            } else {
                HELD_GRACE
            };
            tokio::select! { _ = interrupt.recv() => (), _ = terminate.recv() => (), () = tokio::time::sleep(grace) => () }
            std::process::exit(i32::from(EXIT_ERROR));
        });
        Ok(Self { stop, held })
    }

    /// Becomes true at the signal.
    pub(crate) fn stop(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }

    /// Says that something is held in the cluster.
    pub(crate) fn hold(&self) -> Holding<'_> {
        self.held.send_modify(|count| *count += 1);
        Holding(&self.held)
    }

    /// Does the work, or drops it at the signal once nothing is held.
    pub(crate) async fn or<T>(
        &self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let unheld = async {
            signalled(self.stop()).await;
            // The sender is ours, so this ends in no other way.
            let _ = self.held.subscribe().wait_for(|count| *count == 0).await;
        };
        or_stopped(unheld, work).await
    }

    /// Does the work, or drops it at the signal, whatever is held: work that holds nothing itself.
    pub(crate) async fn or_drop<T>(
        &self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        or_stopped(signalled(self.stop()), work).await
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

async fn signalled(mut stop: watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn or_stopped<T>(
    stopped: impl Future<Output = ()>,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    tokio::select! {
        biased;
        () = stopped => Err(EngineError::Stopped.into()),
        result = work => result,
    }
}
