//! What stands at the top of the tree, and what a published crate says about itself.

use std::{collections::BTreeSet, process::Command};

use anyhow::Result;
use serde_json::Value;

use crate::{Workspace, workspace::output};

/// The top level, apart from dot-files and `Cargo.lock`: all of it, and nothing else.
const TOP: [&str; 8] = [
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "bins",
    "crates",
    "docs",
    "tests",
    "xtask",
];

pub(super) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let mut findings = top(&names(workspace)?);
    for package in workspace.packages() {
        findings.extend(metadata(package));
    }
    Ok(findings)
}

/// First parts of the paths of all files that git knows or would add; without git, of all that lie there.
fn names(workspace: &Workspace) -> Result<BTreeSet<String>> {
    let mut git = Command::new("git");
    git.current_dir(workspace.root()).args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    if let Ok(files) = output(&mut git) {
        return Ok(files
            .lines()
            .filter_map(|line| line.split('/').next())
            .map(str::to_owned)
            .collect());
    }
    let entries = std::fs::read_dir(workspace.root())?;
    let names = entries.filter_map(|e| Some(e.ok()?.file_name().to_string_lossy().into_owned()));
    Ok(names.filter(|name| name != "target").collect())
}

fn top(names: &BTreeSet<String>) -> Vec<String> {
    let missing = TOP
        .iter()
        .filter(|name| !names.contains(**name))
        .map(|name| format!("{name}: missing at the top level"));
    let visible = names
        .iter()
        .filter(|name| !name.starts_with('.') && *name != "Cargo.lock");
    let extra = visible.filter(|name| !TOP.contains(&name.as_str()));
    missing
        .chain(extra.map(|name| format!("{name}: not in the top level's list")))
        .collect()
}

/// What crates.io shows of a crate must be there. `publish` is null for a crate that may be published.
fn metadata(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let mut fields = vec!["description", "license", "rust_version"];
    if package["publish"].is_null() {
        fields.extend(["documentation", "repository", "keywords"]);
    }
    let empty = |value: &Value| match value {
        Value::Array(items) => items.is_empty(),
        value => value.as_str().is_none_or(str::is_empty),
    };
    fields.retain(|field| empty(&package[field]));
    fields
        .into_iter()
        .map(|field| format!("{name}: its Cargo.toml has no {}", field.replace('_', "-")))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{TOP, metadata, top};

    #[test]
    fn top_level() {
        let mut names: std::collections::BTreeSet<String> =
            TOP.iter().map(ToString::to_string).collect();
        names.extend([".ci".into(), "Cargo.lock".into()]);
        assert!(top(&names).is_empty());
        names.remove("docs");
        names.insert("scripts".into());
        assert_eq!(
            top(&names),
            [
                "docs: missing at the top level",
                "scripts: not in the top level's list"
            ]
        );
    }

    #[test]
    fn metadata_of_published_crates() {
        let mut package = json!({
            "name": "x", "publish": null, "description": "d", "license": "l", "rust_version": "1.95",
            "documentation": "u", "repository": "u", "keywords": ["k"],
        });
        assert!(metadata(&package).is_empty());
        package["keywords"] = json!([]);
        assert_eq!(metadata(&package), ["x: its Cargo.toml has no keywords"]);
        package["publish"] = json!([]);
        assert!(metadata(&package).is_empty());
    }
}
