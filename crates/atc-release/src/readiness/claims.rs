//! PersistentVolumeClaims: ready when bound, or when nobody will bind them before a Pod uses them.
//!
//! By the documentation of storage classes: a class with `WaitForFirstConsumer` binds when a Pod is scheduled, which may
//! come in a later stage; a claim without a class waits for a volume that somebody makes by hand. Neither is waited for.

use serde_json::Value;

use super::{Found, Related, Verdict};

const CLASS: (&str, &str) = ("storage.k8s.io/v1", "StorageClass");
/// The provisioner of classes whose volumes are made by hand.
const BY_HAND: &str = "kubernetes.io/no-provisioner";

/// The class of a claim that is not bound.
pub(super) fn class(live: &Value) -> Option<Related> {
    let pending = !matches!(live["status"]["phase"].as_str(), Some("Bound" | "Lost"));
    let name = text(&live["spec"]["storageClassName"])?;
    (pending && text(&live["spec"]["volumeName"]).is_none())
        .then(|| Related::named(CLASS.0, CLASS.1, name))
}

pub(super) fn claim(live: &Value, found: &[Found]) -> Verdict {
    match live["status"]["phase"].as_str() {
        Some("Bound") => return Verdict::Ready,
        Some("Lost") => {
            return Verdict::Failed("the volume that it was bound to is lost".to_owned());
        }
        _ => (),
    }
    if let Some(volume) = text(&live["spec"]["volumeName"]) {
        return Verdict::InProgress(format!("it is not bound to volume \"{volume}\" yet"));
    }
    let class = found
        .iter()
        .find(|found| found.related.kind == CLASS.1)
        .and_then(|found| found.objects.first());
    match class {
        Some(class)
            if class["volumeBindingMode"] != "WaitForFirstConsumer"
                && class["provisioner"] != BY_HAND =>
        {
            let name = text(&class["metadata"]["name"]).unwrap_or_default();
            Verdict::InProgress(format!(
                "it has no volume yet, which storage class \"{name}\" makes at once"
            ))
        }
        _ => Verdict::Ready,
    }
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}
