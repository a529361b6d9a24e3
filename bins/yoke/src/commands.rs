//! One file a command.

mod about;
mod blackbox;
mod cache;
mod descent;
mod exclusive;
mod mayday;
mod schematics;
mod sign;
mod stow;
mod takeoff;
mod turbulence;
mod unlatch;
mod version;

use std::io::IsTerminal as _;

use atc_engine::api::ResourceRef;
use atc_engine::release::drift::DiffOptions;

use crate::cli::{Cli, Command, Diffs};
use crate::interrupt::Interrupt;
use crate::render;

/// Runs what was asked for.
pub(crate) async fn run(cli: Cli, interrupt: &Interrupt) -> anyhow::Result<()> {
    match cli.command {
        Command::Takeoff(args) => takeoff::run(&cli.global, &args, interrupt).await,
        Command::Descent(args) => descent::run(&cli.global, &args, interrupt).await,
        Command::Mayday(args) => mayday::run(&cli.global, &args, interrupt).await,
        Command::Blackbox(args) => blackbox::run(&cli.global, &args).await,
        Command::Turbulence(args) => turbulence::run(&cli.global, &args).await,
        Command::Stow(args) => stow::run(&args).await,
        Command::Cache(args) => cache::run(&args).await,
        Command::Unlatch(args) => unlatch::run(&cli.global, &args).await,
        Command::Schematics(args) => schematics::run(&args).await,
        Command::Sign(args) => sign::run(&args).await,
        Command::Verify(args) => sign::check(&args).await,
        Command::Version(args) => version::run(&args).await,
        Command::Completion(args) => about::completion(&args).await,
        Command::Man(args) => about::man(&args).await,
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
pub(crate) fn counted(resources: usize) -> String {
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
    // All of them: there are few, and whoever wants to remove them by hand needs each name.
    let names: Vec<String> = orphaned.iter().map(render::resource).collect();
    format!(", let go and still there: {}", names.join(", "))
}

/// How differences are shown that these flags ask for.
fn diff_options<'a>(flags: &Diffs, from: &'a str, to: &'a str) -> DiffOptions<'a> {
    DiffOptions {
        from,
        to,
        // A negative number of lines is none.
        context: usize::try_from(flags.context).unwrap_or_default(),
        colour: flags
            .color
            .unwrap_or_else(|| render::coloured(std::io::stdout().is_terminal())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_let_go_is_named() {
        assert_eq!(let_go(&[]), "");
        let orphaned: Vec<ResourceRef> = ["/Namespace:team", "team/Secret:db"]
            .map(|text| text.parse::<ResourceRef>().expect("a reference"))
            .into();
        assert_eq!(
            let_go(&orphaned),
            ", let go and still there: Namespace:team, team/Secret:db"
        );
    }
}
