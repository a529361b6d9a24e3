//! `yoke completion` and `yoke man`: scripts and pages made from the description of the command line itself.

use anyhow::{Context as _, bail};
use clap::{Command, CommandFactory as _};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use crate::cli::{self, Cli, Completion};
use crate::output;

/// The commands that have a manual page, for scripts: the parser takes other names of theirs, too.
const PAGES: [&str; 14] = [
    "takeoff",
    "descent",
    "mayday",
    "blackbox",
    "turbulence",
    "stow",
    "cache",
    "unlatch",
    "schematics",
    "sign",
    "verify",
    "version",
    "completion",
    "man",
];
/// The manual that the pages are part of, and what made them.
const MANUAL: &str = "Air Traffic Controller";
const SOURCE: &str = concat!("yoke ", env!("CARGO_PKG_VERSION"));

/// Prints a completion script.
pub(crate) async fn completion(args: &Completion) -> anyhow::Result<()> {
    output::write(script(args.shell)).await
}

fn script(shell: Shell) -> Vec<u8> {
    let pages = |man: Command| man.mut_arg("command", |command| command.value_parser(PAGES));
    let mut described = Cli::command().mut_subcommand("man", pages);
    let mut script = Vec::new();
    generate(shell, &mut described, "yoke", &mut script);
    script
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
        .source(SOURCE)
        .manual(MANUAL)
        .render(&mut page)
        .context("cannot make the manual page")?;
    let page = String::from_utf8(page).context("cannot make the manual page")?;
    // What stands below the flags has no name of its own there.
    Ok(page.replace("\n.SH EXTRA\n", "\n.SH NOTES\n").into_bytes())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    /// `cargo xtask generate` writes them.
    #[test]
    fn the_manual_pages_are_current() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/generated/man/yoke");
        let root = Cli::command();
        let verbs = root.get_subcommands().map(Command::get_name);
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
            let script = String::from_utf8(script(*shell)).expect("text");
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
    fn scripts_know_every_page() {
        let root = Cli::command();
        let verbs: Vec<&str> = root.get_subcommands().map(Command::get_name).collect();
        assert_eq!(verbs, PAGES);
        let script = String::from_utf8(script(Shell::Zsh)).expect("text");
        let pages = format!("({})", PAGES.join(" "));
        assert!(script.contains(&pages), "{script}");
    }

    #[test]
    fn pages_say_the_version() {
        let page = String::from_utf8(page(Some("takeoff")).expect("page")).expect("text");
        let version = env!("CARGO_PKG_VERSION");
        let title = page.lines().find(|line| line.starts_with(".TH "));
        let title = title.unwrap_or_default();
        assert!(title.contains(&format!("yoke {version}")), "{title}");
        assert!(page.contains(".SH NOTES") && !page.contains(".SH EXTRA"));
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
