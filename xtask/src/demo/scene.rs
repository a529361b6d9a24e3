//! What happens in the demo's cluster, as one stream: the atc's log and watches of the objects that matter.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use controlplane::{ControlPlane, Process};
use serde_json::Value;

/// One thing that happened.
#[derive(Debug)]
pub(super) enum Event {
    /// What a person did.
    Said(String),
    /// A line of the atc's log.
    Log(Value),
    /// An object as a watch shows it.
    Object(Value),
}

/// What is watched: the namespace of the examples.
const WATCHED: [&str; 4] = [
    "/apis/example.dev/v1/namespaces/default/pipelines",
    "/apis/example.dev/v1/namespaces/default/apps",
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/apps/v1/namespaces/default/deployments",
];
/// Pause between two looks at the log.
const PAUSE: Duration = Duration::from_millis(20);

/// The open watches; they end when it is dropped.
pub(super) struct Scene {
    sender: Sender<(Instant, Event)>,
    open: Arc<AtomicBool>,
    _watches: Vec<Process>,
}

impl Scene {
    pub(super) fn open(
        plane: &ControlPlane,
        log: &Path,
    ) -> Result<(Self, Receiver<(Instant, Event)>)> {
        let (sender, events) = channel();
        let mut watches = Vec::new();
        for path in WATCHED {
            let (process, objects) = plane.watch(path)?;
            watches.push(process);
            let sender = sender.clone();
            thread::spawn(move || {
                for mut event in objects {
                    if sender
                        .send((Instant::now(), Event::Object(event["object"].take())))
                        .is_err()
                    {
                        break;
                    }
                }
            });
        }
        let open = Arc::new(AtomicBool::new(true));
        let file = File::open(log).with_context(|| format!("open \"{}\"", log.display()))?;
        let still = Arc::clone(&open);
        let lines = sender.clone();
        thread::spawn(move || follow(file, &still, &lines));
        Ok((
            Self {
                sender,
                open,
                _watches: watches,
            },
            events,
        ))
    }

    /// Adds what a person did.
    pub(super) fn say(&self, what: &str) {
        _ = self
            .sender
            .send((Instant::now(), Event::Said(what.to_owned())));
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.open.store(false, Ordering::Relaxed);
    }
}

/// The lines of a log as they are written.
fn follow(file: File, open: &AtomicBool, sender: &Sender<(Instant, Event)>) {
    let mut reader = BufReader::new(file);
    let mut line = String::new();
    while open.load(Ordering::Relaxed) {
        match reader.read_line(&mut line) {
            Ok(_) if line.ends_with('\n') => {
                if let Ok(value) = serde_json::from_str(&line)
                    && sender.send((Instant::now(), Event::Log(value))).is_err()
                {
                    return;
                }
                line.clear();
            }
            // The end for now, or half a line: the rest of it follows.
            Ok(_) => thread::sleep(PAUSE),
            Err(_) => return,
        }
    }
}
