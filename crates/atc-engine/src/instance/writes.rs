//! The writes to the instance itself: finalizers with owners, and the status. Each goes onto the newest state.

use atc_release::cluster::{ErrorKind, LiveMeta, MetadataEdit};
use serde_json::Value;

use super::{InstanceMemory, InstanceReport, InstanceSettings};
use crate::disposition::Disposition;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::status::{self, Ours, Ready};

/// How often a write is tried again on a newer state before it is left to the next evaluation.
const STALE_TRIES: usize = 5;

impl Engine {
    /// Edits finalizers and owners, on the newest state when ours is old. Without an object: nothing was to be changed, or
    /// it is gone or another one; what was seen of it last tells which.
    pub(super) async fn edit(
        &self,
        settings: &InstanceSettings,
        object: &Value,
        edit: &MetadataEdit,
    ) -> Result<(Option<Value>, LiveMeta), EngineError> {
        let mut live = LiveMeta::of(object);
        let mut tries = 1;
        loop {
            match self
                .cluster()
                .edit_metadata(&settings.mapping, &live, edit)
                .await
            {
                Err(error) if error.kind() == ErrorKind::Stale && tries < STALE_TRIES => {
                    tries += 1;
                    let now = self
                        .cluster()
                        .metadata(&settings.mapping, live.namespace(), live.name())
                        .await;
                    match now.map_err(EngineError::cluster)? {
                        Some(now) if now.uid() == live.uid() => live = now,
                        _ => return Ok((None, live)),
                    }
                }
                other => return Ok((other.map_err(EngineError::cluster)?, live)),
            }
        }
    }

    /// Status last, once, and only when it says something else than what is stored. One that others keep from being written is
    /// left to another evaluation.
    pub(super) async fn write_status(
        &self,
        settings: &InstanceSettings,
        object: &mut Value,
        memory: &mut InstanceMemory,
        report: &mut InstanceReport,
    ) -> Result<(), EngineError> {
        let mut refused = false;
        for _ in 0..STALE_TRIES {
            let live = LiveMeta::of(object);
            let stored = object.get("status").cloned().unwrap_or(Value::Null);
            let generation = live.generation().unwrap_or(0);
            let now = status::now();
            let printed = if live.is_deleting() || refused {
                None
            } else {
                memory.printed.as_ref()
            };
            let ours = |status: &Value| Some(Ours::of(status, printed));
            let Some(next) = status::next(&stored, printed, &report.ready, generation, &now) else {
                report.ours = ours(&stored);
                return Ok(());
            };
            if let Some((sent, made)) = &memory.pruned_status
                && status::alike(sent, &next)
                && *made == stored
            {
                report.ours = ours(&stored);
                return Ok(());
            }
            let mapping = &settings.mapping;
            let written = self
                .cluster()
                .replace_status(
                    mapping,
                    live.namespace(),
                    live.name(),
                    &next,
                    live.resource_version(),
                )
                .await;
            match written {
                Ok(answer) => {
                    let made = answer.get("status").cloned().unwrap_or(Value::Null);
                    report.ours = ours(&made);
                    memory.pruned_status = (made != next).then_some((next, made));
                    report.stored = Some(answer);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Stale => {
                    let now = self
                        .cluster()
                        .get(mapping, live.namespace(), live.name())
                        .await;
                    match now.map_err(EngineError::cluster)? {
                        // A newer generation is evaluated next; what we know is about an older one.
                        Some(now) if LiveMeta::of(&now).uid() == live.uid() => {
                            if LiveMeta::of(&now).generation() != live.generation() {
                                return Ok(());
                            }
                            *object = now;
                        }
                        _ => return Ok(()),
                    }
                }
                // What the flight printed does not fit: said in a status of our own.
                Err(error) if error.kind() == ErrorKind::Invalid && printed.is_some() => {
                    refused = true;
                    let words = format!("the status that the flight printed is refused: {error}");
                    report.ready = Ready::error(words.clone());
                    report.disposition = Disposition::Terminal;
                    report.failure.get_or_insert(words);
                }
                Err(error) => return Err(EngineError::cluster(error)),
            }
        }
        // Nothing else would come back for it: whoever writes there all the time says nothing new.
        report.disposition = Disposition::Retry;
        report.failure.get_or_insert_with(|| {
            format!(
                "its status could not be written: others changed it {STALE_TRIES} times meanwhile"
            )
        });
        Ok(())
    }
}
