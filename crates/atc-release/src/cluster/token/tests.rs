use std::io::Write;

use kube::client::Body;

use super::*;

/// An API server that takes one token at a time, and what it was sent.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<(String, Vec<String>)>>);

impl Server {
    fn takes(&self, token: &str) {
        self.0.lock().unwrap().0 = format!("Bearer {token}");
    }

    /// What it was sent since the last time: token and body.
    fn sent(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().1)
    }

    fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let token = request.headers()[AUTHORIZATION].clone();
                let body = request.into_body().collect_bytes().await?;
                let token = token.to_str().unwrap();
                let body = String::from_utf8_lossy(&body).into_owned();
                let mut place = server.0.lock().unwrap();
                place.1.push(format!("{token} {body}"));
                let status = if place.0 == token { 200 } else { 401 };
                let answer = Response::builder().status(status).body(Body::empty());
                Ok::<_, kube::Error>(answer.unwrap())
            }
        });
        kube::Client::new(service, "default")
    }
}

fn auth(path: &Path) -> AuthInfo {
    AuthInfo {
        token_file: Some(path.to_string_lossy().into_owned()),
        ..AuthInfo::default()
    }
}

async fn ask(client: &kube::Client) -> u16 {
    let request = Request::post("/x")
        .body(Body::from(b"body".to_vec()))
        .unwrap();
    client.send(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_refused_token_is_read_anew_once_r117() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_owned();
    writeln!(file, "one").unwrap();
    let server = Server::default();
    server.takes("one");
    let held = TokenFile::take(&mut auth(&path), Instant::now())
        .unwrap()
        .unwrap();
    let client = with(&server.client(), held);
    assert_eq!(ask(&client).await, 200);
    assert_eq!(server.sent(), ["Bearer one body"]);

    // Replaced, and the old one revoked: nobody notices.
    std::fs::write(&path, "two").unwrap();
    server.takes("two");
    assert_eq!(ask(&client).await, 200);
    assert_eq!(server.sent(), ["Bearer one body", "Bearer two body"]);
    assert_eq!(ask(&client).await, 200);
    assert_eq!(server.sent(), ["Bearer two body"]);

    // Revoked, and nothing new is there: the answer is the server's.
    server.takes("three");
    assert_eq!(ask(&client).await, 401);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(ask(&client).await, 401);
    assert_eq!(server.sent(), ["Bearer two body", "Bearer two body"]);
    std::fs::write(&path, "three\n").unwrap();
    assert_eq!(ask(&client).await, 200);
}

#[test]
fn a_token_that_still_works_is_replaced_within_a_minute_r117() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let now = Instant::now();
    std::fs::write(file.path(), "one").unwrap();
    let held = TokenFile::take(&mut auth(file.path()), now)
        .unwrap()
        .unwrap();
    std::fs::write(file.path(), "two").unwrap();
    assert_eq!(held.header(now + Duration::from_secs(49)), "Bearer one");
    assert_eq!(held.header(now + Duration::from_secs(50)), "Bearer two");
    // Whoever writes it may have emptied it first.
    for (odd, after) in [("no\u{0}header", 200), ("", 300), (" \n", 400)] {
        std::fs::write(file.path(), odd).unwrap();
        assert_eq!(held.header(now + Duration::from_secs(after)), "Bearer two");
    }
    assert!(!format!("{held:?}").contains("two"), "{held:?}");
}

#[test]
fn what_comes_before_a_file_stays() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut both = auth(file.path());
    both.token = Some("inline".to_owned().into());
    assert!(
        TokenFile::take(&mut both, Instant::now())
            .unwrap()
            .is_none()
    );
    assert!(both.token_file.is_some());
    assert!(
        TokenFile::take(&mut AuthInfo::default(), Instant::now())
            .unwrap()
            .is_none()
    );
    let missing = TokenFile::take(&mut auth(Path::new("/no/such")), Instant::now());
    assert!(missing.unwrap_err().to_string().contains("/no/such"));
}
