//! `cargo xtask demo`.
use crate::Workspace;
use anyhow::Result;
use std::process::ExitCode;
/// What `cargo xtask demo` takes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Leaves everything running at the end
    #[arg(long)]
    keep: bool,
}
pub(crate) fn run(_workspace: &Workspace, _arguments: &Arguments) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
