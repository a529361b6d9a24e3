//! Our own CRDs while we run: put back when somebody deletes one. What others change in them is left until the next start,
//! so that two versions of us never fight over them.

use atc_engine::release::cluster::ApplyOptions;
use atc_engine::release::object::Object;
use atc_engine::watch::{Fingerprint, Seen};
use serde_json::json;

use crate::airway::crd_mapping;
use crate::bootstrap;
use crate::control::Control;
use crate::hooks::{Brought, HookError, tracked};

/// Sees to it that they are there.
pub(crate) async fn stand(control: &Control) -> Result<Vec<Brought>, HookError> {
    let (cluster, mapping) = (control.engine.cluster(), crd_mapping());
    let options = ApplyOptions {
        force: true,
        ..ApplyOptions::default()
    };
    let mut all = Vec::new();
    for value in bootstrap::crds().map_err(HookError::Json)? {
        let object = Object::try_from(value).map_err(HookError::Object)?;
        let refused = |source| HookError::Crd {
            name: object.name().to_owned(),
            source,
        };
        let live = cluster.metadata(&mapping, "", object.name()).await;
        let live = live.map_err(refused)?;
        let written = live.is_none();
        let seen = if let Some(live) = live {
            Fingerprint::of(&json!({ "metadata": live.value() }))
        } else {
            let applied = cluster.apply(&object, &options).await.map_err(refused)?;
            tracing::warn!(name = object.name(), "put a CRD of ours back");
            Fingerprint::of(&applied.live)
        };
        all.push(Brought {
            seen: tracked(&mapping, object.name(), Seen::Present(seen)),
            again: None,
            written,
        });
    }
    Ok(all)
}
