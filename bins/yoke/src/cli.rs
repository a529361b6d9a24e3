//! The command line's words: commands, flags, defaults, and what a wrong use of them gives.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use atc_engine::api::GoDuration;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::argv;

mod help;
mod look;
mod module;
mod modules;

pub(crate) use look::{Blackbox, Completion, Data, Diffs, Format, Man, Turbulence, Version};
pub(crate) use module::{Action, Schematics, Sign, Verify};
pub(crate) use modules::{Cache, CacheCommand, Prune, Stow};

/// Exit code of an error.
pub(crate) const EXIT_ERROR: u8 = 1;
/// Exit code of a flag that is unknown or has a wrong value, and of a command that this version lacks.
pub(crate) const EXIT_USAGE: u8 = 2;

/// Where the help lists flags of every command.
const GLOBAL: &str = "Options of every command";

/// Commands that the existing tool has and this version does not.
const LATER: [&str; 1] = ["atc"];

/// Make releases of what WebAssembly flights print.
#[derive(Debug, Parser)]
#[command(
    name = "yoke",
    bin_name = "yoke",
    after_help = help::ROOT,
    disable_help_subcommand = true,
    args_override_self = true,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 120
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Path of the kubeconfig. Default: the files that $KUBECONFIG lists, else ~/.kube/config
    #[arg(long, value_parser = path(), global = true, value_name = "FILE", help_heading = GLOBAL)]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: its current one
    #[arg(long, global = true, value_name = "NAME", help_heading = GLOBAL)]
    pub(crate) kube_context: Option<String>,
    /// Print timings to stderr
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) debug: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make the cluster hold what a flight, or standard input, says
    #[command(visible_aliases = ["up", "apply"], after_help = help::TAKEOFF)]
    Takeoff(Box<Takeoff>),
    /// Bring a release back to an earlier revision
    #[command(visible_aliases = ["down", "restore"], after_help = help::DESCENT)]
    Descent(Descent),
    /// Remove a release: its resources and its history
    #[command(visible_alias = "delete", after_help = help::MAYDAY)]
    Mayday(Mayday),
    /// List releases and revisions, print a revision, or compare two
    #[command(visible_alias = "inspect", after_help = help::BLACKBOX)]
    Blackbox(Blackbox),
    /// Show how the cluster differs from what a release recorded, or mend it
    #[command(visible_aliases = ["drift", "diff"], after_help = help::TURBULENCE)]
    Turbulence(Turbulence),
    /// Push a module to a registry
    #[command(visible_alias = "push", after_help = help::STOW)]
    Stow(Stow),
    /// Look at the folder of downloaded and compiled modules, or make room in it
    #[command(after_help = help::CACHE)]
    Cache(Cache),
    /// Remove the lock of a release, whoever holds it
    #[command(visible_alias = "unlock", after_help = help::UNLATCH)]
    Unlatch(Unlatch),
    /// List, print or set what a module carries for its users
    #[command(visible_alias = "meta", after_help = help::SCHEMATICS)]
    Schematics(Schematics),
    /// Sign a module with a private key
    #[command(after_help = help::SIGN)]
    Sign(Sign),
    /// Check that a module is signed by a known key, and as it was then
    #[command(after_help = help::VERIFY)]
    Verify(Verify),
    /// Print the versions
    #[command(after_help = help::VERSION)]
    Version(Version),
    /// Print a completion script for a shell
    #[command(after_help = help::COMPLETION)]
    Completion(Completion),
    /// Print a manual page
    #[command(after_help = help::MAN)]
    Man(Man),
}

