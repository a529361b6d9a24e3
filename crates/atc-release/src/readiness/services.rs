//! Services: ready when a listed endpoint is ready, or when there is nothing that could be one.
//!
//! One that selects no Pods, or is a name only (ExternalName), is ready at once. One whose EndpointSlice exists without a
//! ready endpoint is ready if its selector matches no Pod at all: a workload scaled to 0.

use atc_api::ResourceRef;
use serde_json::Value;

use super::{Found, Judgement, Related, Verdict, Which};

const SLICE: (&str, &str) = ("discovery.k8s.io/v1", "EndpointSlice");
const POD: (&str, &str) = ("v1", "Pod");
/// Pods that may become an endpoint: not those of Jobs that have ended.
const LIVING: &str = "status.phase!=Succeeded,status.phase!=Failed";
/// What is said of a Service that is there as far as it can be without its Pods.
pub(super) const NO_ENDPOINT: &str = "none of its endpoints is ready";

/// The EndpointSlices of a Service that has any.
pub(super) fn slices(live: &Value) -> Option<Related> {
    selector(live)?;
    let name = live["metadata"]["name"].as_str()?;
    Some(asked(
        live,
        SLICE,
        format!("kubernetes.io/service-name={name}"),
        None,
    ))
}

/// One Pod of the Service, where its EndpointSlices list no ready endpoint.
pub(super) fn pods(live: &Value, found: &[Found]) -> Option<Related> {
    let slices = objects(found, SLICE)?;
    if slices.is_empty() || slices.iter().any(has_ready_endpoint) {
        return None;
    }
    Some(asked(live, POD, selector(live)?, Some(1)))
}

pub(super) fn judge(live: &Value, found: &[Found]) -> Judgement {
    if selector(live).is_none() {
        return Verdict::Ready.into();
    }
    let slices = objects(found, SLICE).unwrap_or_default();
    let depends_on = slices.iter().filter_map(reference).collect();
    let (verdict, look_again) = if slices.is_empty() {
        (
            Verdict::InProgress("it has no EndpointSlice yet".to_owned()),
            true,
        )
    } else if slices.iter().any(has_ready_endpoint)
        || objects(found, POD).is_some_and(<[Value]>::is_empty)
    {
        (Verdict::Ready, false)
    } else {
        (Verdict::InProgress(NO_ENDPOINT.to_owned()), true)
    };
    Judgement {
        verdict,
        depends_on,
        look_again,
    }
}

fn asked(
    live: &Value,
    of: (&'static str, &'static str),
    selector: String,
    limit: Option<u32>,
) -> Related {
    let namespace = live["metadata"]["namespace"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    Related {
        api_version: of.0,
        kind: of.1,
        namespace,
        which: Which::Labelled {
            selector,
            fields: (of == POD).then_some(LIVING),
            limit,
        },
    }
}

fn objects<'a>(found: &'a [Found], of: (&str, &str)) -> Option<&'a [Value]> {
    let found = found
        .iter()
        .find(|found| (found.related.api_version, found.related.kind) == of)?;
    Some(&found.objects)
}

/// The Service's selector as a query parameter; `None` if it selects nothing.
fn selector(live: &Value) -> Option<String> {
    let spec = &live["spec"];
    if spec["type"] == "ExternalName" {
        return None;
    }
    let labels = spec["selector"]
        .as_object()
        .filter(|labels| !labels.is_empty())?;
    let pairs = labels
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    Some(pairs.collect::<Vec<_>>().join(","))
}

/// An endpoint that says nothing counts as ready, as the API has it.
fn has_ready_endpoint(slice: &Value) -> bool {
    let endpoints = slice["endpoints"].as_array();
    endpoints
        .into_iter()
        .flatten()
        .any(|endpoint| endpoint["conditions"]["ready"] != false)
}

fn reference(slice: &Value) -> Option<ResourceRef> {
    let metadata = &slice["metadata"];
    let namespace = metadata["namespace"].as_str()?;
    Some(ResourceRef::new(
        namespace,
        "discovery.k8s.io",
        "EndpointSlice",
        metadata["name"].as_str()?,
    ))
}
