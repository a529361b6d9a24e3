//! A server for tests, which answers each request by what its head says.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Starts one, which ends with the runtime. It gives `answer` the head in lower case and takes a status and a body from it.
/// Gives its URL.
pub(super) async fn answering(
    answer: impl Fn(&str) -> (u16, &'static str) + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let (status, body) = answer(&String::from_utf8(head).unwrap().to_lowercase());
            let size = body.len();
            let whole = format!(
                "HTTP/1.1 {status} x\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n{body}"
            );
            stream.write_all(whole.as_bytes()).await.unwrap();
        }
    });
    url
}
