//! The yoke command line: take flights off against a cluster, look, and remove.
//!
//! Data goes to stdout, messages to stderr. Exit codes: 0 success (and warnings), 1 error, 2 wrong use of a flag.

mod argv;
mod cli;
mod commands;
mod connect;
mod input;
mod output;
mod progress;
mod render;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use cli::{Cli, EXIT_ERROR};
use tokio::sync::oneshot;

/// How long an ended command may take to let go before the process ends anyway: a write to a pipe that nobody reads
/// would otherwise hold it for ever.
const GRACE: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    // It fails only where a provider is installed already, which then is this one: nothing ran before.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let cli = match cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(misuse) => {
            misuse.print();
            return ExitCode::from(misuse.code);
        }
    };
    render::start_logging(cli.global.debug);
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever closed the pipe has what was wanted.
        Err(error) if error.is::<output::Closed>() => ExitCode::SUCCESS,
        Err(error) => {
            render::error(&error);
            ExitCode::from(EXIT_ERROR)
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let result = runtime.block_on(async {
        let interrupted = interrupted().context("cannot listen for signals")?;
        tokio::select! {
            biased;
            _ = interrupted => Err(anyhow::anyhow!("interrupted")),
            result = commands::run(cli) => result,
        }
    });
    // A thread may still sit in a read of stdin, or a flight may run: nobody waits for them.
    runtime.shutdown_background();
    result
}

/// Resolves at the first SIGINT or SIGTERM. What runs is dropped then, with all that it holds on disk; if that takes
/// longer than [`GRACE`], or at a second signal, the process ends at once.
fn interrupted() -> std::io::Result<oneshot::Receiver<()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (sender, receiver) = oneshot::channel();
    tokio::spawn(async move {
        tokio::select! { _ = interrupt.recv() => (), _ = terminate.recv() => () }
        // Nobody listens where the command has ended by itself.
        let _ = sender.send(());
        tokio::select! { _ = interrupt.recv() => (), _ = terminate.recv() => (), () = tokio::time::sleep(GRACE) => () }
        std::process::exit(i32::from(EXIT_ERROR));
    });
    Ok(receiver)
}
