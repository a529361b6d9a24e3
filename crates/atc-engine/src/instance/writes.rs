//! The writes to the instance itself: finalizers with owners, and the status. Each goes onto the newest state.

use atc_release::cluster::{ErrorKind, LiveMeta, MetadataEdit};
use serde_json::Value;

use super::{InstanceMemory, InstanceReport, InstanceSettings};
use crate::clock;
use crate::disposition::Disposition;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::status::{self, Ours, Ready};

/// The largest status that a flight may print, as JSON in bytes: 1 MiB. The API server's store takes 1.5 MiB for the whole
/// object, and is not asked to take what can't fit.
const STATUS_MAX: usize = 1 << 20;

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
        let printed = memory.printed.as_ref();
        let unfit =
            printed.and_then(|printed| status::misfit(printed).or_else(|| too_large(printed)));
        if let Some(words) = unfit
            && !LiveMeta::of(object).is_deleting()
        {
            refused = true;
            // What has failed since is said instead.
            if memory.failure.is_none() {
                refuse(report, &words);
            }
        }
        for _ in 0..STALE_TRIES {
            let live = LiveMeta::of(object);
            let stored = object.get("status").cloned().unwrap_or(Value::Null);
            let generation = live.generation().unwrap_or(0);
            let now = clock::now();
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
                Err(error)
                    if matches!(error.kind(), ErrorKind::Invalid | ErrorKind::TooLarge)
                        && printed.is_some() =>
                {
                    refused = true;
                    refuse(report, &error.to_string());
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

/// What is wrong with the size of a status that was printed.
fn too_large(printed: &Value) -> Option<String> {
    let size = serde_json::to_vec(printed).map_or(0, |json| json.len());
    (size > STATUS_MAX).then(|| format!("it has {size} bytes, and {STATUS_MAX} is the most"))
}

/// Only another output mends what is wrong with a status that was printed.
fn refuse(report: &mut InstanceReport, why: &str) {
    let words = format!("the status that the flight printed is refused: {why}");
    report.ready = Ready::error(words.clone());
    if report.disposition == Disposition::Wait {
        report.disposition = Disposition::Terminal;
    }
    report.failure.get_or_insert(words);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_is_measured_as_it_is_sent() {
        let of = |length: usize| json!({ "text": "x".repeat(length) });
        let frame = serde_json::to_vec(&of(0)).map_or(0, |json| json.len());
        assert_eq!(too_large(&of(STATUS_MAX - frame)), None);
        let words = too_large(&of(STATUS_MAX - frame + 1)).unwrap_or_default();
        assert_eq!(words, "it has 1048577 bytes, and 1048576 is the most");
        // A quote is two bytes there.
        assert!(too_large(&json!("\"".repeat(STATUS_MAX / 2 + 1))).is_some());
    }
}
