//! The HTTP client of the API server.

use std::time::Instant;

use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use tower::{ServiceBuilder, service_fn};
use tower_http::decompression::DecompressionLayer;

use super::discreet::{discreet, discreet_layer};
use super::token::{self, TokenFile};
use super::{impersonation, plugin, proxy};

/// The configuration for this context of a kubeconfig, or for its current one.
///
/// The proxy is that of the kubeconfig. Where it names none, `HTTPS_PROXY` counts (`HTTP_PROXY` for a server without TLS), but
/// for this machine itself and for servers that `NO_PROXY` names, by the rules of Go. kube's own configuration differs in both.
///
/// # Errors
/// When the kubeconfig has no such context, or something in it can't be read; when a proxy is no URL, or kube can't read
/// `NO_PROXY`: an entry that is empty, for example.
pub async fn config(
    kubeconfig: Kubeconfig,
    context: Option<&str>,
) -> Result<kube::Config, KubeconfigError> {
    let named = proxy::named(&kubeconfig, context);
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    let variable = |name: &str| std::env::var(name).ok();
    let proxy = proxy::choose(&config.cluster_url, named.as_deref(), variable);
    config.proxy_url = proxy.map_err(KubeconfigError::ParseProxyUrl)?;
    Ok(config)
}

/// A client without retries and limits of its own, which [`Cluster`](super::Cluster) brings.
///
/// kube retries 429, 503 and 504 up to 15 times within one call by default, minutes in all, and knows nothing of broken
/// connections. It speaks HTTP/1.1 only, one connection per call in flight, kept open for the next; HTTP/2 in its place
/// was measured and took as much CPU on both sides.
///
/// The layers are those of `kube::Client::try_from`, but for its log of each request and for the socket: small writes are sent at once (`TCP_NODELAY`).
/// kube leaves that off, and then the first request of each connection waits for the acknowledgement of the TLS
/// handshake's last message, which the other side delays by 40 ms.
///
/// A token in a file is read anew every 50 s, and when it is refused; a plugin for credentials is asked again then. Whom the
/// configuration impersonates counts for calls that do not say themselves whom they are made as.
///
/// # Errors
/// When the configuration makes no client: unreadable certificates, credentials that can't be used, a proxy.
pub fn client(mut config: kube::Config) -> Result<kube::Client, kube::Error> {
    config.default_retry = false;
    let file = TokenFile::take(&mut config.auth_info, Instant::now()).map_err(kube::Error::Auth)?;
    let said = impersonation::take(&mut config);
    let asked = plugin::is_used(&config.auth_info).then(|| config.clone());
    let client = plain(config)?;
    let client = match (file, asked) {
        (Some(file), _) => token::with(&client, file),
        (None, Some(config)) => plugin::with(client, move || plain(config.clone())),
        (None, None) => client,
    };
    match said {
        Some(said) => impersonation::with(client, &said),
        None => Ok(client),
    }
}

/// A client whose errors show no credentials.
fn plain(config: kube::Config) -> Result<kube::Client, kube::Error> {
    if config.proxy_url.is_none() {
        return direct(config).map_err(discreet);
    }
    let client = kube::Client::try_from(config).map_err(discreet)?;
    let (namespace, until) = (client.default_namespace().to_owned(), *client.valid_until());
    let service = service_fn(move |request| {
        let client = client.clone();
        async move { client.send(request).await.map_err(discreet) }
    });
    Ok(kube::Client::new(service, namespace).with_valid_until(until))
}

fn direct(config: kube::Config) -> Result<kube::Client, kube::Error> {
    // As kube does: whoever has chosen a provider keeps it.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let mut connector =
        TimeoutConnector::new(config.rustls_https_connector_with_connector(connector)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let http: Client<_, Body> = Client::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .map_err(discreet_layer)
        .layer(config.base_uri_layer())
        .layer(DecompressionLayer::new().gzip(!config.disable_compression))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(tower::BoxError::from)
        .service(http);
    Ok(kube::Client::new(service, config.default_namespace))
}
