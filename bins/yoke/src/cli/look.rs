//! Arguments of the commands that look, and of those that print about the program itself.

use clap::{Args, ValueEnum};
use clap_complete::Shell;

/// How differences are shown.
#[derive(Debug, Args)]
pub(crate) struct Diffs {
    /// Lines around each difference
    #[arg(long, value_name = "LINES", default_value_t = 4)]
    pub(crate) context: i64,
    /// Colour the differences. Default: if stdout is a terminal
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) color: Option<bool>,
}

/// A form of data on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people
    Table,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

/// A form of data on stdout for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Data {
    /// JSON
    Json,
    /// YAML
    Yaml,
}

/// Arguments of `blackbox`.
#[derive(Debug, Args)]
pub(crate) struct Blackbox {
    /// Name of the release whose revisions to list. Without it all releases are listed
    #[arg(value_name = "RELEASE")]
    pub(crate) release: Option<String>,
    /// Id of the revision to print
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Id of the revision to compare it with
    #[arg(value_name = "OTHER_ID")]
    pub(crate) other: Option<String>,
    /// Namespace of the releases. Default: all that may be read
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    #[command(flatten)]
    pub(crate) diffs: Diffs,
    /// Form of a list (table, json, yaml) or of one revision (yaml, json)
    #[arg(long, short, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
}

/// Arguments of `turbulence`.
#[derive(Debug, Args)]
pub(crate) struct Turbulence {
    /// Name of the release
    #[arg(value_name = "RELEASE")]
    pub(crate) release: String,
    /// Namespace of the release. Default: that of the kubeconfig's context, else `default`
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Only look at what the record names. With =false, fields that others have added are shown, too. Default: true
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) conflict_only: Option<bool>,
    /// Apply again, by force, what is not as recorded
    #[arg(long)]
    pub(crate) fix: bool,
    #[command(flatten)]
    pub(crate) diffs: Diffs,
    /// List what is not as recorded in this form (json, yaml) instead of showing differences
    #[arg(long, short, value_name = "FORMAT")]
    pub(crate) output: Option<Data>,
}

/// Arguments of `version`.
#[derive(Debug, Args)]
pub(crate) struct Version {
    /// Form of the list: table, json, yaml
    #[arg(long, short, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Format,
}

/// Arguments of `completion`.
#[derive(Debug, Args)]
pub(crate) struct Completion {
    /// The shell to print a script for
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Command to print the manual page of. Default: the program
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Option<String>,
}
