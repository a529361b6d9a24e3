//! The CRD of an Airway that is being deleted, without a schema.
//!
//! A schema that was narrowed holds back instances that were stored before: the API server refuses each write of what does not
//! fit it, that which takes their finalizers off included. While the Airway lives, its template counts, and somebody has to
//! mend the one or the other: without the schema anything could be stored, by anybody, and would stay. With the Airway all of
//! them go, so nothing is lost with the schema.

use atc_engine::release::cluster::LiveMeta;
use serde_json::Value;

use super::{AirwayError, is_owned_by, live_crd, reach};
use crate::control::Control;
use crate::crd;
use crate::kinds::Kind;

/// Takes the schema off, if an instance is held back by it. Gives the CRD as it is then, where it was changed.
pub(super) async fn loosen(
    control: &Control,
    kind: &Kind,
    airway: &Value,
) -> Result<Option<Value>, AirwayError> {
    if kind.held.unfit().is_empty() {
        return Ok(None);
    }
    let meta = LiveMeta::of(airway);
    let (name, uid) = (meta.name(), meta.uid());
    let live = live_crd(control, name).await?;
    let Some(live) = live.filter(|crd| is_owned_by(crd, uid)) else {
        return Ok(None);
    };
    let spec = crd::without_schema(&live["spec"]);
    if spec == live["spec"] {
        return Ok(None);
    }
    let what = "its CustomResourceDefinition without the schema that holds instances back";
    let definition = crd::definition(name, uid, &spec);
    let loose = reach::write(control, what, &definition, &live).await?;
    tracing::warn!(
        airway = name,
        "instances do not fit their schema and could not be let go: it is taken off the CRD that is being deleted"
    );
    Ok(Some(loose))
}
