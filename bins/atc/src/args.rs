//! Environment and flags: the same names and defaults as the existing tool's; a flag wins over its variable.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use atc_controller::{AllowList, ModulePolicy, PolicyOptions, TlsFiles, WebhookUrl};
use clap::builder::{OsStringValueParser, StyledStr, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser};

/// The existing tool's port.
const PORT: u16 = 3000;
/// Evaluations at once: 64. Most of their time is waiting for the API server.
const CONCURRENCY: i64 = 64;

/// How lines of the log look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// One JSON object a line.
    Json,
    /// Text for people.
    Text,
}

/// The Air Traffic Controller: serves the kinds of Airways, and keeps in the cluster what their flights print.
#[derive(Debug, Parser)]
#[command(name = "atc", version, max_term_width = 100)]
pub(crate) struct Args {
    /// Port of the HTTPS server: webhooks, /live, /ready and /metrics
    #[arg(long, env = "PORT", default_value_t = PORT, value_parser = own_port)]
    pub(crate) port: u16,
    /// Path of a kubeconfig; without it the pod's own service account is used
    #[arg(long, env = "KUBE", value_parser = path())]
    pub(crate) kube: Option<PathBuf>,
    /// Evaluations at once, at least 1; half of them for one Airway at most
    #[arg(long, env = "CONCURRENCY", default_value_t = CONCURRENCY, value_parser = concurrency, allow_negative_numbers = true)]
    pub(crate) concurrency: i64,
    /// Log more
    #[arg(long, env = "VERBOSE", default_value_t = false, num_args = 0..=1, default_missing_value = "true", value_parser = boolean)]
    pub(crate) verbose: bool,
    /// How log lines look: `text`, or whatever else for JSON
    #[arg(long, env = "LOG_FORMAT", default_value = "json", value_parser = log_format)]
    pub(crate) log_format: LogFormat,
    /// Folder for modules, fetched and precompiled; the system's folder for temporary files by default
    #[arg(long, env = "CACHE_FS", value_parser = path())]
    pub(crate) cache_fs: Option<PathBuf>,
    /// Comma-separated globs of module URLs that may be loaded, `*` stops at a slash; without it any may
    #[arg(long, env = "MODULE_ALLOW_LIST")]
    pub(crate) module_allow_list: Option<String>,
    /// Public keys, one of which must have signed each module: a file with a JSON array of PEM texts or with one PEM, or a
    /// folder of *.pem files; read again when they change
    #[arg(long, env = "MODULE_VERIFICATION_KEYS_PATH", value_parser = path())]
    pub(crate) module_verification_keys_path: Option<PathBuf>,
    /// What the allow list names needs no signature
    #[arg(long, env = "MODULE_ALLOW_LIST_UNSIGNED", default_value_t = false, num_args = 0..=1, default_missing_value = "true", value_parser = boolean)]
    pub(crate) module_allow_list_unsigned: bool,
    /// Do not let ConfigMaps say when objects are ready
    #[arg(long, env = "DISABLE_CUSTOM_READINESS", default_value_t = false, num_args = 0..=1, default_missing_value = "true", value_parser = boolean)]
    pub(crate) disable_custom_readiness: bool,
    /// Secret with credentials for registries of modules, in the atc's own namespace: `.dockerconfigjson` or `.dockercfg`
    #[arg(long, env = "DOCKER_CONFIG_SECRET_NAME")]
    pub(crate) docker_config_secret_name: Option<String>,
    /// Folder with a folder `HOST` or `HOST:PORT` for each registry that wants client certificates or has a CA of its own:
    /// client.cert, client.key, ca.crt; read again when they change
    #[arg(long, env = "REGISTRY_CERTS_PATH", value_parser = path())]
    pub(crate) registry_certs_path: Option<PathBuf>,
    /// PEM of the CA of the certificate to serve; without all three files the atc makes a certificate of its own
    #[arg(long, env = "TLS_CA_CERT", value_parser = path())]
    pub(crate) tls_ca_cert: Option<PathBuf>,
    /// PEM of the certificate to serve
    #[arg(long, env = "TLS_SERVER_CERT", value_parser = path())]
    pub(crate) tls_server_cert: Option<PathBuf>,
    /// PEM of its key
    #[arg(long, env = "TLS_SERVER_KEY", value_parser = path())]
    pub(crate) tls_server_key: Option<PathBuf>,
    /// Name of the Service through which the API server reaches the atc
    #[arg(long, env = "SVC_NAME", required_unless_present = "webhook_url")]
    pub(crate) svc_name: Option<String>,
    /// Namespace of that Service and of the atc itself; needed where there is no Service, too
    #[arg(long, env = "SVC_NAMESPACE", required_unless_present = "webhook_url")]
    pub(crate) svc_namespace: Option<String>,
    /// Port of that Service
    #[arg(long, env = "SVC_PORT", value_parser = port, required_unless_present = "webhook_url")]
    pub(crate) svc_port: Option<u16>,
    /// https URL by which the API server reaches the atc instead of through a Service, for one outside of the cluster
    #[arg(long, env = "WEBHOOK_URL")]
    pub(crate) webhook_url: Option<String>,
}

