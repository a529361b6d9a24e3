//! The review of a write to an instance's `scale`: the instance with that many replicas is judged like any edit of it.

use atc_engine::release::cluster::LiveMeta;
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use super::review::{Decision, Request, Resource};
use super::time::Time;
use super::{instance, unconverted};
use crate::bootstrap::INSTANCE_TIMEOUT;
use crate::control::Control;

/// Whether an instance may be scaled.
pub(crate) async fn decide(control: &Control, airway: &str, request: &Request) -> Decision {
    let time = Time::of(INSTANCE_TIMEOUT, Instant::now());
    match timeout_at(time.deadline, edit(control, airway, request)).await {
        Ok(Ok(edit)) => instance::decide_within(control, airway, &edit, time).await,
        Ok(Err(decision)) => decision,
        Err(_) => instance::over(time),
    }
}

/// The edit of the instance that its scaling is, or what is decided without a look at it.
async fn edit(control: &Control, airway: &str, request: &Request) -> Result<Request, Decision> {
    let setup = control.kinds.get(airway).and_then(|kind| kind.setup());
    let Some(setup) = setup else {
        return Err(instance::not_served(airway));
    };
    let (mapping, cluster) = (&setup.settings.mapping, control.engine.cluster());
    let live = match cluster
        .get(mapping, &request.namespace, &request.name)
        .await
    {
        Ok(Some(live)) if LiveMeta::of(&live).is_deleting() => return Err(Decision::Allow),
        Ok(Some(live)) => live,
        // The API server says so itself.
        Ok(None) => return Err(Decision::Allow),
        Err(error) => {
            let words = format!("the instance to scale can't be read: {error}");
            return Err(Decision::unavailable(words));
        }
    };
    if let Some(refusal) = unconverted::as_seen(control, mapping, request, &live).await {
        return Err(refusal);
    }
    if setup.skip_admission {
        return Err(Decision::Allow);
    }
    // The object is in the stored version, and so is what the flight gets, whichever version is scaled.
    let version = &mapping.version;
    let Some(path) = setup.scales.get(version) else {
        return Err(Decision::invalid(format!(
            "it can't be scaled: version \"{version}\", which is stored, says nothing of replicas, so the change can't be reviewed; edit the object instead"
        )));
    };
    // A Scale of no replicas says nothing of them.
    let replicas = match &request.object["spec"]["replicas"] {
        Value::Null => 0.into(),
        replicas => replicas.clone(),
    };
    let mut object = live.clone();
    if !set(&mut object, path, replicas) {
        return Err(Decision::invalid(format!(
            "the instance can't be scaled: \"{path}\" leads through something that is no object"
        )));
    }
    Ok(Request {
        uid: request.uid.clone(),
        operation: "UPDATE".into(),
        object,
        old_object: live,
        namespace: request.namespace.clone(),
        name: request.name.clone(),
        resource: Resource::default(),
        written: request.written.clone(),
        sub_resource: String::new(),
        options: Value::Null,
        dry_run: request.dry_run,
        user_info: request.user_info.clone(),
    })
}

/// Sets what a path like `.spec.replicas` leads to; what is missing on the way is made, as the API server does. False: the
/// way leads through something that is no object.
fn set(object: &mut Value, path: &str, value: Value) -> bool {
    let mut place = object;
    for key in path.split('.').filter(|key| !key.is_empty()) {
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        let Some(fields) = place.as_object_mut() else {
            return false;
        };
        place = fields.entry(key).or_insert(Value::Null);
    }
    *place = value;
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replicas_are_put_where_the_path_leads() {
        let check = |before: Value, path: &str, expect: Option<Value>| {
            let mut object = before.clone();
            let done = set(&mut object, path, 3.into());
            assert_eq!(done.then_some(object), expect, "{before} {path}");
        };
        let path = ".spec.replicas";
        let (three, note) = (
            json!({ "spec": { "replicas": 3 } }),
            json!({ "spec": { "note": "n" } }),
        );
        check(
            json!({ "spec": { "replicas": 1 } }),
            path,
            Some(three.clone()),
        );
        check(json!({}), path, Some(three));
        check(
            note,
            path,
            Some(json!({ "spec": { "note": "n", "replicas": 3 } })),
        );
        check(
            json!({ "spec": null }),
            ".spec.a.b",
            Some(json!({ "spec": { "a": { "b": 3 } } })),
        );
        check(json!({ "spec": [] }), path, None);
        check(json!({ "spec": "text" }), path, None);
    }
}
