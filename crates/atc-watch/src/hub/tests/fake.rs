//! An API server of a few kinds, in memory, that can be made to fail.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::{Stream, StreamExt};
use http::{Request, Response, Uri};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// What happens to requests for a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Serve,
    /// No connection.
    Refuse,
    /// Connections that never answer.
    Hang,
    /// Lists are answered, watches accepted, and then nothing comes any more.
    Silent,
    /// Watches are closed as soon as they are accepted.
    Close,
    /// This HTTP status.
    Answer(u16),
    /// Lists are answered, watches get this HTTP status.
    AnswerWatch(u16),
}

#[derive(Default)]
struct Served {
    mode: Mode,
    objects: BTreeMap<String, Value>,
    events: Vec<(u64, Value)>,
    watchers: Vec<UnboundedSender<Bytes>>,
    /// Kept open and never told anything.
    silent: Vec<UnboundedSender<Bytes>>,
    /// Watches from before this version are too old.
    compacted: u64,
}

#[derive(Default)]
struct State {
    version: u64,
    kinds: HashMap<String, Served>,
    requests: Vec<String>,
    snapshots: Vec<(u64, Vec<Value>)>,
    page: Option<usize>,
}

#[derive(Clone, Default)]
pub(super) struct Fake(Arc<Mutex<State>>);

type FakeBody =
    StreamBody<std::pin::Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>>;

fn body(stream: impl Stream<Item = Bytes> + Send + 'static) -> FakeBody {
    StreamBody::new(Box::pin(stream.map(|bytes| Ok(Frame::data(bytes)))))
}

fn answer(code: u16, value: &Value) -> Response<FakeBody> {
    let text = Bytes::from(value.to_string());
    Response::builder()
        .status(code)
        .body(body(futures::stream::iter([text])))
        .unwrap()
}

fn status(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": format!("made to answer {code}")})
}

fn line(kind: &str, object: &Value) -> Bytes {
    Bytes::from(format!("{}\n", json!({"type": kind, "object": object})))
}

