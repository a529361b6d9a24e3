//! The cluster half against a tiny HTTP server that answers as told: what no real API server can be made to do at will.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::object::Object;

/// An answer: status, further header lines, body, and a pause before it. Status 0 hangs up.
struct Reply(u16, &'static str, Value, Duration);

fn reply(status: u16, body: Value) -> Reply {
    Reply(status, "", body, Duration::ZERO)
}

type Handler = dyn Fn(&str) -> Reply + Send + Sync;

/// The server: what it was asked (`GET /path?query`), when.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<(Instant, String)>>>);

impl Asked {
    fn matching(&self, text: &str) -> Vec<Instant> {
        let asked = self.0.lock().unwrap();
        asked
            .iter()
            .filter(|(_, line)| line.contains(text))
            .map(|(at, _)| *at)
            .collect()
    }
}

async fn serve(
    handler: impl Fn(&str) -> Reply + Send + Sync + 'static,
    options: ClusterOptions,
) -> (Cluster, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (handler, asked): (Arc<Handler>, _) = (Arc::new(handler), Asked::default());
    let log = asked.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, handler.clone(), log.clone()));
        }
    });
    let client = client(kube::Config::new(url.parse().unwrap())).unwrap();
    (Cluster::new(client, options), asked)
}

async fn answer(mut stream: TcpStream, handler: Arc<Handler>, log: Asked) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await.unwrap_or(0);
        request.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&request).into_owned();
        if count == 0 {
            return;
        }
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .to_lowercase()
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.lines().next()?.trim().parse().ok());
        if body.len() < length.unwrap_or(0) {
            continue;
        }
        let line = head
            .lines()
            .next()
            .unwrap_or_default()
            .trim_end_matches(" HTTP/1.1")
            .to_owned();
        log.0.lock().unwrap().push((Instant::now(), line.clone()));
        let Reply(status, headers, body, pause) = handler(&line);
        tokio::time::sleep(pause).await;
        if status == 0 {
            return;
        }
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let text = format!(
            "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}",
            body.len()
        );
        stream.write_all(text.as_bytes()).await.ok();
        return;
    }
}

fn core_v1() -> Value {
    json!({"resources": [
        {"name": "configmaps", "kind": "ConfigMap", "namespaced": true}, {"name": "secrets", "kind": "Secret", "namespaced": true},
        {"name": "pods/eviction", "kind": "Eviction", "namespaced": true}]})
}

fn config_map() -> Object {
    Object::try_from(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}})).unwrap()
}

fn status(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "code": code, "reason": reason, "message": reason, "details": {"name": "a", "kind": "configmaps"}})
}

#[tokio::test]
async fn waits_as_told_and_lets_others_go_on() {
    let patches = AtomicUsize::new(0);
    let handler = move |line: &str| match line {
        "GET /api/v1" => reply(200, core_v1()),
        line if line.starts_with("PATCH") && patches.fetch_add(1, Ordering::SeqCst) < 2 => Reply(
            429,
            "retry-after: 1\r\n",
            status(429, "TooManyRequests"),
            Duration::ZERO,
        ),
        line if line.starts_with("PATCH") => reply(201, config_map().into_value()),
        _ => reply(200, config_map().into_value()),
    };
    // One place in flight: the waiting call must not keep it.
    let (cluster, asked) = serve(
        handler,
        ClusterOptions {
            in_flight: 1,
            ..ClusterOptions::default()
        },
    )
    .await;
    let mapping = cluster.mapping("v1", "ConfigMap").await.unwrap();
    let options = ApplyOptions::default();
    let object = config_map();
    let apply = cluster.apply(&object, &options);
    let reads = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let started = Instant::now();
        cluster.get(&mapping, "n", "a").await.unwrap().unwrap();
        started.elapsed()
    };
    let (applied, read) = tokio::join!(apply, reads);
    assert!(applied.unwrap().created);
    assert!(read < Duration::from_millis(500), "{read:?}");
    let patches = asked.matching("PATCH");
    assert_eq!(patches.len(), 3);
    for pair in patches.windows(2) {
        let pause = pair[1] - pair[0];
        assert!(
            pause >= Duration::from_secs(1) && pause < Duration::from_millis(1800),
            "{pause:?}"
        );
    }
}