/// Arguments of `takeoff`.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own on the command line"
)]
#[derive(Debug, Args)]
pub(crate) struct Takeoff {
    /// Name of the release
    #[arg(value_name = "RELEASE")]
    pub(crate) release: String,
    /// Path or URL (file://, http://, https://, oci://) of the flight. Without it standard input holds the resources
    #[arg(value_name = "FLIGHT")]
    pub(crate) flight: Option<String>,
    /// Arguments of the flight
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) args: Vec<String>,

    /// Namespace of the release. Default: that of the kubeconfig's context, else `default`
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Create the namespace of the release if there is none, and wait until it is active
    #[arg(long)]
    pub(crate) create_namespace: bool,
    /// Allow resources outside the namespace of the release
    #[arg(long)]
    pub(crate) cross_namespace: bool,

    /// Print the flight's output as it is, and stop
    #[arg(long)]
    pub(crate) stdout: bool,
    /// Write each resource to a YAML file in this folder, or all of them to stdout if it is `-`, and stop
    #[arg(long, value_parser = said_path, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print how the resources differ from those of the active revision, and stop
    #[arg(long)]
    pub(crate) diff_only: bool,
    #[command(flatten)]
    pub(crate) diffs: Diffs,
    /// Only ask the API server whether it would take the resources
    #[arg(long)]
    pub(crate) dry: bool,
    /// Do not ask first
    #[arg(long)]
    pub(crate) skip_dry_run: bool,

    /// Take fields that other field managers set
    #[arg(long)]
    pub(crate) force_conflicts: bool,
    /// Take resources that belong to nobody or to another release
    #[arg(long)]
    pub(crate) force_ownership: bool,
    /// Hold the lock of the release meanwhile, and fail at once if somebody else does
    #[arg(long)]
    pub(crate) lock: bool,
    /// Delete CRDs and Namespaces that are no longer in the output, instead of letting them go
    #[arg(long)]
    pub(crate) remove_all: bool,
    /// Delete CRDs that are no longer in the output, and all resources of their kinds
    #[arg(long)]
    pub(crate) remove_crds: bool,
    /// Delete Namespaces that are no longer in the output, and all that is in them
    #[arg(long)]
    pub(crate) remove_namespaces: bool,
    /// Revisions to keep; 0 or less keeps all. Older ones are dropped when a new one is made
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) history_cap: i64,

    /// How long to wait until the resources of a stage are ready; 0 does not wait for the last one, and 30 s for those before
    #[arg(long, value_name = "DURATION", default_value = "0")]
    pub(crate) wait: GoDuration,
    /// Longest pause between two looks at resources that are waited for
    #[arg(long, value_name = "DURATION", default_value = "5s")]
    pub(crate) poll: GoDuration,

    /// Allow the flight to look resources of its release up in the cluster
    #[arg(long)]
    pub(crate) cluster_access: bool,
    /// With -cluster-access, other resources that the flight may read: `[namespace/]Kind.group[:name]`, `*` for any;
    /// several with commas or several times
    #[arg(long, value_name = "MATCHER")]
    pub(crate) resource_access: Vec<String>,
    /// Memory of the flight in MiB; 0 for 4 GiB
    #[arg(long, value_name = "MIB", default_value_t = 128)]
    pub(crate) max_memory_mib: u64,
    /// Time limit of the flight; 0 for 10s, negative for none
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub(crate) timeout: GoDuration,
    /// SHA-256 that the unpacked module must have
    #[arg(long, value_name = "HEX")]
    pub(crate) checksum: Option<String>,
    /// Folder in which downloaded and compiled modules are kept. Default: nowhere
    #[arg(long, value_parser = path(), value_name = "DIR")]
    pub(crate) compilation_cache: Option<PathBuf>,
    /// Allow registries without TLS, or with a certificate that is not trusted
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Key file, or folder of keys (*.pem), one of which must have signed the module
    #[arg(long, value_parser = said_path, value_name = "PATH")]
    pub(crate) verify: Option<PathBuf>,
    /// Judge readiness also by the rules in ConfigMaps of the release's namespace and of the atc's
    #[arg(long)]
    pub(crate) load_custom_readiness: bool,
}

/// Arguments of `descent`.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own on the command line"
)]
#[derive(Debug, Args)]
pub(crate) struct Descent {
    /// Name of the release
    #[arg(value_name = "RELEASE")]
    pub(crate) release: String,
    /// Number of the revision, as blackbox lists it
    #[arg(value_name = "REVISION", value_parser = revision)]
    pub(crate) revision: usize,
    /// Namespace of the release. Default: that of the kubeconfig's context, else `default`
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Hold the lock of the release meanwhile, and fail at once if somebody else does
    #[arg(long)]
    pub(crate) lock: bool,
    /// Delete CRDs and Namespaces that the revision lacks, instead of letting them go
    #[arg(long)]
    pub(crate) remove_all: bool,
    /// Delete CRDs that the revision lacks, and all resources of their kinds
    #[arg(long)]
    pub(crate) remove_crds: bool,
    /// Delete Namespaces that the revision lacks, and all that is in them
    #[arg(long)]
    pub(crate) remove_namespaces: bool,
    /// How long to wait until the resources of each stage are ready; 0 does not wait
    #[arg(long, value_name = "DURATION", default_value = "0")]
    pub(crate) wait: GoDuration,
    /// Longest pause between two looks at resources that are waited for
    #[arg(long, value_name = "DURATION", default_value = "5s")]
    pub(crate) poll: GoDuration,
    /// Judge readiness also by the rules in ConfigMaps of the release's namespace and of the atc's
    #[arg(long)]
    pub(crate) load_custom_readiness: bool,
}

