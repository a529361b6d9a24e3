//! The project's own commands: `cargo xtask --help`.

use std::process::ExitCode;

use clap::Parser;
use xtask::Command;

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    match xtask::run(&Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
