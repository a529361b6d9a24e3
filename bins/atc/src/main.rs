//! The Air Traffic Controller as a process: arguments, wiring, exit code.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use atc_controller::{Settings, StopToken};
use tokio::signal::unix::{SignalKind, signal};

mod args;

use args::{Args, LogFormat};

fn main() -> ExitCode {
    let args = match Args::read(std::env::args_os()) {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    log(&args);
    if args.concurrency < 1 {
        tracing::warn!(
            given = args.concurrency,
            "CONCURRENCY is below 1: one evaluation runs at a time"
        );
    }
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(
                error = atc_controller::chain(&*error),
                "the Air Traffic Controller ends"
            );
            ExitCode::FAILURE
        }
    }
}

/// Standard output, for lines that nobody need read: one that can't be written is dropped. An error would be told on
/// stderr, which may be gone as well, and must not end what the process is for.
struct Lines;

impl std::io::Write for Lines {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let _ = std::io::stdout().write_all(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let _ = std::io::stdout().flush();
        Ok(())
    }
}

fn log(args: &Args) {
    let level = if args.verbose { "debug" } else { "info" };
    let own = format!(
        "warn,kube_client=off,atc={level},atc_controller={level},atc_engine={level},atc_watch={level},atc_release={level},atc_artifact={level},atc_flight={level}"
    );
    let filter =
        tracing_subscriber::EnvFilter::try_from_env("RUST_LOG").unwrap_or_else(|_| own.into());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Lines);
    match args.log_format {
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .init(),
        LogFormat::Text => builder.with_ansi(false).init(),
    }
}

fn run(args: Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("can't start the threads")?;
    let done = runtime.block_on(serve(args));
    // What blocks still, a plugin for credentials for instance, is not waited for.
    runtime.shutdown_background();
    done
}

async fn serve(args: Args) -> anyhow::Result<()> {
    // One TLS provider for the whole process, before anything speaks TLS.
    if rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .is_err()
    {
        bail!("another TLS provider is installed already");
    }
    let policy = args.policy()?;
    let tls = args.tls()?;
    let reach = args.reach()?;
    let (client, server) = client(&args).await?;
    let stop = StopToken::new();
    let (mut term, mut int) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let ending = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        tracing::info!("told to stop");
        ending.cancel();
    });
    let settings = Settings {
        server,
        port: args.port,
        concurrency: args.evaluations(),
        cache_dir: args
            .cache_fs
            .filter(|path| !path.as_os_str().is_empty())
            .unwrap_or_else(std::env::temp_dir),
        tls,
        service_name: reach.name,
        service_namespace: reach.namespace,
        service_port: reach.port,
        webhook_url: reach.url,
        policy,
        custom_readiness: !args.disable_custom_readiness,
        pull_secret: args
            .docker_config_secret_name
            .filter(|name| !name.is_empty()),
        registry_certificates: args
            .registry_certs_path
            .filter(|path| !path.as_os_str().is_empty()),
    };
    atc_controller::run(client, settings, stop).await?;
    Ok(())
}

/// A client of the API server, and where that is.
async fn client(args: &Args) -> anyhow::Result<(kube::Client, String)> {
    let config = match &args.kube {
        Some(path) if !path.as_os_str().is_empty() => {
            let shown = path.display();
            atc_controller::config(atc_controller::kubeconfig(path)?, None)
                .await
                .with_context(|| format!("kubeconfig \"{shown}\" is not usable"))?
        }
        _ => kube::Config::incluster().context("no KUBE is set and this is no pod of a cluster")?,
    };
    let authority = config.cluster_url.authority();
    let authority = authority.map_or("", |authority| authority.as_str());
    // Before the host there may be credentials.
    let server = authority.rsplit('@').next().unwrap_or_default().to_owned();
    let client =
        atc_controller::client(config).context("can't make a client for the API server")?;
    Ok((client, server))
}
