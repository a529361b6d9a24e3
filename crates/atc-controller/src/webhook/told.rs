//! Whether all that has the API server ask us knows a CA: by what stands in the cluster, whoever wrote it.

use atc_api::names;
use atc_engine::release::cluster::ClusterError;
use serde_json::Value;

use crate::airway::crd_mapping;
use crate::bootstrap::WebhookService;
use crate::control::Control;
use crate::{flights, hooks};

/// Whether the webhook configurations and the CRDs that we convert for name these CAs.
pub(super) async fn is_told(control: &Control, ca: &[u8]) -> Result<bool, ClusterError> {
    let (cluster, service) = (control.engine.cluster(), &control.service);
    let labels = format!("{}={}", names::LABEL_MANAGED_BY, names::MANAGED_BY_ATC);
    let hooks = cluster.list(&hooks::mapping(), None, Some(&labels)).await?;
    if hooks
        .iter()
        .any(|hook| is_unknown_to_any(service, hook, ca))
    {
        return Ok(false);
    }
    for (airway, kind) in control.kinds.all() {
        // By what the Airway says: its CRD may name us though the converter can't be had.
        let converter = &kind.airway()["spec"]["wasmUrls"]["converter"];
        let is_converted = converter.as_str().is_some_and(|url| !url.is_empty());
        if flights::is_kind(&airway) || !is_converted {
            continue;
        }
        let crd = cluster.get(&crd_mapping(), "", &airway).await?;
        let conversion = crd
            .as_ref()
            .map(|crd| &crd["spec"]["conversion"]["webhook"]);
        if conversion.is_some_and(|webhook| service.is_unknown_to(&webhook["clientConfig"], ca)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a webhook of a configuration asks us and does not know these CAs.
fn is_unknown_to_any(service: &WebhookService, hook: &Value, ca: &[u8]) -> bool {
    let webhooks = hook["webhooks"].as_array().into_iter().flatten();
    let mut configs = webhooks.map(|webhook| &webhook["clientConfig"]);
    configs.any(|config| service.is_unknown_to(config, ca))
}