impl Fake {
    pub(super) fn client(&self) -> Client {
        let fake = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let fake = fake.clone();
            let accept = request.headers()["accept"].to_str().unwrap().to_owned();
            let uri = request.uri().clone();
            async move { fake.serve(&uri, &accept).await }
        });
        Client::new(service, "default")
    }

    fn with<T>(&self, plural: &str, f: impl FnOnce(&mut u64, &mut Served) -> T) -> T {
        let state = &mut *self.0.lock().unwrap();
        f(
            &mut state.version,
            state.kinds.entry(plural.to_owned()).or_default(),
        )
    }

    pub(super) fn mode(&self, plural: &str, mode: Mode) {
        self.with(plural, |_, kind| kind.mode = mode);
    }

    /// Creates or changes an object. Returns its version.
    pub(super) fn put(&self, plural: &str, name: &str) -> u64 {
        self.with(plural, |version, kind| {
            *version += 1;
            let known = kind.objects.get(name);
            let uid = known.map_or_else(|| json!(format!("uid-{version}")), |old| old["metadata"]["uid"].clone());
            let event = if known.is_some() { "MODIFIED" } else { "ADDED" };
            let object = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {
                "name": name, "namespace": "default", "uid": uid, "resourceVersion": version.to_string()
            }});
            kind.objects.insert(name.to_owned(), object.clone());
            kind.tell(*version, &json!({"type": event, "object": object}));
            *version
        })
    }

    pub(super) fn delete(&self, plural: &str, name: &str) {
        self.with(plural, |version, kind| {
            *version += 1;
            if let Some(mut object) = kind.objects.remove(name) {
                object["metadata"]["resourceVersion"] = json!(version.to_string());
                kind.tell(*version, &json!({"type": "DELETED", "object": object}));
            }
        });
    }

    pub(super) fn bookmark(&self, plural: &str) {
        self.with(plural, |version, kind| {
            let object = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": {"resourceVersion": version.to_string(), "creationTimestamp": null}});
            kind.send(&line("BOOKMARK", &object));
        });
    }

    /// An event of type ERROR, after which the server closes the watch.
    pub(super) fn error_event(&self, plural: &str, code: u16) {
        self.with(plural, |_, kind| kind.send(&line("ERROR", &status(code))));
        self.close(plural);
    }

    /// A line that is no JSON.
    pub(super) fn garbage(&self, plural: &str) {
        self.with(plural, |_, kind| {
            kind.send(&Bytes::from_static(b"{\"type\":\"ADDED\",\"object\":7}\n"));
        });
    }

    /// Ends the watches of a kind, as the server does after a time.
    pub(super) fn close(&self, plural: &str) {
        self.with(plural, |_, kind| kind.watchers.clear());
    }

    /// Forgets all events: watches from before are too old.
    pub(super) fn compact(&self, plural: &str) {
        self.with(plural, |version, kind| {
            kind.events.clear();
            kind.compacted = *version;
        });
    }

    pub(super) fn page(&self, size: usize) {
        self.0.lock().unwrap().page = Some(size);
    }

    /// Requests so far that contain all of this.
    pub(super) fn requests(&self, parts: &[&str]) -> usize {
        let state = self.0.lock().unwrap();
        state
            .requests
            .iter()
            .filter(|request| parts.iter().all(|part| request.contains(part)))
            .count()
    }

    /// Open watches of a kind.
    pub(super) fn open(&self, plural: &str) -> usize {
        self.with(plural, |_, kind| {
            kind.watchers.retain(|watcher| !watcher.is_closed());
            kind.watchers.len()
        })
    }

    async fn serve(&self, uri: &Uri, accept: &str) -> Result<Response<FakeBody>, std::io::Error> {
        assert!(accept.contains("as=PartialObjectMetadata"), "{accept}");
        let path = uri.path().to_owned();
        let plural = path.rsplit_once('/').unwrap().1.to_owned();
        let query: HashMap<String, String> = uri
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let watch = query.contains_key("watch");
        self.0.lock().unwrap().requests.push(uri.to_string());
        // Kinds are told apart by plural; a version that is not served is a plural with its version in front.
        let version = path
            .trim_end_matches(&format!("/{plural}"))
            .rsplit_once('/')
            .unwrap()
            .1
            .to_owned();
        let mode = self.with(&plural, |_, kind| kind.mode);
        let mode = match self.with(&format!("{version}/{plural}"), |_, kind| kind.mode) {
            Mode::Serve => mode,
            other => other,
        };
        match mode {
            Mode::Refuse => {
                return Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
            }
            Mode::Hang => std::future::pending().await,
            Mode::Answer(code) => return Ok(answer(code, &status(code))),
            Mode::AnswerWatch(code) if watch => return Ok(answer(code, &status(code))),
            Mode::Serve | Mode::Silent | Mode::Close | Mode::AnswerWatch(_) => {}
        }
        if !watch {
            return Ok(self.list(&plural, &query));
        }
        let since: u64 = query["resourceVersion"].parse().unwrap();
        Ok(self.with(&plural, |_, kind| {
            if since < kind.compacted {
                return answer(410, &status(410));
            }
            let (sender, receiver): (_, UnboundedReceiver<Bytes>) = unbounded();
            match mode {
                Mode::Close => {}
                Mode::Silent => kind.silent.push(sender),
                _ => {
                    for (_, event) in kind.events.iter().filter(|(version, _)| *version > since) {
                        sender
                            .unbounded_send(Bytes::from(format!("{event}\n")))
                            .unwrap();
                    }
                    kind.watchers.push(sender);
                }
            }
            Response::new(body(receiver))
        }))
    }

    fn list(&self, plural: &str, query: &HashMap<String, String>) -> Response<FakeBody> {
        let limit: usize = query["limit"].parse().unwrap();
        assert!(limit <= 500, "a page is bounded");
        let state = &mut *self.0.lock().unwrap();
        let limit = state.page.unwrap_or(limit);
        let (version, mut items) = if let Some(token) = query.get("continue") {
            state.snapshots[token.parse::<usize>().unwrap()].clone()
        } else {
            let kind = state.kinds.entry(plural.to_owned()).or_default();
            (state.version, kind.objects.values().cloned().collect())
        };
        let rest = items.split_off(limit.min(items.len()));
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if !rest.is_empty() {
            metadata["continue"] = json!(state.snapshots.len().to_string());
            state.snapshots.push((version, rest));
        }
        answer(
            200,
            &json!({"kind": "PartialObjectMetadataList", "metadata": metadata, "items": items}),
        )
    }
}

impl Served {
    fn tell(&mut self, version: u64, event: &Value) {
        self.events.push((version, event.clone()));
        if self.mode == Mode::Serve {
            self.send(&Bytes::from(format!("{event}\n")));
        }
    }

    fn send(&mut self, line: &Bytes) {
        self.watchers
            .retain(|watcher| watcher.unbounded_send(line.clone()).is_ok());
    }
}
