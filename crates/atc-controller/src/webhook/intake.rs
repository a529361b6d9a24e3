//! What a request may make us hold, and for how long: its body is taken in whole before anybody looks at it, within a time, and
//! within what all bodies together may take.
//!
//! Whoever reaches the port may send. The API server sends at once and says the length.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

/// A body is there within this time, the wait for room included, or is given up: 10 s, after which the API server has given up
/// on all but the longest reviews itself.
const ARRIVAL: Duration = Duration::from_secs(10);
/// Room is counted in pieces of so many bytes: 1 KiB.
const PIECE: usize = 1 << 10;

/// Takes bodies in.
#[derive(Clone)]
pub(super) struct Intake {
    limit: usize,
    room: Arc<Semaphore>,
    arrival: Duration,
}

impl Intake {
    /// Bodies of up to `limit` bytes, so many of that size at once, or more of smaller ones.
    pub(super) fn new(limit: usize, at_once: usize) -> Self {
        Self {
            limit,
            room: Arc::new(Semaphore::new(at_once * limit.div_ceil(PIECE))),
            arrival: ARRIVAL,
        }
    }
}

/// Takes a body in, and goes on with it whole. Its room is given back with the answer.
pub(super) async fn take_in(
    State(intake): State<Intake>,
    request: Request,
    next: Next,
) -> Response {
    let deadline = Instant::now() + intake.arrival;
    let (head, body) = request.into_parts();
    let size = body.size_hint();
    if size.lower() > u64::try_from(intake.limit).unwrap_or(u64::MAX) {
        return too_large(intake.limit);
    }
    let said = size.exact().and_then(|size| usize::try_from(size).ok());
    let most = said.unwrap_or(intake.limit);
    let pieces = u32::try_from(most.div_ceil(PIECE)).unwrap_or(u32::MAX);
    let room = timeout_at(deadline, intake.room.acquire_many(pieces));
    let Ok(Ok(_room)) = room.await else {
        let words = "other requests take all the room, try again\n";
        return (StatusCode::SERVICE_UNAVAILABLE, words).into_response();
    };
    let body = match timeout_at(deadline, to_bytes(body, most)).await {
        Ok(Ok(body)) => body,
        // It broke, or is longer than it may be.
        Ok(Err(_)) => return too_large(intake.limit),
        Err(_) => {
            let words = format!("the body was not there within {:?}\n", intake.arrival);
            return (StatusCode::REQUEST_TIMEOUT, words).into_response();
        }
    };
    next.run(Request::from_parts(head, Body::from(body))).await
}

fn too_large(limit: usize) -> Response {
    let words = format!("the body ended early, or is larger than {limit} bytes\n");
    (StatusCode::PAYLOAD_TOO_LARGE, words).into_response()
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::middleware::from_fn_with_state;
    use axum::routing::post;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Serves something that says how long what it got is; a body that is not there in time is given up soon.
    async fn serve(limit: usize, at_once: usize) -> (std::net::SocketAddr, Intake) {
        let intake = Intake {
            arrival: Duration::from_millis(300),
            ..Intake::new(limit, at_once)
        };
        let router = Router::new()
            .route(
                "/",
                post(|body: String| async move { body.len().to_string() }),
            )
            .layer(from_fn_with_state(intake.clone(), take_in));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { axum::serve(listener, router).await });
        (address, intake)
    }

    /// The answer to a request that says a length, sends this much of it, and waits.
    async fn ask(address: std::net::SocketAddr, length: &str, body: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        let head = format!("POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{length}\r\n\r\n");
        let request = [head.as_bytes(), body].concat();
        stream.write_all(&request).await.expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok();
        answer
    }

    #[tokio::test]
    async fn bodies_are_bounded_in_size_time_and_number() {
        let (address, intake) = serve(2_048, 1).await;
        let whole = ask(address, "content-length: 5", b"12345").await;
        assert!(
            whole.starts_with("HTTP/1.1 200") && whole.ends_with('5'),
            "{whole}"
        );
        let pieces = ask(
            address,
            "transfer-encoding: chunked",
            b"2\r\nab\r\n0\r\n\r\n",
        )
        .await;
        assert!(pieces.ends_with('2'), "{pieces}");
        let long = ask(address, "content-length: 2049", b"").await;
        assert!(long.starts_with("HTTP/1.1 413"), "{long}");
        let endless = [b"900\r\n", &[b'x'; 0x900][..], b"\r\n0\r\n\r\n"].concat();
        let endless = ask(address, "transfer-encoding: chunked", &endless).await;
        assert!(endless.starts_with("HTTP/1.1 413"), "{endless}");
        let stalled = ask(address, "content-length: 5", b"123").await;
        assert!(stalled.starts_with("HTTP/1.1 408"), "{stalled}");
        // One that takes all the room keeps others out for as long as it may take.
        let large = ask(address, "content-length: 2048", b"x");
        let other = async {
            while intake.room.available_permits() > 0 {
                tokio::task::yield_now().await;
            }
            ask(address, "content-length: 5", b"12345").await
        };
        let (large, other) = tokio::join!(large, other);
        assert!(large.starts_with("HTTP/1.1 408"), "{large}");
        assert!(other.starts_with("HTTP/1.1 200"), "{other}");
        assert_eq!(intake.room.available_permits(), 2);
    }
}
