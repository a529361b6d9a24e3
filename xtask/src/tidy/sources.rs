//! Rules for source files: size, a first line, pure files, and where the cluster may be written.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// The longest that a source file may be, in lines.
const LONGEST: usize = 600;
/// Where our sources are.
const TREES: [&str; 5] = ["crates", "bins", "xtask", "tests", "docs/examples"];
/// How a module's documentation begins.
const DOCS: [&str; 2] = ["//!", "#![doc = include_str!"];
/// Names of files that say nothing about what is in them.
const NAMELESS: [&str; 6] = [
    "utils.rs",
    "util.rs",
    "common.rs",
    "types.rs",
    "helpers.rs",
    "misc.rs",
];

/// Files and folders that hold values and decisions only: no await, no client, no clock, no disk. A file's own folder
/// (`plan/` beside `plan.rs`) is marked with it.
const PURE: &[&str] = &[
    "crates/atc-api/src",
    "crates/atc-access/src/arguments.rs",
    "crates/atc-access/src/ledger.rs",
    "crates/atc-access/src/matcher.rs",
    "crates/atc-access/src/owner.rs",
    "crates/atc-access/src/policy.rs",
    "crates/atc-flight/src/duration.rs",
    "crates/atc-flight/src/error.rs",
    "crates/atc-flight/src/invocation.rs",
    "crates/atc-flight/src/limits.rs",
    "crates/atc-artifact/src/allow_list.rs",
    "crates/atc-artifact/src/cosign.rs",
    "crates/atc-artifact/src/error.rs",
    "crates/atc-artifact/src/credentials/config.rs",
    "crates/atc-artifact/src/glob.rs",
    "crates/atc-artifact/src/key.rs",
    "crates/atc-artifact/src/location.rs",
    "crates/atc-artifact/src/oci/manifest.rs",
    "crates/atc-artifact/src/oci/signatures/layers.rs",
    "crates/atc-artifact/src/reference.rs",
    "crates/atc-artifact/src/schematic.rs",
    "crates/atc-artifact/src/section.rs",
    "crates/atc-artifact/src/signature.rs",
    "crates/atc-artifact/src/unpack.rs",
    "crates/atc-artifact/src/verify.rs",
    "crates/atc-readiness/src/book.rs",
    "crates/atc-readiness/src/key.rs",
    "crates/atc-readiness/src/rule.rs",
    "crates/atc-readiness/src/script/pattern.rs",
    "crates/atc-release/src/decorate.rs",
    "crates/atc-release/src/desired.rs",
    "crates/atc-release/src/drift.rs",
    "crates/atc-release/src/history.rs",
    "crates/atc-release/src/intent.rs",
    "crates/atc-release/src/managed_fields.rs",
    "crates/atc-release/src/object.rs",
    "crates/atc-release/src/ownership.rs",
    "crates/atc-release/src/plan.rs",
    "crates/atc-release/src/readiness.rs",
    "crates/atc-release/src/schema.rs",
    "crates/atc-watch/src/change.rs",
    "crates/atc-watch/src/dependency.rs",
    "crates/atc-watch/src/selection.rs",
    "crates/atc-watch/src/tracker.rs",
    "crates/atc-engine/src/disposition.rs",
    "crates/atc-engine/src/status.rs",
    "crates/atc-controller/src/bootstrap.rs",
    "crates/atc-controller/src/webhook_url.rs",
    "crates/atc-controller/src/crd.rs",
    "crates/atc-controller/src/owner.rs",
];
/// What a pure file may not contain.
const IMPURE: [&str; 9] = [
    ".await",
    "Api<",
    "kube::Client",
    "kube::client",
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "std::fs",
    "std::net",
];

/// Where calls that write to the cluster may stand.
const WRITERS: &[&str] = &[
    "crates/atc-release/src/cluster/",
    // To registries, not to the cluster.
    "crates/atc-artifact/src/oci/",
    "crates/atc-controller/src/lease.rs",
    "crates/atc-controller/src/events.rs",
    "crates/atc-controller/src/review.rs",
];
/// Who sees none of this rule: what runs on the machine of a developer only.
const UNBOUND: [&str; 3] = ["tests/", "xtask/", "docs/examples/"];
/// A call that writes needs one of these.
const WRITES: [&str; 7] = [
    "PatchParams",
    "PostParams",
    "DeleteParams",
    "Method::POST",
    "Method::PUT",
    "Method::PATCH",
    "Method::DELETE",
];
/// Unfinished work.
const STUBS: [&str; 3] = ["todo!(", "unimplemented!(", "#[ignore"];

pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for tree in TREES {
        collect(&root.join(tree), &mut files)?;
    }
    let mut findings = Vec::new();
    for path in files {
        let text =
            fs::read_to_string(&path).with_context(|| format!("read \"{}\"", path.display()))?;
        let place = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .to_string_lossy()
            .replace('\\', "/");
        findings.extend(rules(&place, &text));
    }
    for place in PURE {
        if !root.join(place).exists() {
            findings.push(format!(
                "{place}: in the list of pure files (xtask/src/tidy/sources.rs), and not there"
            ));
        }
    }
    Ok(findings)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).with_context(|| format!("read \"{}\"", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The findings of one file; `place` is its path from the root.
fn rules(place: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let mut find = |what: &str| findings.push(format!("{place}: {what}"));
    let name = place.rsplit('/').next().unwrap_or(place);
    let lines = text.lines().count();
    if lines > LONGEST {
        find(&format!("{lines} lines, the limit is {LONGEST}"));
    }
    // `foo/tests.rs` says by its name what it is.
    if name != "tests.rs"
        && !DOCS
            .iter()
            .any(|begin| text.trim_start().starts_with(begin))
    {
        find("does not begin with a `//!` line");
    }
    if NAMELESS.contains(&name) {
        find("name it after what is in it");
    }
    let code = code(text);
    let tests = place.contains("/tests/") || name == "tests.rs" || place.starts_with("tests/");
    // This file names all these words.
    if place.ends_with("tidy/sources.rs") {
        return findings;
    }
    for word in STUBS.iter().filter(|word| code.contains(**word)) {
        find(&format!("unfinished: `{word}`"));
    }
    if tests {
        return findings;
    }
    if PURE.iter().any(|pure| is_in(place, pure)) {
        for word in IMPURE.iter().filter(|word| code.contains(**word)) {
            find(&format!("is marked pure and has `{word}`"));
        }
    }
    let writer = WRITERS
        .iter()
        .chain(&UNBOUND)
        .any(|allowed| place.starts_with(allowed));
    if !writer && let Some(word) = WRITES.iter().find(|word| code.contains(**word)) {
        find(&format!(
            "writes to the cluster (`{word}`); that is for {}",
            WRITERS.join(", ")
        ));
    }
    findings
}

/// Whether a file is the marked one, or lies in the marked folder or in the marked file's own.
fn is_in(place: &str, marked: &str) -> bool {
    let folder = marked.strip_suffix(".rs").unwrap_or(marked);
    place == marked
        || place
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/'))
}

/// The text without comments and without the test module at its end.
fn code(text: &str) -> String {
    let lines = text
        .lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]"));
    let code = lines.map(|line| match line.find("//") {
        Some(at) if !line[..at].ends_with(':') => &line[..at],
        _ => line,
    });
    code.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::rules;

    fn check(place: &str, text: &str, expect: &[&str]) {
        let found = rules(place, text);
        assert_eq!(found.len(), expect.len(), "{found:?}");
        for (found, expect) in found.iter().zip(expect) {
            assert!(found.contains(expect), "{found}");
        }
    }

    #[test]
    fn files() {
        check("crates/x/src/a.rs", "//! A.\nfn a() {}\n", &[]);
        check("crates/x/src/a.rs", "fn a() {}\n", &["does not begin"]);
        check("crates/x/src/a/tests.rs", "fn a() {}\n", &[]);
        check("crates/x/src/utils.rs", "//! U.\n", &["name it after"]);
        check(
            "crates/x/src/a.rs",
            &format!("//! A.\n{}", "\n".repeat(600)),
            &["601 lines"],
        );
        check(
            "crates/x/src/a.rs",
            "//! A.\nfn a() { todo!() }\n",
            &["unfinished"],
        );
        check("crates/x/src/a.rs", "//! A.\n// todo!()\n", &[]);
    }

    #[test]
    fn pure_files() {
        let text = "//! Plan.\nasync fn a() { b().await }\n";
        check("crates/atc-release/src/plan.rs", text, &["marked pure"]);
        check(
            "crates/atc-release/src/plan/order.rs",
            text,
            &["marked pure"],
        );
        check("crates/atc-release/src/cluster/wait.rs", text, &[]);
        check("crates/atc-api/src/airway.rs", text, &["marked pure"]);
        check(
            "crates/atc-release/src/plan.rs",
            "//! Plan.\n#[cfg(test)]\nmod tests { async fn a() { b().await } }\n",
            &[],
        );
    }

    #[test]
    fn writers() {
        let text = "//! W.\nuse kube::api::PatchParams;\n";
        check(
            "crates/atc-engine/src/takeoff.rs",
            text,
            &["writes to the cluster"],
        );
        check("crates/atc-release/src/cluster/apply.rs", text, &[]);
        check("tests/src/api.rs", text, &[]);
    }
}
