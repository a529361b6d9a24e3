//! Arguments of the commands that work on a module, without a cluster.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::path;

/// What to do with schematics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Action {
    /// List their names
    Ls,
    /// Print one; where it is a command, run the module with its words and print what that prints
    Get,
    /// Put standard input into the module under a name, in place of what is there
    Set,
}

/// Arguments of `schematics`.
#[derive(Debug, Args)]
pub(crate) struct Schematics {
    /// Path or URL of the module; `set` takes a path only
    #[arg(long, value_name = "MODULE")]
    pub(crate) wasm: String,
    /// What to do
    #[arg(value_name = "ACTION")]
    pub(crate) action: Action,
    /// Name of the schematic, for `get` and `set`
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// With `set`, standard input is a command: a JSON or YAML list of words to run the module with
    #[arg(long)]
    pub(crate) cmd: bool,
}

/// Arguments of `sign`.
#[derive(Debug, Args)]
pub(crate) struct Sign {
    /// Path of the module
    #[arg(value_name = "MODULE")]
    pub(crate) module: PathBuf,
    /// File with the private key in PEM: RSA, ECDSA on P-256, P-384 or P-521, or Ed25519, without a password
    #[arg(long, value_parser = path(), value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// Where to write the signed module. Default: in place of the module
    #[arg(long = "o", value_parser = path(), value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace a signature that is there
    #[arg(long = "f")]
    pub(crate) force: bool,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Path or URL of the module
    #[arg(value_name = "MODULE")]
    pub(crate) module: String,
    /// File with a key in PEM, or folder of such files (*.pem, however deep), one of which must have signed the module
    #[arg(long, value_parser = path(), value_name = "PATH")]
    pub(crate) key: PathBuf,
}
