//! The HTTPS server: admission reviews, health and metrics. Routes and TLS; each kind of review has one file that decides.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use hyper_util::rt::TokioTimer;

use crate::control::Control;
use crate::metrics::OPEN_METRICS;
use crate::webhook_url::WebhookUrl;

mod account;
pub(crate) mod airway;
pub(crate) mod convert;
mod flight;
pub(crate) mod instance;
mod intake;
mod places;
pub(crate) mod resource;
pub(crate) mod review;
mod scale;
mod time;
mod tls;
mod told;
mod unconverted;
mod worse;

use intake::{Intake, take_in};
use places::Places;
use review::{Decision, Review};
pub use tls::TlsFiles;
pub(crate) use tls::{Source, TlsSet, follow, has_certificate};

/// Bytes of a request: an AdmissionReview holds two objects of the store's limit (1.5 MiB each in etcd, more as JSON),
/// about 6 MiB at most.
const BODY_MAX: usize = 7 << 20;
/// Bytes of a conversion: a page of a list, 500 objects of 64 KiB each. A longer list of larger objects can be asked for
/// in smaller pages.
const CONVERSION_MAX: usize = 32 << 20;
/// The largest reviews that are held at once; of those of 10 KiB some 7,000. 10, which is 70 MiB.
const BODIES: usize = 10;
/// The largest conversions that are held at once. 3, which is 96 MiB.
const CONVERSIONS: usize = 3;
/// The head of a request is there within this time, also on a connection that was used before; whoever speaks HTTP/2 is asked
/// for a sign of life so often, and has as long for it. 1 min.
const SILENCE: Duration = Duration::from_mins(1);
/// Running requests may take so long to end when the process stops.
const DRAIN: Duration = Duration::from_secs(5);

/// The routes, at the root and below the path of the URL that we are asked by, if that has one: a proxy in between may pass
/// it on or not.
fn router(control: Arc<Control>) -> Router {
    let prefix = control.service.url.as_ref().map(WebhookUrl::prefix);
    let routes = routes(control);
    match prefix.filter(|prefix| !prefix.is_empty()) {
        Some(prefix) => routes.clone().nest(&prefix, routes),
        None => routes,
    }
}

fn routes(control: Arc<Control>) -> Router {
    Router::new()
        .route("/live", get(|| async { "ok\n" }))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .route("/validations/airways.yoke.cd", post(review_airway))
        .route("/validations/flights.yoke.cd", post(review_flight))
        .route("/validations/accounts", post(review_account))
        .route("/validations/resources", post(review_resource))
        // The existing tool's atc was told of every write in the cluster by it. Nobody is to be refused one.
        .route("/validations/external-resources", post(allow))
        .route("/validations/{airway}", post(review_instance))
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn_with_state(Intake::new(BODY_MAX, BODIES), take_in))
        .route(
            "/crdconvert/{airway}",
            post(convert_instances)
                .layer(DefaultBodyLimit::max(CONVERSION_MAX))
                .layer(from_fn_with_state(
                    Intake::new(CONVERSION_MAX, CONVERSIONS),
                    take_in,
                )),
        )
        .with_state(control)
}

async fn ready(State(control): State<Arc<Control>>) -> Response {
    match control.readiness(Instant::now()) {
        Ok(()) => "ok\n".into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

async fn metrics(State(control): State<Arc<Control>>) -> Response {
    match control.metrics.text() {
        Ok(text) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn review_airway(
    State(control): State<Arc<Control>>,
    Json(review): Json<Review>,
) -> Response {
    let decision = airway::decide(&control, &review.request).await;
    answer(&review, &decision)
}

async fn review_flight(
    State(control): State<Arc<Control>>,
    Json(review): Json<Review>,
) -> Response {
    let decision = flight::decide(&control, &review.request).await;
    answer(&review, &decision)
}

async fn review_account(
    State(control): State<Arc<Control>>,
    Json(review): Json<Review>,
) -> Response {
    let decision = account::decide(&control, &review.request).await;
    answer(&review, &decision)
}

async fn review_instance(
    State(control): State<Arc<Control>>,
    Path(name): Path<String>,
    Json(review): Json<Review>,
) -> Response {
    let request = &review.request;
    let decision = if request.sub_resource == "scale" {
        Box::pin(scale::decide(&control, &name, request)).await
    } else {
        instance::decide(&control, &name, request).await
    };
    answer(&review, &decision)
}

async fn review_resource(
    State(control): State<Arc<Control>>,
    Json(review): Json<Review>,
) -> Response {
    let decision = resource::decide(&control, &review.request).await;
    answer(&review, &decision)
}

async fn allow(Json(review): Json<Review>) -> Response {
    answer(&review, &Decision::Allow)
}

async fn convert_instances(
    State(control): State<Arc<Control>>,
    Path(name): Path<String>,
    Json(review): Json<serde_json::Value>,
) -> Response {
    match convert::answer(&control, &name, &review).await {
        Ok(answer) => Json(answer).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    }
}

fn answer(review: &Review, decision: &Decision) -> Response {
    Json(decision.answer(&review.request.uid)).into_response()
}

/// Serves until the process stops; then lets running requests end. Without files the certificate is of our own making, and
/// followed by whoever looks after it.
///
/// # Errors
/// The certificate can't be read, or the port can't be had.
pub(crate) async fn serve(control: Arc<Control>, port: u16, source: Source) -> std::io::Result<()> {
    let config = match source {
        Source::Made(made) => made.config(),
        Source::Files(files) => {
            let set = TlsSet::read(&files).await?;
            let config = set.config().await?;
            let source = Source::Files(files);
            tokio::spawn(follow(control.clone(), config.clone(), source, set));
            config
        }
    };
    let handle = axum_server::Handle::<SocketAddr>::new();
    let (stop, ending) = (control.stop.clone(), handle.clone());
    tokio::spawn(async move {
        stop.cancelled().await;
        ending.graceful_shutdown(Some(DRAIN));
    });
    let address = SocketAddr::new(everywhere(), port);
    let bound = handle.clone();
    tokio::spawn(async move {
        // There is none where the port can't be had.
        if let Some(address) = bound.listening().await {
            tracing::info!(%address, "serving HTTPS");
        }
    });
    let places = Places::default();
    let mut server = axum_server::bind_rustls(address, config)
        .map(|tls| tls.acceptor(places))
        .handle(handle);
    let http = server.http_builder();
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(SILENCE);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(SILENCE)
        .keep_alive_timeout(SILENCE);
    server.serve(router(control).into_make_service()).await
}

/// How long a connection to ourselves may take: 1 s. It is answered by the kernel.
const PROBE: Duration = Duration::from_secs(1);

/// All addresses of this machine: those of IPv6 where they take connections by IPv4, too, else those of IPv4.
fn everywhere() -> IpAddr {
    let any = IpAddr::from(Ipv6Addr::UNSPECIFIED);
    // Whether these take them is a setting of the system.
    let takes_both = || {
        let listener = TcpListener::bind((any, 0)).ok()?;
        let port = listener.local_addr().ok()?.port();
        let here = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
        TcpStream::connect_timeout(&here, PROBE).ok()
    };
    if takes_both().is_some() {
        any
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    }
}