#[tokio::test]
async fn gives_up_with_the_servers_wish() {
    let handler = |line: &str| match line {
        "GET /api/v1" => reply(200, core_v1()),
        _ => Reply(
            429,
            "retry-after: 60\r\n",
            status(429, "TooManyRequests"),
            Duration::ZERO,
        ),
    };
    let (cluster, asked) = serve(handler, ClusterOptions::default()).await;
    let error = cluster
        .apply(&config_map(), &ApplyOptions::default())
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.retry_after()),
        (ErrorKind::TooManyRequests, Some(Duration::from_mins(1)))
    );
    assert_eq!(asked.matching("PATCH").len(), 1);
    assert_eq!(
        error.to_string(),
        "cannot apply n/core/v1/configmap/a: too many requests: TooManyRequests"
    );
}

#[tokio::test]
async fn heals_broken_connections_and_failing_webhooks() {
    let count = AtomicUsize::new(0);
    let handler = move |line: &str| match (line, count.load(Ordering::SeqCst)) {
        ("GET /api/v1", _) => reply(200, core_v1()),
        _ => match count.fetch_add(1, Ordering::SeqCst) {
            0 => reply(0, Value::Null),
            1 => reply(503, status(503, "ServiceUnavailable")),
            2 => reply(
                500,
                json!({"kind": "Status", "message": "Internal error occurred: failed calling webhook \"x\": EOF"}),
            ),
            _ => reply(200, config_map().into_value()),
        },
    };
    let (cluster, asked) = serve(handler, ClusterOptions::default()).await;
    assert!(
        !cluster
            .apply(&config_map(), &ApplyOptions::default())
            .await
            .unwrap()
            .created
    );
    assert_eq!(asked.matching("PATCH").len(), 4);
}

#[tokio::test]
async fn a_refusal_is_not_asked_twice() {
    for (code, reason, kind) in [
        (403, "Forbidden", ErrorKind::Forbidden),
        (409, "Conflict", ErrorKind::Stale),
        (422, "Invalid", ErrorKind::Invalid),
        (500, "InternalError", ErrorKind::Unexpected),
    ] {
        let handler = move |line: &str| match line {
            "GET /api/v1" => reply(200, core_v1()),
            _ => reply(code, status(code, reason)),
        };
        let (cluster, asked) = serve(handler, ClusterOptions::default()).await;
        assert_eq!(
            cluster
                .apply(&config_map(), &ApplyOptions::default())
                .await
                .unwrap_err()
                .kind(),
            kind
        );
        assert_eq!(asked.matching("PATCH").len(), 1, "{reason}");
    }
}

