//! One file a command.

mod descent;
mod exclusive;
mod mayday;
mod takeoff;
mod unlatch;
mod version;

use atc_engine::api::ResourceRef;

use crate::cli::{Cli, Command};
use crate::interrupt::Interrupt;

/// Runs what was asked for.
pub(crate) async fn run(cli: Cli, interrupt: &Interrupt) -> anyhow::Result<()> {
    match cli.command {
        Command::Takeoff(args) => takeoff::run(&cli.global, &args, interrupt).await,
        Command::Descent(args) => descent::run(&cli.global, &args, interrupt).await,
        Command::Mayday(args) => mayday::run(&cli.global, &args, interrupt).await,
        Command::Unlatch(args) => unlatch::run(&cli.global, &args).await,
        Command::Version => version::run().await,
    }
}

/// A release has a name.
fn check_release(release: &str) -> anyhow::Result<()> {
    anyhow::ensure!(!release.is_empty(), "the name of the release is empty");
    Ok(())
}

/// A release in messages.
fn named(release: &str, namespace: &str) -> String {
    format!("release \"{release}\" in namespace \"{namespace}\"")
}

/// So many resources in messages.
fn counted(resources: usize) -> String {
    format!(
        "{resources} {}",
        if resources == 1 {
            "resource"
        } else {
            "resources"
        }
    )
}

/// What lives on without its release, by name, since nothing else will ever name it again.
fn let_go(orphaned: &[ResourceRef]) -> String {
    if orphaned.is_empty() {
        return String::new();
    }
    let names: Vec<String> = orphaned.iter().map(ToString::to_string).collect();
    format!(", let go and still there: {}", names.join(", "))
}
