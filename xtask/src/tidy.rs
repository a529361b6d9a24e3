//! `cargo xtask tidy`: the rules of `docs/architecture.md`, checked instead of hoped for.

use std::process::ExitCode;

use anyhow::Result;

use crate::Workspace;

mod imports;
mod layout;
mod sources;

/// What is against the rules: one line each, sorted, beginning with the place.
///
/// # Errors
///
/// When the workspace cannot be read.
pub fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let mut findings = layout::check(workspace)?;
    findings.extend(imports::check(workspace)?);
    findings.extend(sources::check(workspace.root())?);
    findings.sort();
    Ok(findings)
}

/// Prints findings and says by the exit code whether there were any.
pub(crate) fn report(findings: &[String]) -> ExitCode {
    for finding in findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy");
        return ExitCode::SUCCESS;
    }
    println!("{} findings", findings.len());
    ExitCode::FAILURE
}
