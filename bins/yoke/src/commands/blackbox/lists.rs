//! Releases and revisions as lists.

use atc_engine::release::history::{self, Head, NEVER_ACTIVE};
use serde_json::{Value, json};

use super::source;
use crate::cli::{Data, Format};
use crate::{output, render};

/// Lists all releases. `heads` are sorted by namespace and release; `place` says where they were looked for.
pub(super) async fn releases(heads: &[Head], format: Format, place: &str) -> anyhow::Result<()> {
    let releases: Vec<Release<'_>> = heads
        .chunk_by(|one, two| (&one.namespace, &one.release) == (&two.namespace, &two.release))
        .map(Release::of)
        .collect();
    if releases.is_empty() {
        render::message(format!("there are no releases{place}"));
    }
    match data(format) {
        Some(data) => {
            let list = releases.iter().map(Release::value).collect();
            output::write_data(&Value::Array(list), data).await
        }
        None if releases.is_empty() => Ok(()),
        None => {
            let rows: Vec<[String; 3]> = releases.iter().map(Release::row).collect();
            output::write(render::table(
                ["release", "namespace", "revision id"],
                &rows,
            ))
            .await
        }
    }
}

/// Lists the revisions of a release, newest first. `heads` are in the order of their ids.
pub(super) async fn revisions(heads: &[&Head], format: Format) -> anyhow::Result<()> {
    let active = history::active(heads).map(|head| head.secret.as_str());
    let rows = heads.iter().enumerate().rev().map(|(index, head)| Row {
        id: index + 1,
        current: active == Some(head.secret.as_str()),
        head,
    });
    if let Some(data) = data(format) {
        let list = rows.map(|row| row.value()).collect();
        return output::write_data(&Value::Array(list), data).await;
    }
    let rows: Vec<[String; 6]> = rows.map(|row| row.cells()).collect();
    let titles = [
        "id",
        "resources",
        "flight",
        "sha",
        "active at",
        "created at",
    ];
    output::write(render::table(titles, &rows)).await
}

fn data(format: Format) -> Option<Data> {
    match format {
        Format::Table => None,
        Format::Json => Some(Data::Json),
        Format::Yaml => Some(Data::Yaml),
    }
}

struct Release<'a> {
    name: &'a str,
    namespace: &'a str,
    /// Id of the active revision.
    revision: Option<usize>,
    revisions: usize,
}

impl<'a> Release<'a> {
    /// `heads` are those of one release, and not empty.
    fn of(heads: &'a [Head]) -> Self {
        let revision =
            history::active(heads).and_then(|active| history::number(heads, &active.secret));
        let (name, namespace) = heads
            .first()
            .map_or(("", ""), |head| (&head.release, &head.namespace));
        Self {
            name,
            namespace,
            revision,
            revisions: heads.len(),
        }
    }

    fn row(&self) -> [String; 3] {
        let id = self.revision.map_or("none".to_owned(), |id| id.to_string());
        [self.name.to_owned(), self.namespace.to_owned(), id]
    }

    fn value(&self) -> Value {
        json!({
            "release": self.name, "namespace": self.namespace,
            "revision": self.revision, "revisions": self.revisions,
        })
    }
}

struct Row<'a> {
    id: usize,
    current: bool,
    head: &'a Head,
}

impl Row<'_> {
    fn cells(&self) -> [String; 6] {
        let head = self.head;
        let current = if self.current { " (current)" } else { "" };
        // To the second, which is what a person reads.
        let active = if head.active_at == NEVER_ACTIVE {
            "never".to_owned()
        } else {
            format!("{:.0}", head.active_at)
        };
        [
            format!("{}{current}", self.id),
            head.resources.to_string(),
            source(&head.source_url),
            head.source_checksum.clone(),
            active,
            format!("{:.0}", head.created_at),
        ]
    }

    fn value(&self) -> Value {
        let head = self.head;
        let active = (head.active_at != NEVER_ACTIVE).then(|| head.active_at.to_string());
        json!({
            "id": self.id, "current": self.current, "resources": head.resources, "flight": source(&head.source_url),
            "sha": head.source_checksum, "activeAt": active, "createdAt": head.created_at.to_string(),
        })
    }
}
