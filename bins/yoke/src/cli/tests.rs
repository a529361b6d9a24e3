//! Defaults, and the exit codes of wrong use.

use std::ffi::OsString;
use std::time::Duration;

use clap::CommandFactory as _;

use super::{Cli, Command, LATER, Misuse, Takeoff, parse};

fn typed(words: &str) -> Result<Cli, Misuse> {
    parse(
        std::iter::once("yoke")
            .chain(words.split_whitespace())
            .map(OsString::from),
    )
}

fn takeoff(words: &str) -> Takeoff {
    match typed(&format!("takeoff {words}")).expect("parses").command {
        Command::Takeoff(takeoff) => *takeoff,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_description_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn what_everybody_tries_is_understood() {
    for (words, said) in [
        ("help", "Usage: yoke [OPTIONS] <COMMAND>"),
        ("help takeoff", "Usage: yoke takeoff"),
        ("help drift", "Usage: yoke turbulence"),
    ] {
        let misuse = typed(words).expect_err("help");
        assert_eq!(misuse.code, 0, "{words}");
        assert!(misuse.error.to_string().contains(said), "{}", misuse.error);
    }
    for words in ["--version", "-version", "-V", "version"] {
        let command = typed(words).expect(words).command;
        assert!(matches!(command, Command::Version(_)), "{words}");
    }
    // Elsewhere they are arguments like others.
    assert_eq!(takeoff("help").release, "help");
    let misuse = typed("takeoff -dry=maybe r").expect_err("refused");
    let said = misuse.error.to_string();
    assert!(said.contains("says =true or =false"), "{said}");
    assert_eq!(misuse.code, super::EXIT_USAGE);
}

#[test]
fn defaults() {
    let t = takeoff("r");
    assert_eq!((t.release.as_str(), t.flight, t.args.len()), ("r", None, 0));
    assert_eq!(
        (
            t.diffs.context,
            t.diffs.color,
            t.history_cap,
            t.max_memory_mib
        ),
        (4, None, 10, 128)
    );
    assert!(t.wait.is_zero());
    assert_eq!(t.poll.positive(), Some(Duration::from_secs(5)));
    assert_eq!(t.timeout.positive(), Some(Duration::from_secs(10)));
    assert!(
        !(t.stdout || t.dry || t.skip_dry_run || t.force_conflicts || t.force_ownership || t.lock)
    );
    assert!(
        !(t.create_namespace || t.cross_namespace || t.cluster_access || t.insecure || t.diff_only)
    );
    assert!(!(t.load_custom_readiness || t.remove_all || t.remove_crds || t.remove_namespaces));
    assert!(
        t.resource_access.is_empty()
            && t.out.is_none()
            && t.checksum.is_none()
            && t.verify.is_none()
    );
    assert!(t.namespace.is_none() && t.compilation_cache.is_none());
}

#[test]
fn defaults_of_descent() {
    for verb in ["descent", "down", "restore"] {
        let Command::Descent(d) = typed(&format!("{verb} r 7")).expect("parses").command else {
            panic!("{verb}")
        };
        assert_eq!((d.release.as_str(), d.revision), ("r", 7));
        assert!(!(d.lock || d.remove_all || d.remove_crds || d.remove_namespaces));
        assert!(d.namespace.is_none() && d.wait.is_zero());
        assert_eq!(d.poll.positive(), Some(Duration::from_secs(5)));
    }
}

#[test]
fn values_reach_their_fields() {
    let t = takeoff(
        "-timeout -1s -history-cap -1 -context -2 r f.wasm -resource-access a,b -resource-access=c -- -x --y=z",
    );
    assert!(t.timeout.is_negative());
    assert_eq!((t.history_cap, t.diffs.context), (-1, -2));
    assert_eq!(t.resource_access, ["a,b", "c"]);
    assert_eq!(
        (t.flight.as_deref(), t.args.as_slice()),
        (Some("f.wasm"), &["-x".to_owned(), "--y=z".to_owned()][..])
    );
    let t = takeoff("-dry -dry=false -color=false -namespace a -namespace b r");
    assert!(!t.dry);
    assert_eq!(
        (t.diffs.color, t.namespace.as_deref()),
        (Some(false), Some("b"))
    );
    let cli = typed("-debug -kubeconfig a mayday -kubeconfig b -kube-context c r").expect("parses");
    assert!(cli.global.debug);
    assert_eq!(cli.global.kubeconfig.as_deref(), Some("b".as_ref()));
    assert_eq!(cli.global.kube_context.as_deref(), Some("c"));
}

#[test]
fn looking() {
    let Command::Turbulence(t) = typed("turbulence r").expect("parses").command else {
        panic!("turbulence")
    };
    assert_eq!((t.conflict_only, t.fix, t.output), (None, false, None));
    for words in ["-conflict-only=false r", "r --conflict-only=0"] {
        let command = typed(&format!("drift {words}")).expect("parses").command;
        let Command::Turbulence(t) = command else {
            panic!("turbulence")
        };
        assert_eq!(t.conflict_only, Some(false), "{words}");
    }
    for words in [
        "-o json r",
        "-o=json r",
        "--output json r",
        "r -output=json",
    ] {
        let command = typed(&format!("blackbox {words}")).expect(words).command;
        let Command::Blackbox(b) = command else {
            panic!("blackbox")
        };
        assert_eq!(
            (b.output, b.release.as_deref(), b.id),
            (Some(super::Format::Json), Some("r"), None),
            "{words}"
        );
    }
}

#[test]
fn every_command_has_an_example() {
    for verb in Cli::command().get_subcommands() {
        let after = verb.get_after_help().map(ToString::to_string);
        let after = after.unwrap_or_default();
        let call = format!("yoke {}", verb.get_name());
        assert!(
            after.contains("Example") && after.contains(&call),
            "{}",
            verb.get_name()
        );
    }
}

#[test]
fn the_help_lists_every_command_and_the_exit_codes() {
    let mut root = Cli::command();
    let help = root.render_help().to_string();
    for verb in root.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        for name in std::iter::once(verb.get_name()).chain(verb.get_visible_aliases()) {
            assert!(help.contains(name), "{name}: {help}");
        }
    }
    assert!(help.contains("Exit codes:\n  0 "), "{help}");
}

#[test]
fn codes() {
    for (words, code, said) in [
        ("-h", 0, "Usage"),
        ("--help", 0, "Usage"),
        ("takeoff -h", 0, "resource-access"),
        ("takeoff -help", 0, "resource-access"),
        ("mayday -h", 0, "remove-crds"),
        ("blackbox -h", 0, "OTHER_ID"),
        ("inspect -h", 0, "OTHER_ID"),
        ("turbulence -h", 0, "conflict-only"),
        ("drift -h", 0, "conflict-only"),
        ("diff -h", 0, "conflict-only"),
        ("completion -h", 0, "zsh"),
        ("man -h", 0, "COMMAND"),
        ("version -h", 0, "Usage"),
        ("takeoff -no-such-flag", 2, "--no-such-flag"),
        ("takeoff r -no-such-flag", 2, "--no-such-flag"),
        ("mayday -no-such-flag r", 2, "--no-such-flag"),
        ("-no-such-flag takeoff r", 2, "--no-such-flag"),
        ("takeoff -wait soon r", 2, "soon"),
        ("takeoff -wait", 2, "--wait"),
        ("takeoff r -wait", 2, "--wait"),
        ("takeoff -dry=perhaps r", 2, "--dry"),
        ("takeoff -color=perhaps r", 2, "perhaps"),
        ("takeoff -history-cap many r", 2, "many"),
        ("takeoff -max-memory-mib -1 r", 2, "-1"),
        ("takeoff", 1, "RELEASE"),
        ("mayday", 1, "RELEASE"),
        ("mayday r extra", 1, "extra"),
        ("turbulence", 1, "RELEASE"),
        ("turbulence -conflict-only=perhaps r", 2, "perhaps"),
        ("turbulence -output table r", 2, "table"),
        ("blackbox r 1 2 3", 1, "3"),
        ("blackbox -o", 2, "output"),
        ("blackbox -o xml", 2, "xml"),
        ("version -output xml", 2, "xml"),
        ("completion", 1, "SHELL"),
        ("completion csh", 1, "csh"),
        ("descent", 1, "RELEASE"),
        ("descent r", 1, "REVISION"),
        ("descent r x", 1, "whole numbers from 1"),
        ("descent r 0", 1, "whole numbers from 1"),
        ("descent r -1", 2, "-1"),
        ("down -no-such-flag r 1", 2, "--no-such-flag"),
        ("stow", 1, "FILE"),
        ("stow m.wasm", 1, "URL"),
        ("push -h", 0, "-tag"),
        ("cache", 1, "prune"),
        ("cache ls", 1, "--compilation-cache"),
        ("cache prune -compilation-cache d -max-mib x", 2, "x"),
        ("cache ls -o xml -compilation-cache d", 2, "xml"),
        ("unlatch", 1, "RELEASE"),
        ("unlock r extra", 1, "extra"),
        ("takeoff r f extra", 1, "extra"),
        ("fly", 1, "fly"),
        ("", 1, "Usage"),
    ] {
        let misuse = typed(words).expect_err(words);
        let text = misuse.error.to_string();
        assert_eq!(misuse.code, code, "{words:?}: {text}");
        assert!(text.contains(said), "{words:?}: {text}");
        assert_eq!(misuse.error.use_stderr(), code != 0, "{words:?}");
    }
}

#[test]
fn what_comes_later_says_so_and_is_not_offered() {
    let help = Cli::command().render_long_help().to_string();
    for word in LATER {
        let misuse = typed(&format!("{word} -wait 5s r 1")).expect_err(word);
        assert_eq!(misuse.code, 2);
        let text = misuse.error.to_string();
        assert!(
            text.contains(&format!("\"{word}\" is not part of this version yet")),
            "{text}"
        );
        assert!(!help.contains(&format!(" {word} ")), "{word} in {help}");
    }
}

#[test]
fn modules() {
    let words = "stow -tag a,b -tag=c m.wasm oci://h.io/m:v1 -insecure";
    let Command::Stow(stow) = typed(words).expect("parses").command else {
        panic!("stow")
    };
    assert_eq!(stow.tag, ["a", "b", "c"]);
    assert_eq!(
        (stow.file.as_str(), stow.url.as_str()),
        ("m.wasm", "oci://h.io/m:v1")
    );
    assert!(stow.insecure);
    for words in [
        "cache prune -compilation-cache d -max-mib 3 -older-than=1h",
        "cache -debug prune --older-than 1h -max-mib=3 -compilation-cache=d",
    ] {
        let Command::Cache(cache) = typed(words).expect(words).command else {
            panic!("cache")
        };
        let super::CacheCommand::Prune(prune) = cache.command else {
            panic!("prune")
        };
        assert_eq!(prune.compilation_cache.to_str(), Some("d"), "{words}");
        assert_eq!(prune.max_mib, Some(3), "{words}");
        let age = prune
            .older_than
            .and_then(atc_engine::api::GoDuration::positive);
        assert_eq!(age, Some(Duration::from_hours(1)), "{words}");
    }
    let Command::Cache(cache) = typed("cache ls -compilation-cache d -o json")
        .expect("parses")
        .command
    else {
        panic!("cache")
    };
    assert!(
        matches!(cache.command, super::CacheCommand::Ls(list) if list.output == super::Format::Json)
    );
}

/// The reference in `docs/cli.md` is what the parser knows. `UPDATE_DOCS=1` writes it anew.
#[test]
fn the_reference_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    let stored = std::fs::read_to_string(path).expect("docs/cli.md");
    let mut wanted = stored.clone();
    let root = Cli::command();
    let sections = std::iter::once(("global", &root)).chain(
        root.get_subcommands()
            .filter(|verb| verb.get_arguments().any(|arg| arg.get_long().is_some()))
            .map(|verb| (verb.get_name(), verb)),
    );
    for (name, command) in sections {
        let (begin, end) = (
            format!("<!-- begin {name} -->\n"),
            format!("<!-- end {name} -->"),
        );
        let start = wanted.find(&begin).expect(name) + begin.len();
        let stop = wanted.find(&end).expect(name);
        wanted.replace_range(start..stop, &table(command));
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &wanted).expect("docs/cli.md");
    } else {
        assert!(
            stored == wanted,
            "docs/cli.md is not current: run this test with UPDATE_DOCS=1"
        );
    }
}

/// The flags of a command as a Markdown table.
fn table(command: &clap::Command) -> String {
    let mut table = String::from("| flag | default | meaning |\n| --- | --- | --- |\n");
    let flags = command
        .get_arguments()
        .filter(|arg| arg.get_long().is_some() && !arg.is_hide_set());
    for flag in flags {
        let long = flag.get_long().expect("a flag");
        let name = match flag.get_short() {
            Some(short) => format!("{short}`, `-{long}"),
            None => long.to_owned(),
        };
        let value = flag
            .get_value_names()
            .filter(|_| flag.get_action().takes_values())
            .and_then(|names| names.first());
        let value = value.map(|value| {
            if flag.is_require_equals_set() {
                format!("[={value}]")
            } else {
                format!(" {value}")
            }
        });
        let default = flag
            .get_default_values()
            .first()
            .map(|default| default.to_string_lossy().into_owned());
        let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
        let (default, value) = (
            default
                .filter(|default| default != "false")
                .unwrap_or_default(),
            value.unwrap_or_default(),
        );
        let help = help.replace('|', "\\|");
        let row = format!("| `-{name}{value}` | {default} | {help} |\n");
        table.push_str(&row);
    }
    table
}
