//! `yoke completion` and `yoke man`: scripts and pages made from the description of the command line itself.

use anyhow::{Context as _, bail};
use clap::CommandFactory as _;
use clap_complete::generate;
use clap_mangen::Man;

use crate::cli::{self, Cli, Completion};
use crate::output;

/// Prints a completion script.
pub(crate) async fn completion(args: &Completion) -> anyhow::Result<()> {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "yoke", &mut script);
    output::write(script).await
}

/// Prints a manual page, as roff.
pub(crate) async fn man(args: &cli::Man) -> anyhow::Result<()> {
    output::write(page(args.command.as_deref())?).await
}

fn page(name: Option<&str>) -> anyhow::Result<Vec<u8>> {
    let mut root = Cli::command();
    // Pages and usage lines then have the program's name in them.
    root.build();
    let command = match name {
        None => root,
        Some(name) => match root.find_subcommand(name) {
            Some(command) => command.clone(),
            None => bail!("there is no command \"{name}\" to print the manual page of"),
        },
    };
    let mut page = Vec::new();
    Man::new(command)
        .render(&mut page)
        .context("cannot make the manual page")?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;
    use clap_complete::Shell;

    use super::*;

    /// `cargo xtask generate` writes them.
    #[test]
    fn the_manual_pages_are_current() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/generated/man/yoke");
        let root = Cli::command();
        let verbs = root.get_subcommands().map(clap::Command::get_name);
        for verb in std::iter::once(None).chain(verbs.map(Some)) {
            let file = match verb {
                Some(verb) => format!("{folder}-{verb}.1"),
                None => format!("{folder}.1"),
            };
            let stored = std::fs::read(&file).unwrap_or_default();
            assert!(
                stored == page(verb).expect("a page"),
                "{file} is not current: run `cargo xtask generate`, with the command in its list"
            );
        }
    }

    #[test]
    fn scripts_know_every_command() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            generate(*shell, &mut Cli::command(), "yoke", &mut script);
            let script = String::from_utf8(script).expect("text");
            for verb in Cli::command().get_subcommands() {
                assert!(
                    script.contains(verb.get_name()),
                    "{shell} {}",
                    verb.get_name()
                );
            }
            assert!(script.contains("conflict-only"), "{shell}");
        }
    }

    #[test]
    fn a_page_of_a_command_is_found_by_its_aliases_too() {
        assert_eq!(
            page(Some("drift")).expect("page"),
            page(Some("turbulence")).expect("page")
        );
        assert!(page(Some("fly")).is_err());
    }
}