/// How the API server reaches us.
#[derive(Debug)]
pub(crate) struct Reach {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) port: u16,
    pub(crate) url: Option<WebhookUrl>,
}

/// A path that may be empty, as variables are that a chart leaves open.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// A port that may be empty.
fn port(text: &str) -> Result<u16, String> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse()
        .map_err(|_| format!("a port is a whole number from 1 to {}", u16::MAX))
}

/// Go's boolean words.
fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "" | "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("say true or false (1, t and 0, f will do, too)".to_owned()),
    }
}

/// A number; one that is left open is the default.
fn concurrency(text: &str) -> Result<i64, &'static str> {
    if text.is_empty() {
        return Ok(CONCURRENCY);
    }
    text.parse().map_err(|_| "say a whole number, 1 or more")
}

/// Our own port, which may be left open.
fn own_port(text: &str) -> Result<u16, String> {
    if text.is_empty() {
        return Ok(PORT);
    }
    port(text)
}

/// Every word is one, as in the existing tool.
#[expect(clippy::unnecessary_wraps, reason = "the form of a parser of values")]
fn log_format(text: &str) -> Result<LogFormat, String> {
    Ok(match text {
        "text" => LogFormat::Text,
        _ => LogFormat::Json,
    })
}

/// What is wrong with the arguments, with the variables that set the same: most are set by those, and the parser names
/// flags only.
fn with_variables(mut error: clap::Error) -> clap::Error {
    let flags = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) => vec![flag.clone()],
        Some(ContextValue::Strings(flags)) => flags.clone(),
        _ => Vec::new(),
    };
    let command = Args::command();
    let variable = |flag: &String| {
        // `--port <PORT>`
        let name = flag.split([' ', '=']).next()?.strip_prefix("--")?;
        let mut args = command.get_arguments();
        let arg = args.find(|arg| arg.get_long() == Some(name))?;
        Some(arg.get_env()?.to_string_lossy().into_owned())
    };
    let variables: Vec<String> = flags.iter().filter_map(variable).collect();
    if variables.is_empty() {
        return error;
    }
    let variables = variables.join(", ");
    let tip = if error.kind() == ErrorKind::MissingRequiredArgument {
        format!(
            "set by {variables} in the environment, too; an atc outside of the cluster has WEBHOOK_URL and SVC_NAMESPACE \
             instead"
        )
    } else {
        format!("set by {variables} in the environment, too")
    };
    let tips = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
    error.insert(ContextKind::Suggested, tips);
    error
}

/// The arguments with flags of one dash as of two: Go's programs take both.
fn two_dashes(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let word = |arg: OsString| match arg.to_str().and_then(|text| text.strip_prefix('-')) {
        Some(flag)
            if flag.len() > 1 && flag.starts_with(|first: char| first.is_ascii_lowercase()) =>
        {
            OsString::from(format!("--{flag}"))
        }
        _ => arg,
    };
    args.into_iter().map(word).collect()
}