#[tokio::test]
async fn a_dead_connection_is_left() {
    let handler = |line: &str| match line {
        "GET /api/v1" => reply(200, core_v1()),
        _ => Reply(200, "", config_map().into_value(), Duration::from_mins(1)),
    };
    let options = ClusterOptions {
        call_timeout: Duration::from_millis(300),
        ..ClusterOptions::default()
    };
    let (cluster, asked) = serve(handler, options).await;
    let started = Instant::now();
    let error = cluster
        .apply(&config_map(), &ApplyOptions::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().contains("within 300ms"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(2) && asked.matching("PATCH").len() == 2);
}

#[tokio::test]
async fn an_unreachable_server_is_an_error_soon() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let cluster = Cluster::new(
        client(kube::Config::new(url.parse().unwrap())).unwrap(),
        ClusterOptions::default(),
    );
    let started = Instant::now();
    let error = cluster.mapping("v1", "ConfigMap").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        started.elapsed() < Duration::from_secs(8),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn discovery_reads_once_and_only_what_is_wanted() {
    let handler = |line: &str| match line {
        "GET /api/v1" => Reply(200, "", core_v1(), Duration::from_millis(50)),
        "GET /apis/broken.dev/v1" => reply(404, Value::Null),
        _ => reply(
            404,
            json!({"kind": "Status", "reason": "NotFound", "details": {}}),
        ),
    };
    let (cluster, asked) = serve(handler, ClusterOptions::default()).await;
    let many = futures::future::join_all((0..20).map(|_| cluster.mapping("v1", "ConfigMap"))).await;
    assert!(many.iter().all(Result::is_ok));
    let snapshot = cluster
        .scopes([("v1", "Secret"), ("v1", "ConfigMap"), ("nope.dev/v1", "X")])
        .await
        .unwrap();
    assert_eq!(
        snapshot.mapping("v1", "Secret").map(|m| m.plural.as_str()),
        Some("secrets")
    );
    assert!(snapshot.mapping("nope.dev/v1", "X").is_none());
    for _ in 0..5 {
        // Subresources are no kinds; a kind that is missing is asked for again only after a while.
        assert_eq!(
            cluster.mapping("v1", "Eviction").await.unwrap_err().kind(),
            ErrorKind::NoSuchKind
        );
        assert_eq!(
            cluster
                .mapping("nope.dev/v1", "X")
                .await
                .unwrap_err()
                .kind(),
            ErrorKind::NoSuchKind
        );
    }
    assert_eq!(
        (
            asked.matching("GET /api/v1").len(),
            asked.matching("nope.dev").len()
        ),
        (1, 1)
    );
    cluster.forget_group("nope.dev");
    assert!(cluster.mapping("nope.dev/v1", "X").await.is_err());
    assert_eq!(asked.matching("nope.dev").len(), 2);
    assert!(
        cluster.cached_mapping("v1", "ConfigMap").is_some()
            && cluster.cached_mapping("apps/v1", "X").is_none()
    );
}

#[tokio::test]
async fn a_broken_api_harms_only_its_group() {
    let handler = |line: &str| match line {
        "GET /api/v1" => reply(200, core_v1()),
        "GET /apis/broken.dev/v1" => reply(503, json!({"message": "no backend"})),
        _ => reply(201, config_map().into_value()),
    };
    let (cluster, _) = serve(handler, ClusterOptions::default()).await;
    let (broken, fine) = tokio::join!(cluster.mapping("broken.dev/v1", "X"), async {
        let started = Instant::now();
        cluster
            .apply(&config_map(), &ApplyOptions::default())
            .await
            .unwrap();
        started.elapsed()
    });
    assert!(fine < Duration::from_secs(1), "{fine:?}");
    let error = broken.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("broken.dev/v1"), "{error}");
}

#[tokio::test]
async fn nothing_secret_in_errors() {
    let handler = |line: &str| match line {
        "GET /api/v1" => reply(200, core_v1()),
        line if line.contains("/torn") => reply(200, json!("hunter2")),
        _ => reply(
            422,
            json!({"kind": "Status", "message": "hunter2", "details": {"causes": [{"field": "data[k]", "message": "hunter2"}]}}),
        ),
    };
    let (cluster, _) = serve(handler, ClusterOptions::default()).await;
    for name in ["db", "torn"] {
        let secret = Object::try_from(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "n"}})).unwrap();
        let result = cluster.apply(&secret, &ApplyOptions::default()).await;
        assert!(!format!("{result:?}").contains("hunter2"), "{result:?}");
    }
}

