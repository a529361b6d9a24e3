//! Edits of objects that can't be converted. Whoever edits one in a version that it can't be converted into sees nothing of what
//! it says, and would store that nothing: also without the mark, which he may take off.

use atc_engine::convert;
use atc_engine::release::cluster::{LiveMeta, Mapping};
use serde_json::Value;

use super::review::{Decision, Request};
use crate::control::Control;

/// Why an object can't be edited in the version in which it is. That is the version of the request: its stored object was
/// converted into that of the review, and may be readable in either.
///
/// Costs a read where the two differ. What is not served is judged by the mark alone.
pub(super) async fn refusal(
    control: &Control,
    mapping: Option<&Mapping>,
    request: &Request,
) -> Option<Decision> {
    if let Some(why) = convert::mark(&request.object) {
        return Some(refused(why));
    }
    let mapping = mapping.filter(|_| request.operation == "UPDATE")?;
    as_seen(control, mapping, request, &request.old_object).await
}

/// The same of the stored object alone; `stored` is how it reads in the version of the mapping.
pub(super) async fn as_seen(
    control: &Control,
    mapping: &Mapping,
    request: &Request,
    stored: &Value,
) -> Option<Decision> {
    let version = &request.written.version;
    if version.is_empty() || *version == mapping.version {
        return convert::mark(stored).map(refused);
    }
    let seen = Mapping {
        version: version.clone(),
        ..mapping.clone()
    };
    let cluster = control.engine.cluster();
    match cluster.get(&seen, &request.namespace, &request.name).await {
        Ok(Some(live)) if !LiveMeta::of(&live).is_deleting() => convert::mark(&live).map(refused),
        // The API server says so itself.
        Ok(_) => None,
        Err(error) => Some(Decision::unavailable(format!(
            "it can't be seen how it reads as {version}: {error}"
        ))),
    }
}

/// Stored like this it would lose what the other version has in fields of its own.
fn refused(why: &str) -> Decision {
    Decision::invalid(format!(
        "it can't be converted, so it can't be changed, only deleted: {why}"
    ))
}
