//! Connections to us: so many at once. Whoever reaches the port may open them.

use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum_server::accept::Accept;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections at once; more are closed at once. 1,024: an API server keeps one or a few open, and one takes about 12 KiB.
const CONNECTIONS: usize = 1_024;

/// Takes connections as long as there are places, and has what is written sent at once: else the first answer of a connection
/// waits 40 ms for the acknowledgement of the TLS handshake.
#[derive(Clone)]
pub(super) struct Places(Arc<Semaphore>);

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(CONNECTIONS)))
    }
}

impl<S> Accept<TcpStream, S> for Places {
    type Stream = Placed;
    type Service = S;
    type Future = Ready<io::Result<(Placed, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let Ok(place) = self.0.clone().try_acquire_owned() else {
            return ready(Err(io::Error::other("there are too many connections")));
        };
        let placed = stream.set_nodelay(true).map(|()| Placed {
            stream,
            _place: place,
        });
        ready(placed.map(|placed| (placed, service)))
    }
}

/// A connection that has a place.
pub(super) struct Placed {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

impl AsyncRead for Placed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Placed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn one_more_than_there_are_places_is_refused_until_another_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let places = Places(Arc::new(Semaphore::new(2)));
        let open = async || {
            let client = TcpStream::connect(address).await.expect("a connection");
            let (stream, _) = listener.accept().await.expect("it is taken");
            (client, places.accept(stream, ()).await)
        };
        let (_one, first) = open().await;
        let (_two, second) = open().await;
        assert!(first.is_ok() && second.is_ok());
        assert!(open().await.1.is_err());
        drop(first);
        assert!(open().await.1.is_ok());
    }
}