impl Args {
    /// Reads the arguments, the program's name first.
    ///
    /// # Errors
    /// What to print, help that was asked for included.
    pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::try_parse_from(two_dashes(args)).map_err(with_variables)
    }

    /// Evaluations at once: a number below 1 is 1, as in the existing tool.
    pub(crate) fn evaluations(&self) -> usize {
        usize::try_from(self.concurrency).unwrap_or_default().max(1)
    }

    /// The certificate files, if they are given.
    ///
    /// # Errors
    /// Some are given and others are not.
    pub(crate) fn tls(&self) -> anyhow::Result<Option<TlsFiles>> {
        let given =
            |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        let files = [
            &self.tls_ca_cert,
            &self.tls_server_cert,
            &self.tls_server_key,
        ]
        .map(given);
        match files {
            [Some(ca), Some(cert), Some(key)] => Ok(Some(TlsFiles { ca, cert, key })),
            [None, None, None] => Ok(None),
            _ => bail!(
                "TLS_CA_CERT, TLS_SERVER_CERT and TLS_SERVER_KEY belong together: give all three, or none to have a \
                 certificate made"
            ),
        }
    }

    /// How the API server reaches us: by a URL, else through a Service.
    ///
    /// # Errors
    /// The URL is none, or the Service is not named.
    pub(crate) fn reach(&self) -> anyhow::Result<Reach> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let url = given(&self.webhook_url);
        let url = url
            .map(|text| text.parse::<WebhookUrl>())
            .transpose()
            .context("WEBHOOK_URL cannot be used")?;
        let (name, namespace) = (given(&self.svc_name), given(&self.svc_namespace));
        let port = self.svc_port.filter(|port| *port != 0);
        let (name, namespace, port) = match (url.is_some(), name, namespace, port) {
            (false, Some(name), Some(namespace), Some(port)) => (name, namespace, port),
            (true, name, Some(namespace), port) => (
                name.unwrap_or_else(|| "atc".to_owned()),
                namespace,
                port.unwrap_or_default(),
            ),
            (true, _, None, _) => bail!(
                "the atc needs a namespace of its own, also outside of the cluster: give SVC_NAMESPACE. Its certificate and \
                 its credentials lie there, and ConfigMaps there say for all releases when objects are ready"
            ),
            _ => bail!(
                "the API server must be able to reach the atc: give SVC_NAME, SVC_NAMESPACE and SVC_PORT, or, outside of \
                 the cluster, WEBHOOK_URL"
            ),
        };
        Ok(Reach {
            name,
            namespace,
            port,
            url,
        })
    }

    /// Which modules may run.
    ///
    /// # Errors
    /// Settings that cannot be kept to: whoever sets them relies on a check.
    pub(crate) fn policy(&self) -> anyhow::Result<ModulePolicy> {
        let allow = self.module_allow_list.as_deref();
        let allow = allow
            .filter(|list| !list.is_empty())
            .map(str::parse::<AllowList>)
            .transpose()
            .context("MODULE_ALLOW_LIST cannot be used")?;
        let keys = self.module_verification_keys_path.clone();
        ModulePolicy::new(PolicyOptions {
            allow,
            keys: keys.filter(|path| !path.as_os_str().is_empty()),
            allowed_unsigned: self.module_allow_list_unsigned,
        })
        .context("MODULE_VERIFICATION_KEYS_PATH cannot be used")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDED: [&str; 13] = [
        "atc",
        "--tls-ca-cert",
        "ca",
        "--tls-server-cert",
        "c",
        "--tls-server-key",
        "k",
        "--svc-name",
        "s",
        "--svc-namespace",
        "n",
        "--svc-port",
        "80",
    ];

    #[test]
    fn defaults_and_words() {
        let args = Args::try_parse_from(NEEDED).expect("parses");
        assert_eq!(
            (args.port, args.evaluations(), args.verbose),
            (3000, 64, false)
        );
        let more = NEEDED.into_iter().chain([
            "--verbose",
            "--concurrency",
            "0",
            "--disable-custom-readiness=False",
        ]);
        let args = Args::try_parse_from(more).expect("parses");
        assert_eq!(
            (
                args.evaluations(),
                args.verbose,
                args.disable_custom_readiness
            ),
            (1, true, false)
        );
        assert!(Args::try_parse_from(["atc"]).is_err());
        // What a chart leaves open, and what the existing tool takes.
        let more = NEEDED
            .into_iter()
            .chain(["-port=", "-concurrency", "-3", "-log-format", ""]);
        let args = two_dashes(more.map(OsString::from));
        let args = Args::try_parse_from(args).expect("parses");
        assert_eq!(
            (args.port, args.evaluations(), args.log_format),
            (3000, 1, LogFormat::Json)
        );
        let more = NEEDED.into_iter().chain([
            "-concurrency=",
            "-log-format=text",
            "-verbose",
            "-port",
            "1",
        ]);
        let args = two_dashes(more.map(OsString::from));
        let args = Args::try_parse_from(args).expect("parses");
        assert_eq!(
            (args.port, args.evaluations(), args.log_format, args.verbose),
            (1, 64, LogFormat::Text, true)
        );
        for text in ["-h", "-V", "-", "--", "-3", "-\u{e4}b"] {
            assert_eq!(two_dashes([OsString::from(text)]), [text]);
        }
    }

    #[test]
    fn what_is_wrong_names_the_variable_and_what_is_allowed() {
        let check = |more: &[&'static str], words: &[&str]| {
            let args = NEEDED.into_iter().chain(more.iter().copied());
            let error = Args::read(args.map(OsString::from)).expect_err("refused");
            let error = error.to_string();
            for words in words {
                assert!(error.contains(words), "{error}");
            }
        };
        check(
            &["-verbose=yes"],
            &["'yes'", "say true or false", "set by VERBOSE in"],
        );
        check(&["-port=99999"], &["from 1 to 65535", "set by PORT in"]);
        check(
            &["-concurrency=many"],
            &["a whole number, 1 or more", "set by CONCURRENCY in"],
        );
        let error = Args::read([OsString::from("atc")]).expect_err("refused");
        let error = error.to_string();
        for words in [
            "--svc-name",
            "set by SVC_NAME, SVC_NAMESPACE, SVC_PORT in",
            "WEBHOOK_URL and SVC_NAMESPACE instead",
        ] {
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn the_help_is_for_users() {
        let help = Args::command().render_long_help().to_string();
        assert!(help.starts_with("The Air Traffic Controller: serves the kinds of Airways"));
        for ours in [" us ", " our ", " us\n", " we "] {
            assert!(!help.contains(ours), "{ours}");
        }
    }

    #[test]
    fn certificate_files_are_given_all_or_none() {
        let tls = |more: &[&'static str]| {
            let needed = [
                "atc",
                "--svc-name",
                "s",
                "--svc-namespace",
                "n",
                "--svc-port",
                "80",
            ];
            let args = needed.into_iter().chain(more.iter().copied());
            Args::try_parse_from(args).expect("parses").tls()
        };
        let all = [
            "--tls-ca-cert",
            "a",
            "--tls-server-cert",
            "b",
            "--tls-server-key",
            "c",
        ];
        let files = tls(&all).expect("files").expect("given");
        assert_eq!(
            [files.ca, files.cert, files.key],
            ["a", "b", "c"].map(PathBuf::from)
        );
        assert!(tls(&[]).expect("none").is_none());
        let empty = ["--tls-ca-cert=", "--tls-server-cert=", "--tls-server-key="];
        assert!(tls(&empty).expect("none").is_none());
        for some in [
            &all[..2],
            &all[..4],
            &[
                "--tls-ca-cert",
                "a",
                "--tls-server-cert=",
                "--tls-server-key=c",
            ],
        ] {
            let error = tls(some).expect_err("refused").to_string();
            assert!(error.contains("belong together"), "{error}");
        }
    }

    #[test]
    fn a_service_or_a_url_is_needed() {
        let reach = |more: &[&'static str]| {
            let args = std::iter::once("atc").chain(more.iter().copied());
            Args::try_parse_from(args)
                .map(|args| args.reach().map_err(|error| format!("{error:#}")))
        };
        let service = ["--svc-name=s", "--svc-namespace=n", "--svc-port=80"];
        let found = reach(&service).expect("parses").expect("a Service");
        assert_eq!(
            (found.name.as_str(), found.namespace.as_str(), found.port),
            ("s", "n", 80)
        );
        assert_eq!(found.url, None);
        let url = "--webhook-url=https://localhost:3000";
        for more in [
            &[url, "--svc-namespace=n"][..],
            &[url, "--svc-name=", "--svc-namespace=n", "--svc-port="],
        ] {
            let found = reach(more).expect("parses").expect("a URL");
            assert_eq!(
                (found.name.as_str(), found.namespace.as_str()),
                ("atc", "n")
            );
            assert_eq!(
                found.url.map(|url| url.host()).as_deref(),
                Some("localhost")
            );
        }
        assert!(reach(&service[..2]).is_err());
        for (more, words) in [
            (&["--webhook-url="][..], "SVC_NAME"),
            (&[url][..], "give SVC_NAMESPACE"),
            (&[url, "--svc-namespace="][..], "give SVC_NAMESPACE"),
            (
                &[
                    "--webhook-url=",
                    "--svc-name=s",
                    "--svc-namespace=",
                    "--svc-port=1",
                ],
                "SVC_NAME",
            ),
            (
                &["--webhook-url=http://x"],
                "WEBHOOK_URL cannot be used: it must begin with https://",
            ),
        ] {
            let error = reach(more).expect("parses").expect_err("refused");
            assert!(error.contains(words), "{error}");
        }
        assert!(reach(&["--svc-name=s", "--svc-namespace=n", "--svc-port=x"]).is_err());
    }

    #[test]
    fn settings_that_cannot_be_kept_to_are_errors() {
        let policy = |more: &[&'static str]| {
            let args = NEEDED.into_iter().chain(more.iter().copied());
            let policy = Args::try_parse_from(args).expect("parses").policy();
            policy.map(drop).map_err(|error| format!("{error:#}"))
        };
        let check = |more: &[&'static str], words: &str| {
            let error = policy(more).expect_err("refused");
            assert!(error.contains(words), "{error}");
        };
        assert_eq!(policy(&[]), Ok(()));
        assert_eq!(
            policy(&[
                "--module-allow-list",
                "",
                "--module-verification-keys-path="
            ]),
            Ok(())
        );
        assert_eq!(policy(&["--module-allow-list", "http://h/*,/m/*"]), Ok(()));
        check(
            &["--module-allow-list", "http://h/*,["],
            "MODULE_ALLOW_LIST cannot be used: '[' is no glob",
        );
        check(&["--module-allow-list", ","], "the allow list is empty");
        check(
            &["--module-verification-keys-path", "/nowhere"],
            "cannot read key file \"/nowhere\"",
        );
    }
}
