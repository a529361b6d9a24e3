//! Arguments of the commands about modules: pushing them, and the folder where they are kept.

use std::path::PathBuf;

use atc_engine::api::GoDuration;
use clap::{Args, Subcommand};

use super::look::Format;
use super::path;

/// Arguments of `stow`.
#[derive(Debug, Args)]
pub(crate) struct Stow {
    /// Path of the module; gzip around it is taken off
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// Where to push it: oci://HOST/REPOSITORY:TAG
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Further tags; several with commas or several times
    #[arg(long, value_name = "TAG", value_delimiter = ',')]
    pub(crate) tag: Vec<String>,
    /// Allow registries without TLS, or with a certificate that is not trusted
    #[arg(long)]
    pub(crate) insecure: bool,
}

/// Arguments of `cache`.
#[derive(Debug, Args)]
pub(crate) struct Cache {
    #[command(subcommand)]
    pub(crate) command: CacheCommand,
}

/// What to do with the cache.
#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List what is kept, the most recently used first
    Ls(List),
    /// Remove what is kept, the least recently used first
    Prune(Prune),
}

/// Arguments of `cache ls`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// The folder, as takeoff has it
    #[arg(long, value_parser = path(), value_name = "DIR", required = true)]
    pub(crate) compilation_cache: PathBuf,
    /// Form of the list: table, json, yaml
    #[arg(long, short, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Format,
}

/// Arguments of `cache prune`. Without a limit everything goes.
#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// The folder, as takeoff has it
    #[arg(long, value_parser = path(), value_name = "DIR", required = true)]
    pub(crate) compilation_cache: PathBuf,
    /// Remove only until so much is left of the modules, and so much of their compiled code, in MiB
    #[arg(long, value_name = "MIB")]
    pub(crate) max_mib: Option<u64>,
    /// Remove only what has not been used for so long
    #[arg(long, value_name = "DURATION")]
    pub(crate) older_than: Option<GoDuration>,
}
