//! The yoke command line: take flights off against a cluster, look, and remove.
//!
//! Data goes to stdout, messages to stderr. Exit codes: 0 success (and warnings), 1 error, 2 wrong use of a flag.

mod argv;
mod cli;
mod commands;
mod connect;
mod holder;
mod input;
mod interrupt;
mod module;
mod output;
mod progress;
mod render;

use std::process::ExitCode;

use anyhow::Context as _;
use cli::{Cli, EXIT_ERROR};
use interrupt::Interrupt;

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
        let interrupt = Interrupt::listen().context("cannot listen for signals")?;
        interrupt.or(Box::pin(commands::run(cli, &interrupt))).await
    });
    // A thread may still sit in a read of stdin, or a flight may run: nobody waits for them.
    runtime.shutdown_background();
    result
}
