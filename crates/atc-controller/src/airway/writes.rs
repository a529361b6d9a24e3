//! Writes onto an Airway itself: its finalizer, its status. Others write it, too; ours go onto its newest state.

use atc_api::names;
use atc_engine::clock;
use atc_engine::release::cluster::{ClusterError, ErrorKind, LiveMeta, MetadataEdit};
use atc_engine::status::{self, Ready};
use serde_json::Value;

use super::{AirwayError, mapping};
use crate::control::Control;

/// Writes on a newer state of the Airway, all tries: 5, as for instances. Then it is tried again as after any failure.
const STALE_TRIES: usize = 5;

/// Sees to it that the Airway is not gone before what it made is. `object` is as it is stored then, unless it says something
/// else by then: the watch tells that.
pub(super) async fn hold(control: &Control, object: &mut Value) -> Result<(), AirwayError> {
    let edit = MetadataEdit {
        add_finalizer: Some(names::FINALIZER_AIRWAY.into()),
        ..MetadataEdit::default()
    };
    let refused = |source| AirwayError::Cluster {
        what: "its finalizer",
        source,
    };
    let cluster = control.engine.cluster();
    let mut live = LiveMeta::of(object);
    let mut tries = 1;
    let stored = loop {
        match cluster.edit_metadata(&mapping(), &live, &edit).await {
            Err(error) if error.kind() == ErrorKind::Stale && tries < STALE_TRIES => {
                tries += 1;
                let now = cluster.metadata(&mapping(), "", live.name()).await;
                match now.map_err(refused)? {
                    Some(now) if now.uid() == live.uid() => live = now,
                    _ => return Ok(()),
                }
            }
            other => break other.map_err(refused)?,
        }
    };
    if let Some(stored) = stored
        && LiveMeta::of(&stored).generation() == LiveMeta::of(object).generation()
    {
        *object = stored;
    }
    Ok(())
}

/// Writes what it says of itself, if that is news.
///
/// # Errors
/// The API server refused, or others were quicker each time.
pub(super) async fn write_status(
    control: &Control,
    object: &Value,
    ready: &Ready,
) -> Result<(), ClusterError> {
    let cluster = control.engine.cluster();
    let mut object = object.clone();
    let mut tries = 1;
    loop {
        let live = LiveMeta::of(&object);
        let stored = object.get("status").cloned().unwrap_or(Value::Null);
        let now = clock::now();
        let generation = live.generation().unwrap_or(0);
        let Some(next) = status::next(&stored, None, ready, generation, &now) else {
            return Ok(());
        };
        let written = cluster
            .replace_status(&mapping(), "", live.name(), &next, live.resource_version())
            .await;
        match written {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Stale && tries < STALE_TRIES => tries += 1,
            Err(error) => return Err(error),
        }
        match cluster.get(&mapping(), "", live.name()).await? {
            // Another spec is told by the watch, and this says nothing of it.
            Some(newer)
                if LiveMeta::of(&newer).uid() == live.uid()
                    && LiveMeta::of(&newer).generation() == live.generation() =>
            {
                object = newer;
            }
            _ => return Ok(()),
        }
    }
}
