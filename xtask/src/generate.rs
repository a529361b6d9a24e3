//! The files under `docs/generated`: written by programs of this workspace, committed, and compared by tidy.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{
    Workspace,
    workspace::{output, run},
};

/// A generated file, the program that prints it, as it lies under `<target>/debug`, and the arguments of its runs.
struct Generated {
    file: String,
    program: &'static str,
    runs: Vec<Vec<&'static str>>,
    /// Whether each run stands below its command.
    titled: bool,
}

/// The commands of `yoke`; a test of its own holds its manual pages against the commands that there are.
const VERBS: [&str; 14] = [
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

fn files() -> Vec<Generated> {
    let file = |file: &str, program, runs| Generated {
        file: format!("docs/generated/{file}"),
        program,
        runs,
        titled: false,
    };
    let mut helps = vec![vec!["--help"]];
    helps.extend(VERBS.map(|verb| vec![verb, "--help"]));
    let mut files = vec![
        file("crds.yaml", "examples/crds", vec![vec![]]),
        Generated {
            titled: true,
            ..file("atc.txt", "atc", vec![vec!["--help"]])
        },
        Generated {
            titled: true,
            ..file("yoke.txt", "yoke", helps)
        },
        file("man/yoke.1", "yoke", vec![vec!["man"]]),
    ];
    files.extend(VERBS.map(|verb| {
        let page = format!("man/yoke-{verb}.1");
        file(&page, "yoke", vec![vec!["man", verb]])
    }));
    files
}

/// Findings: generated files that are not as their programs print them.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for (path, text) in texts(workspace)? {
        let shown = path
            .strip_prefix(workspace.root())
            .unwrap_or(&path)
            .display();
        match fs::read_to_string(&path) {
            Ok(found) if found == text => {}
            Ok(_) => findings.push(format!("{shown}: not current, run `cargo xtask generate`")),
            Err(_) => findings.push(format!("{shown}: missing, run `cargo xtask generate`")),
        }
    }
    Ok(findings)
}

/// Writes them.
pub(crate) fn write(workspace: &Workspace) -> Result<()> {
    for (path, text) in texts(workspace)? {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))
            .context("create docs/generated")?;
        fs::write(&path, text).with_context(|| format!("write \"{}\"", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

fn texts(workspace: &Workspace) -> Result<Vec<(PathBuf, String)>> {
    // With the features of the whole workspace, as for the tests.
    run(workspace.cargo().args([
        "build",
        "--quiet",
        "--workspace",
        "--bins",
        "--tests",
        "--examples",
    ]))?;
    let built = workspace.target().join("debug");
    let mut texts = Vec::new();
    for generated in files() {
        let mut text = String::new();
        for arguments in &generated.runs {
            let mut command = Command::new(built.join(generated.program));
            // Nothing of this machine may be in the text.
            command.args(arguments).env_clear().env("COLUMNS", "100");
            if generated.titled {
                let space = if text.is_empty() { "" } else { "\n" };
                text = format!(
                    "{text}{space}$ {} {}\n\n",
                    generated.program,
                    arguments.join(" ")
                );
            }
            text += &output(&mut command)?;
        }
        texts.push((workspace.root().join(&generated.file), text));
    }
    Ok(texts)
}