/// Arguments of `unlatch`.
#[derive(Debug, Args)]
pub(crate) struct Unlatch {
    /// Name of the release
    #[arg(value_name = "RELEASE")]
    pub(crate) release: String,
    /// Namespace of the release. Default: that of the kubeconfig's context, else `default`
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
}

/// Arguments of `mayday`.
#[derive(Debug, Args)]
pub(crate) struct Mayday {
    /// Name of the release
    #[arg(value_name = "RELEASE")]
    pub(crate) release: String,
    /// Namespace of the release. Default: that of the kubeconfig's context, else `default`
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Delete CRDs and Namespaces of the release too, instead of letting them go
    #[arg(long)]
    pub(crate) remove_all: bool,
    /// Delete CRDs of the release too, and all resources of their kinds
    #[arg(long)]
    pub(crate) remove_crds: bool,
    /// Delete Namespaces of the release too, and all that is in them
    #[arg(long)]
    pub(crate) remove_namespaces: bool,
}

/// The id of a revision.
pub(crate) fn revision(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(id @ 1..) => Ok(id),
        _ => Err(format!(
            "\"{text}\" is no id of a revision: ids are whole numbers from 1"
        )),
    }
}

/// A path that says something: an empty one is a variable that was not set, and would write to the cluster instead of a
/// folder, or run what nobody has signed.
fn said_path(text: &str) -> Result<PathBuf, &'static str> {
    if text.is_empty() {
        return Err("it is empty; leave the flag out where it is not meant");
    }
    Ok(text.into())
}

/// A path; the empty one, which scripts give for "none", is one too.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// What was given, unless it is empty, which stands for the default.
pub(crate) fn given<T: AsRef<OsStr> + ?Sized, O: std::ops::Deref<Target = T>>(
    flag: Option<&O>,
) -> Option<&T> {
    flag.map(|value| &**value)
        .filter(|value| !value.as_ref().is_empty())
}

/// Parses the arguments, the program's name first.
///
/// # Errors
/// What to print, and the exit code: 0 for help that was asked for.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, Misuse> {
    let mut command = Cli::command();
    command.build();
    let args = argv::normalize(meant(args.into_iter().collect()), &command);
    Cli::command()
        .try_get_matches_from(args)
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .map_err(Misuse::from)
}

/// What everybody tries, as it is said here: `help` and `help COMMAND`, `--version`.
fn meant(mut args: Vec<OsString>) -> Vec<OsString> {
    let first = args.get(1).and_then(|arg| arg.to_str());
    match first {
        Some("help") => {
            args.remove(1);
            args.push("--help".into());
        }
        Some("--version" | "-version" | "-V") => {
            args.remove(1);
            args.insert(1, "version".into());
        }
        _ => {}
    }
    args
}

/// Arguments that are no command, or ask for help.
#[derive(Debug)]
pub(crate) struct Misuse {
    error: clap::Error,
    /// The exit code.
    pub(crate) code: u8,
}

impl Misuse {
    /// Prints help to stdout, all else to stderr. A closed stream is no matter.
    pub(crate) fn print(&self) {
        let _ = self.error.print();
    }
}

impl From<clap::Error> for Misuse {
    fn from(mut error: clap::Error) -> Self {
        if error.kind() == ErrorKind::TooManyValues {
            let tip = "a switch is there or not, or says =true or =false";
            let tips = ContextValue::StyledStrs(vec![tip.into()]);
            error.insert(ContextKind::Suggested, tips);
        }
        let said = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => text.as_str(),
            Some(ContextValue::Strings(texts)) => texts.first().map_or("", String::as_str),
            _ => "",
        };
        let of_a_flag = said(ContextKind::InvalidArg).starts_with('-');
        let code = match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => 0,
            ErrorKind::InvalidSubcommand
                if LATER.contains(&said(ContextKind::InvalidSubcommand)) =>
            {
                let words = format!(
                    "\"{}\" is not part of this version yet\n",
                    said(ContextKind::InvalidSubcommand)
                );
                return Self {
                    error: clap::Error::raw(ErrorKind::InvalidSubcommand, words),
                    code: EXIT_USAGE,
                };
            }
            ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            | ErrorKind::InvalidSubcommand
            | ErrorKind::InvalidUtf8 => EXIT_ERROR,
            _ if of_a_flag => EXIT_USAGE,
            _ => EXIT_ERROR,
        };
        Self { error, code }
    }
}

#[cfg(test)]
mod tests;
