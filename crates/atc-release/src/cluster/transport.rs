//! Connections: kube's own client for watches, one HTTP/2 connection for calls.
//!
//! kube speaks HTTP/1.1 only, which costs a connection and a TLS session per call in flight. For watches that is right: the
//! API server allows 100 streams on a connection, and a watch holds one for ever.

use std::time::Duration;

use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use tower::{BoxError, ServiceBuilder};

/// Longest time to open a TCP connection.
const CONNECT: Duration = Duration::from_secs(10);
/// How often a connection with calls under way is asked whether it lives; and how long it may take to say so. A call's
/// own limit is longer, so a dead connection costs one call's retry, not a series of timeouts.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));

/// A client without retries and limits of its own, which [`Cluster`](super::Cluster) brings.
///
/// kube retries 429, 503 and 504 up to 15 times within one call by default, minutes in all, and knows nothing of broken
/// connections.
pub fn client(mut config: kube::Config) -> Result<kube::Client, kube::Error> {
    config.default_retry = false;
    kube::Client::try_from(config)
}

/// A client whose calls share one HTTP/2 connection. `None` where kube's own client is needed: behind a proxy, and
/// without TLS, which alone can agree on HTTP/2.
///
/// `plain` is kube's client of the same configuration; it knows when credentials of an exec plugin expire.
pub(super) fn multiplexed(config: &kube::Config, plain: &kube::Client) -> Result<Option<kube::Client>, kube::Error> {
    if config.proxy_url.is_some() || config.cluster_url.scheme_str() != Some("https") {
        return Ok(None);
    }
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_only();
    if let Some(name) = &config.tls_server_name {
        // kube refused a name that is none when it made `plain`.
        let Ok(name) = name.clone().try_into() else { return Ok(None) };
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT));
    let connection: Client<_, Body> = Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(KEEP_ALIVE.0)
        .http2_keep_alive_timeout(KEEP_ALIVE.1)
        .build(builder.enable_all_versions().wrap_connector(tcp));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(connection);
    let client = kube::Client::new(service, plain.default_namespace());
    Ok(Some(client.with_valid_until(*plain.valid_until())))
}
