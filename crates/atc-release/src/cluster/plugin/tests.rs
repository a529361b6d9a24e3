use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::super::answering::answering;
use super::*;

/// A server that takes one token at a time: its URL, and that token.
async fn serve() -> (String, Arc<Mutex<String>>) {
    let takes = Arc::new(Mutex::new(String::new()));
    let wanted = takes.clone();
    let answer = move |head: &str| {
        let line = format!("authorization: bearer {}", wanted.lock().unwrap());
        let is_right = head.lines().any(|one| one == line);
        (if is_right { 200 } else { 401 }, "")
    };
    (answering(answer).await, takes)
}

async fn ask(client: &kube::Client) -> u16 {
    let request = Request::get("/x").body(Body::empty()).unwrap();
    client.send(request).await.unwrap().status().as_u16()
}

/// A client that is always refused.
fn refused() -> kube::Client {
    let service = service_fn(|_: Request<Body>| async {
        let answer = Response::builder().status(401).body(Body::empty());
        Ok::<_, kube::Error>(answer.unwrap())
    });
    kube::Client::new(service, "default")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_is_asked_again_when_what_it_gave_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (version, kind) = ("client.authentication.k8s.io/v1", "ExecCredential");
    // Without a time of its end.
    let gives = |token: &str| {
        let credential =
            json!({ "apiVersion": version, "kind": kind, "status": { "token": token } });
        std::fs::write(file.path(), credential.to_string()).unwrap();
    };
    let (url, takes) = serve().await;
    let takes = |token: &str| token.clone_into(&mut takes.lock().unwrap());
    let mut config = kube::Config::new(url.parse().unwrap());
    let exec = json!({ "apiVersion": version, "command": "cat", "args": [file.path()], "interactiveMode": "Never" });
    config.auth_info.exec = Some(serde_json::from_value(exec).unwrap());

    gives("one");
    takes("one");
    let client = super::super::client(config).unwrap();
    assert_eq!(ask(&client).await, 200);
    gives("two");
    assert_eq!(ask(&client).await, 200);
    takes("two");
    assert_eq!(ask(&client).await, 200);
    assert_eq!(ask(&client).await, 200);
    // It was asked only just before.
    gives("three");
    takes("three");
    assert_eq!(ask(&client).await, 401);
}

#[tokio::test(start_paused = true)]
async fn a_plugin_is_not_asked_for_each_refusal() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let client = with(refused(), move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(refused())
    });
    for times in 1..4 {
        for _ in 0..3 {
            assert_eq!(ask(&client).await, 401);
        }
        assert_eq!(asked.load(Ordering::Relaxed), times);
        tokio::time::advance(PAUSE).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_fails_leaves_the_answer_of_the_server() {
    let broken = || Err(kube::Error::TlsRequired);
    let client = with(refused(), broken);
    assert_eq!(ask(&client).await, 401);
    tokio::time::advance(PAUSE).await;
    assert_eq!(ask(&client).await, 401);
}

#[test]
fn what_comes_before_a_plugin() {
    let exec = || Some(serde_json::from_value(json!({ "command": "x" })).unwrap());
    let plugin = AuthInfo {
        exec: exec(),
        ..AuthInfo::default()
    };
    assert!(is_used(&plugin));
    assert!(!is_used(&AuthInfo::default()));
    let word = || Some("x".to_owned().into());
    for other in [
        AuthInfo {
            token: word(),
            ..plugin.clone()
        },
        AuthInfo {
            token_file: Some("x".to_owned()),
            ..plugin.clone()
        },
        AuthInfo {
            username: Some("x".to_owned()),
            password: word(),
            ..plugin.clone()
        },
    ] {
        assert!(!is_used(&other), "{other:?}");
    }
}
