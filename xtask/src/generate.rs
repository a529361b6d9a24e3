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

/// A generated file and the program that prints it, as it lies under `<target>/debug`.
struct Generated {
    file: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
}

const FILES: [Generated; 3] = [
    Generated {
        file: "docs/generated/crds.yaml",
        program: "examples/crds",
        arguments: &[],
    },
    Generated {
        file: "docs/generated/atc.txt",
        program: "atc",
        arguments: &["--help"],
    },
    Generated {
        file: "docs/generated/yoke.txt",
        program: "yoke",
        arguments: &["help"],
    },
];

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
    for generated in &FILES {
        let mut command = Command::new(built.join(generated.program));
        // Nothing of this machine may be in the text.
        command
            .args(generated.arguments)
            .env_clear()
            .env("COLUMNS", "100");
        texts.push((workspace.root().join(generated.file), output(&mut command)?));
    }
    Ok(texts)
}
