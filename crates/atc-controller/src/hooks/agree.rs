//! Does a live webhook configuration say what it should: word for word, or enough to be of use to anybody.

use serde_json::Value;

/// Whether it says what is wanted: every field that is wanted, nothing in what is wanted to be empty, no further webhook.
/// What we do not name (labels of others, fields of later Kubernetes versions) is nobody's fault.
pub(super) fn agrees(live: &Value, wanted: &Value) -> bool {
    ["/webhooks", "/metadata/labels", "/metadata/ownerReferences"]
        .into_iter()
        .all(|path| match (live.pointer(path), wanted.pointer(path)) {
            (_, None) => true,
            (live, Some(wanted)) => live.is_some_and(|live| matches(live, wanted)),
        })
}

/// Whether a part says what is wanted of it.
pub(super) fn matches(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            (!wanted.is_empty() || live.is_empty())
                && wanted
                    .iter()
                    .all(|(key, wanted)| live.get(key).is_some_and(|live| matches(live, wanted)))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len()
                && live
                    .iter()
                    .zip(wanted)
                    .all(|(live, wanted)| matches(live, wanted))
        }
        (live, wanted) => live == wanted,
    }
}

/// Whether it does what any version of ours would want of it: it fails closed, its owner is that of now, and it asks for
/// reviews of everything that ours would.
pub(super) fn does(live: &Value, wanted: &Value) -> bool {
    let list = |value: &Value, path: &str| value.pointer(path).and_then(Value::as_array).cloned();
    let owners = list(wanted, "/metadata/ownerReferences").unwrap_or_default();
    let live_owners = list(live, "/metadata/ownerReferences").unwrap_or_default();
    let owned = owners
        .iter()
        .all(|owner| live_owners.iter().any(|live| live["uid"] == owner["uid"]));
    let live_hooks = list(live, "/webhooks").unwrap_or_default();
    let hooks = list(wanted, "/webhooks").unwrap_or_default();
    owned
        && hooks.iter().all(|wanted| {
            let named = |live: &&Value| live["name"] == wanted["name"];
            live_hooks.iter().find(named).is_some_and(|live| {
                live["failurePolicy"] == wanted["failurePolicy"] && asks_for(live, wanted)
            })
        })
}

/// Whether each wanted rule is within one that there is. A rule for a subresource may be lacking: not every version of
/// ours asks for those.
fn asks_for(live: &Value, wanted: &Value) -> bool {
    let rules = |hook: &Value| hook["rules"].as_array().cloned().unwrap_or_default();
    let live = rules(live);
    let is_sub = |rule: &Value| {
        rule["resources"][0]
            .as_str()
            .is_some_and(|name| name.contains('/'))
    };
    let within = |wanted: &Value, live: &Value| {
        ["apiGroups", "apiVersions", "operations", "resources"]
            .into_iter()
            .all(|field| {
                let all = wanted[field]
                    .as_array()
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                let there = live[field]
                    .as_array()
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                all.iter().all(|one| there.contains(one))
            })
    };
    rules(wanted)
        .iter()
        .filter(|rule| !is_sub(rule))
        .all(|rule| live.iter().any(|live| within(rule, live)))
}