#[tokio::test]
async fn lists_are_read_page_by_page() {
    let handler = |line: &str| match line {
        line if line.contains("continue=t%20%2B") => reply(
            200,
            json!({"metadata": {}, "items": [{"metadata": {"name": "b"}}]}),
        ),
        line if line.contains("labelSelector=a%3Db") => reply(
            200,
            json!({"metadata": {"continue": "t +"}, "items": [{"metadata": {"name": "a"}}]}),
        ),
        _ => reply(200, json!({"metadata": {}, "items": null})),
    };
    let (cluster, _) = serve(handler, ClusterOptions::default()).await;
    let items = cluster
        .list(&mapping::secrets(), Some("n"), Some("a=b"))
        .await
        .unwrap();
    let names: Vec<_> = items
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(items[0]["kind"], "Secret");
    assert!(
        cluster
            .list(&mapping::secrets(), None, None)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn many_of_a_kind_are_told_by_one_list() {
    let named = |name: String| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}});
    // The list holds the even ones and, where it is cut off, says that there is more.
    for (cut, refused, reads) in [(false, false, 0), (true, false, 10), (false, true, 20)] {
        let handler = move |line: &str| match line {
            "GET /api/v1" => reply(200, core_v1()),
            line if line.contains("limit=80") && refused => reply(403, status(403, "Forbidden")),
            line if line.contains("limit=80") => {
                let items: Vec<Value> = (0..20)
                    .step_by(2)
                    .map(|i| json!({"metadata": {"name": format!("c{i}"), "uid": "listed"}}))
                    .collect();
                let token = if cut { "more" } else { "" };
                reply(
                    200,
                    json!({"metadata": {"continue": token}, "items": items}),
                )
            }
            line if line.ends_with("/c1") => {
                reply(200, json!({"metadata": {"name": "c1", "uid": "read"}}))
            }
            _ => reply(404, status(404, "NotFound")),
        };
        let (cluster, asked) = serve(handler, ClusterOptions::default()).await;
        let objects: Vec<Object> = (0..20)
            .map(|i| Object::try_from(named(format!("c{i}"))).unwrap())
            .collect();
        let references: Vec<&Object> = objects.iter().collect();
        let metadata = cluster.metadata_of(&references).await;
        let uids: Vec<String> = metadata
            .into_iter()
            .map(|live| {
                live.unwrap()
                    .map_or(String::new(), |live| live.uid().to_owned())
            })
            .collect();
        let even = if refused { "" } else { "listed" };
        let second = if reads == 0 { "" } else { "read" };
        assert_eq!(uids[..4], [even, second, even, ""], "{cut} {refused}");
        assert_eq!(
            asked.matching("/configmaps/c").len(),
            reads,
            "{cut} {refused}"
        );
        assert_eq!(asked.matching("/configmaps?limit=80").len(), 1);
    }
}

/// A ConfigMap of the release `r`, as it is applied and as it lives then.
fn applied(name: &str) -> (Object, Value) {
    let marks =
        json!({ "instance.atc.yoke.cd/release": "r", "instance.atc.yoke.cd/namespace": "n" });
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "k": "v" },
        "metadata": { "name": name, "namespace": "n", "annotations": marks, "labels": { "app.kubernetes.io/managed-by": "yoke" } } });
    let mut live = object.clone();
    let fields = json!({ "f:data": { "f:k": {} }, "f:metadata": {
        "f:annotations": { "f:instance.atc.yoke.cd/release": {}, "f:instance.atc.yoke.cd/namespace": {} },
        "f:labels": { "f:app.kubernetes.io/managed-by": {} } } });
    live["metadata"]["managedFields"] = json!([{ "manager": "yoke", "operation": "Apply", "apiVersion": "v1",
        "fieldsType": "FieldsV1", "fieldsV1": fields }]);
    (Object::try_from(object).unwrap(), live)
}

