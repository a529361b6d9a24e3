//! What the atc's user asked of the apiserver, from the audit log.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, Result};
use serde_json::Value;

/// How long after a call its line may come.
const LAG: Duration = Duration::from_millis(200);

/// One finished call.
#[derive(Debug, Clone)]
pub struct Call {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// Plural, with `/subresource` where there is one; the path for calls that are on no resource.
    pub resource: String,
    /// Namespace of the object, empty for none.
    pub namespace: String,
    /// Name of the object, empty for lists.
    pub name: String,
    /// The whole path with its query.
    pub uri: String,
    /// HTTP status of the answer.
    pub status: u64,
}

impl Call {
    fn parse(line: &str) -> Result<Self> {
        let event: Value = serde_json::from_str(line).context("a line of the audit log")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = &event["objectRef"];
        let uri = text(&event["requestURI"]);
        let mut resource = text(&object["resource"]);
        if resource.is_empty() {
            uri.split('?')
                .next()
                .unwrap_or_default()
                .clone_into(&mut resource);
        }
        if let Some(sub) = object["subresource"].as_str() {
            resource = format!("{resource}/{sub}");
        }
        Ok(Self {
            verb: text(&event["verb"]),
            resource,
            namespace: text(&object["namespace"]),
            name: text(&object["name"]),
            uri,
            status: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
        })
    }

    /// Whether it may have changed something: no read, no dry run, and not the renewal of a lease.
    pub fn writes(&self) -> bool {
        let reads = matches!(self.verb.as_str(), "get" | "list" | "watch");
        !reads && self.resource != "leases" && !self.uri.contains("dryRun")
    }
}

/// The audit log from some moment on.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    read: u64,
}

impl AuditLog {
    /// What comes from now on.
    pub(crate) fn from_now(path: PathBuf) -> Self {
        let read = path.metadata().map_or(0, |m| m.len());
        Self { path, read }
    }

    /// The calls since the last time this was asked. Waits a moment first, since lines come after the answers.
    pub async fn calls(&mut self) -> Result<Vec<Call>> {
        tokio::time::sleep(LAG).await;
        let Ok(mut file) = File::open(&self.path) else {
            return Ok(Vec::new());
        };
        file.seek(SeekFrom::Start(self.read))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        // A line that is being written is for the next time.
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        self.read += whole as u64;
        String::from_utf8_lossy(&text[..whole])
            .lines()
            .map(Call::parse)
            .collect()
    }

    /// How often each `verb resource` was asked since the last time, writes only.
    pub async fn writes(&mut self) -> Result<BTreeMap<String, usize>> {
        let mut counts = BTreeMap::new();
        for call in self.calls().await?.iter().filter(|call| call.writes()) {
            *counts
                .entry(format!("{} {}", call.verb, call.resource))
                .or_default() += 1;
        }
        Ok(counts)
    }
}
