//! Ways in from outside: Ingresses, and the kinds of the Gateway API.

use serde_json::Value;

use super::conditions::{wants, words};
use super::{Found, Related, Verdict, count, generic};

/// Group of the Gateway API.
pub(super) const GATEWAYS: &str = "gateway.networking.k8s.io";
const CLASS: (&str, &str) = ("networking.k8s.io/v1", "IngressClass");

/// The class of an Ingress without an address.
pub(super) fn class(live: &Value) -> Option<Related> {
    let name = live["spec"]["ingressClassName"].as_str()?;
    (!name.is_empty() && !has_address(live)).then(|| Related::named(CLASS.0, CLASS.1, name))
}

/// Ready when it has an address, which the API says is where its traffic comes in; at once where no controller claims it:
/// it names no class, or there is no such class.
pub(super) fn ingress(live: &Value, found: &[Found]) -> Verdict {
    let claimed = found
        .iter()
        .any(|found| found.related.kind == CLASS.1 && !found.objects.is_empty());
    if has_address(live) || !claimed {
        return Verdict::Ready;
    }
    let class = live["spec"]["ingressClassName"].as_str();
    Verdict::InProgress(format!(
        "the controller of class \"{}\" has given it no address yet",
        class.unwrap_or_default()
    ))
}

fn has_address(live: &Value) -> bool {
    let addresses = live["status"]["loadBalancer"]["ingress"].as_array();
    addresses.is_some_and(|addresses| !addresses.is_empty())
}

/// By the specification of the Gateway API: a class is Accepted, a Gateway also Programmed, and each parent of a route
/// says so in a place of its own.
pub(super) fn gateways(kind: &str, live: &Value) -> Verdict {
    match kind {
        "GatewayClass" => wants(live, "Accepted"),
        "Gateway" => match wants(live, "Accepted") {
            Verdict::Ready => wants(live, "Programmed"),
            verdict => verdict,
        },
        kind if kind.ends_with("Route") => route(live),
        _ => generic::resource(live),
    }
}

/// Every parent that the route names must have accepted it, and resolved what it refers to.
fn route(live: &Value) -> Verdict {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let statuses = list(&live["status"]["parents"]);
    for wanted in list(&live["spec"]["parentRefs"]) {
        let name = wanted["name"].as_str().unwrap_or_default();
        let of: Vec<_> = statuses
            .iter()
            .filter(|status| is_same_parent(live, &wanted, &status["parentRef"]))
            .collect();
        if of.is_empty() {
            return Verdict::InProgress(format!("parent \"{name}\" says nothing about it yet"));
        }
        for (status, kind) in of
            .iter()
            .flat_map(|status| ["Accepted", "ResolvedRefs"].map(|kind| (*status, kind)))
        {
            if let Some(why) = unmet(live, status, kind) {
                return Verdict::InProgress(format!("it is not {kind} by parent \"{name}\"{why}"));
            }
        }
    }
    Verdict::Ready
}

/// Why a condition that a parent gives is not True for the present generation; `None` if it is.
fn unmet(live: &Value, status: &Value, kind: &str) -> Option<String> {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let found = conditions
        .into_iter()
        .find(|condition| condition["type"] == kind);
    let generation = count(&live["metadata"]["generation"]);
    match found {
        Some(found) if count(&found["observedGeneration"]) < generation => {
            Some(format!(": generation {generation} is not observed yet"))
        }
        Some(found) if found["status"] == "True" => None,
        Some(found) => Some(words(found)),
        None => Some(": it does not say yet".to_owned()),
    }
}

/// Whether two references name the same parent; the namespace is the route's where it is left out.
fn is_same_parent(live: &Value, one: &Value, other: &Value) -> bool {
    let home = &live["metadata"]["namespace"];
    let namespace = |parent: &'_ Value| match &parent["namespace"] {
        Value::Null => home.clone(),
        namespace => namespace.clone(),
    };
    namespace(one) == namespace(other)
        && ["name", "sectionName", "port"]
            .iter()
            .all(|field| one[field] == other[field])
}
