//! The project's own commands. All automation is here: people and continuous integration run the same.
//!
//! This crate knows no Kubernetes client and none of the project's crates but the control plane, so that
//! `cargo xtask` starts in seconds.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

pub mod tidy;

mod cluster;
mod demo;
mod fuzz;
mod generate;
mod guests;
mod publish;
mod steps;
mod test;
mod workspace;

pub use workspace::Workspace;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Formats, lints and tests everything, on a control plane of its own; ends with `N passed, N failed`
    Test(test::Arguments),
    /// Shows the project at work: two flights on a real control plane, with what happened and why
    Demo(demo::Arguments),
    /// Starts a control plane to play with, until Ctrl-C
    Cluster(cluster::Arguments),
    /// Checks the rules of the layout: imports, pure files, sizes, generated files
    Tidy,
    /// Builds the flights of docs/examples and tests/guests into <target>/guests
    Guests,
    /// Writes the files under docs/generated anew
    Generate,
    /// Makes inputs up for what reads input from outside, with cargo-fuzz
    Fuzz(fuzz::Arguments),
    /// Packages and verifies every published crate, and builds a stranger's crate on the packages
    PublishCheck,
}

/// Runs one command to its end.
///
/// # Errors
///
/// When it could not be run; one that ran and found faults has said so and returns a failing exit code.
pub fn run(command: &Command) -> Result<ExitCode> {
    let workspace = Workspace::find()?;
    match command {
        Command::Test(arguments) => test::run(&workspace, arguments),
        Command::Demo(arguments) => demo::run(&workspace, arguments),
        Command::Cluster(arguments) => cluster::run(arguments),
        Command::Tidy => {
            let mut findings = tidy::check(&workspace)?;
            findings.extend(generate::check(&workspace)?);
            Ok(tidy::report(&findings))
        }
        Command::Guests => {
            for guest in guests::build(&workspace)? {
                println!("{}", guest.display());
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Fuzz(arguments) => fuzz::fuzz(&workspace, arguments),
        Command::Generate => generate::write(&workspace).map(|()| ExitCode::SUCCESS),
        Command::PublishCheck => publish::check(&workspace).map(|()| ExitCode::SUCCESS),
    }
}