#[tokio::test]
async fn what_a_list_shows_is_not_asked_for() {
    let edited = |name: &str, data: &str| {
        let mut live = applied(name).1;
        live["data"]["k"] = data.into();
        live
    };
    let list = |items: Vec<Value>| reply(200, json!({ "metadata": {}, "items": items }));
    // The objects in the list, whether it may be listed, what a read of `c3` gives; the answer, reads, dry runs.
    for (listed, refused, third, same, reads) in [
        (20, false, "v", true, 1),
        (19, false, "v", false, 0),
        (20, true, "v", true, 20),
        // In the list it is not as it should be; the server says whether it is.
        (20, false, "edited", false, 1),
    ] {
        let handler = move |line: &str| match line {
            "GET /api/v1" => reply(200, core_v1()),
            line if line
                .contains("?limit=250&labelSelector=app.kubernetes.io%2Fmanaged-by%3Dyoke") =>
            {
                if refused {
                    return reply(403, status(403, "Forbidden"));
                }
                let name = |i: usize| format!("c{i}");
                list(
                    (0..listed)
                        .map(|i| edited(&name(i), if i == 3 { third } else { "v" }))
                        .collect(),
                )
            }
            line => {
                let name = line.rsplit('/').next().unwrap_or_default();
                let name = name.split('?').next().unwrap_or_default();
                let data = if name == "c3" && !line.starts_with("PATCH") {
                    third
                } else {
                    "v"
                };
                reply(200, edited(name, data))
            }
        };
        let (cluster, asked) = serve(handler, ClusterOptions::default()).await;
        let objects: Vec<Object> = (0..20).map(|i| applied(&format!("c{i}")).0).collect();
        let references: Vec<&Object> = objects.iter().collect();
        let us = crate::ownership::Owner::new("n", "r");
        let options = ApplyOptions::default();
        let answer = cluster.are_as_applied(&references, &us, &options);
        assert_eq!(answer.await, same, "{listed} {refused} {third}");
        assert_eq!(
            asked.matching("GET /api/v1/namespaces/n/configmaps/").len(),
            reads
        );
        assert_eq!(asked.matching("PATCH").len(), reads);
        assert_eq!(asked.matching("dryRun=All").len(), reads);
    }
    // Another release's.
    let handler = move |line: &str| match line {
        "GET /api/v1" => reply(200, core_v1()),
        _ => list((0..20).map(|i| edited(&format!("c{i}"), "v")).collect()),
    };
    let (cluster, asked) = serve(handler, ClusterOptions::default()).await;
    let objects: Vec<Object> = (0..20).map(|i| applied(&format!("c{i}")).0).collect();
    let references: Vec<&Object> = objects.iter().collect();
    let us = crate::ownership::Owner::new("n", "other");
    let options = ApplyOptions::default();
    let answer = cluster.are_as_applied(&references, &us, &options);
    assert!(!answer.await && asked.matching("/configmaps").len() == 1);
}

/// Futures of this module move between threads: the engine spawns them.
#[test]
fn futures_are_send() {
    fn send<T: Send>(_: T) {}
    async fn all(cluster: Cluster, object: Object, mapping: Mapping, head: crate::history::Head) {
        let objects = [object];
        let references: Vec<&Object> = objects.iter().collect();
        let us = crate::ownership::Owner::new("n", "r");
        cluster
            .apply_stage(&objects, |_| ApplyOptions::default())
            .await;
        cluster.metadata_of(&references).await;
        cluster
            .preview(&[objects.to_vec()], |_| ApplyOptions::default())
            .await;
        let wait = Wait {
            objects: &references,
            known: Vec::new(),
            rules: &NoRules,
            changes: Changes::Watch,
            options: WaitOptions::default(),
        };
        cluster.wait_ready(wait, &mut |_, _| ()).await.ok();
        cluster.prune(&[], &us, PRUNE_LIMIT).await;
        cluster.orphan_all(&[], &us, None).await;
        cluster.wait_established("x", PRUNE_LIMIT).await.ok();
        cluster.scopes([("v1", "Secret")]).await.ok();
        cluster.mapping_of_group("apps", "Deployment").await.ok();
        cluster.list(&mapping, None, None).await.ok();
        cluster.cap_revisions(&[head], 1).await.ok();
        cluster.full_revisions("r", "n").await.ok();
    }
    let run = |cluster, object, mapping, head| send(all(cluster, object, mapping, head));
    let _ = run;
}
