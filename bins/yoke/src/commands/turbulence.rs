//! `yoke turbulence`: how the cluster differs from what the active revision of a release records, and bringing it back.

use anyhow::bail;
use atc_engine::release::cluster::Standing;
use atc_engine::release::drift::{self, Scope};
use atc_engine::{DriftReport, Drifted, Engine, EngineError, EngineOptions, RepairReport};
use serde_json::{Map, Value, json};

use crate::cli::{Global, Turbulence};
use crate::connect::{self, Need};
use crate::{output, render};

/// Shows it, or mends it.
pub(crate) async fn run(global: &Global, args: &Turbulence) -> anyhow::Result<()> {
    super::check_release(&args.release)?;
    if args.fix && args.output.is_some() {
        bail!("-output lists what is not as recorded, and with -fix that is mended instead");
    }
    let connection = connect::connect(global, args.namespace.as_deref(), Need::Cluster).await?;
    let namespace = connection.namespace;
    let engine = Engine::new(connection.cluster, EngineOptions::default())?;
    let release = super::named(&args.release, &namespace);
    if args.fix {
        let Some(report) = engine.repair(&args.release, &namespace).await? else {
            bail!("{release} does not exist");
        };
        return tell(&release, &report);
    }
    let scope = match args.conflict_only {
        Some(false) => Scope::Everything,
        _ => Scope::Recorded,
    };
    let Some(report) = engine.drift(&args.release, &namespace, scope).await? else {
        bail!("{release} does not exist");
    };
    say(&release, &report);
    if let Some(data) = args.output {
        let list = report.drifted.iter().map(entry).collect();
        return output::write_data(&Value::Array(list), data).await;
    }
    let options = super::diff_options(&args.diffs, "expected", "actual");
    let (expected, actual) = sides(&report.drifted);
    output::write(drift::diff_values(&expected, &actual, &options)?).await
}

/// Says what stands behind the differences, or that there are none.
fn say(release: &str, report: &DriftReport) {
    if let Some(first) = report.unasked.first() {
        render::warning(format!(
            "{} compared field by field, since the API server gives no dry run: {first}",
            super::counted(report.unasked.len()),
        ));
    }
    if report.drifted.is_empty() {
        render::warning(format!(
            "{release} is as recorded: {}, no differences",
            super::counted(report.objects)
        ));
        return;
    }
    let list: Vec<String> = report.drifted.iter().map(words).collect();
    render::message(format!(
        "{release}: {} of {} not as recorded:",
        list.len(),
        super::counted(report.objects)
    ));
    render::list(&list);
}

/// Says what was mended, and what was not.
fn tell(release: &str, report: &RepairReport) -> anyhow::Result<()> {
    if !report.repaired.is_empty() {
        render::message(format!(
            "{release}: {} brought back:",
            super::counted(report.repaired.len())
        ));
        let list = report.repaired.iter().map(|repaired| {
            let how = if repaired.was_missing {
                "made again"
            } else {
                "applied again"
            };
            format!("{}: {how}", repaired.object.canonical())
        });
        render::list(&list.collect::<Vec<_>>());
    }
    if !report.left.is_empty() {
        render::warning(format!(
            "{release}: {} left alone:",
            super::counted(report.left.len())
        ));
        render::list(&report.left.iter().map(words).collect::<Vec<_>>());
    }
    if report.failures.is_empty() {
        if report.repaired.is_empty() && report.left.is_empty() {
            render::warning(format!(
                "{release} is as recorded: {}, nothing to bring back",
                super::counted(report.objects)
            ));
        }
        return Ok(());
    }
    Err(EngineError::Refused {
        step: "repair",
        failures: report.failures.clone(),
    }
    .into())
}

/// One object and how it stands.
fn words(drifted: &Drifted) -> String {
    let name = drifted.object.canonical();
    match &drifted.standing {
        Standing::AsRecorded => format!("{name}: as recorded"),
        Standing::Differs(_) => format!("{name}: differs"),
        Standing::Missing => format!("{name}: missing"),
        Standing::Going => format!("{name}: is being deleted, finalizers hold it"),
        Standing::Taken(owner) => format!("{name}: belongs to release \"{owner}\" by now"),
        Standing::Foreign => {
            format!("{name}: is another object of that name, which belongs to no release")
        }
        Standing::Unserved => format!(
            "{name}: the API server no longer serves \"{}\"",
            drifted.object.api_version()
        ),
    }
}

/// Expected and actual, as maps from canonical names to `object` and the object. What is not ours to compare is in
/// neither; what is missing is expected alone.
fn sides(drifted: &[Drifted]) -> (Value, Value) {
    let (mut expected, mut actual) = (Map::new(), Map::new());
    for drifted in drifted {
        let name = drifted.object.canonical();
        let (one, two) = states(drifted);
        for (side, state) in [(&mut expected, one), (&mut actual, two)] {
            if !state.is_null() {
                side.insert(name.clone(), json!({ "object": state }));
            }
        }
    }
    let sorted = |side| drift::sorted(Value::Object(side));
    (sorted(expected), sorted(actual))
}

/// Both states of an object, without what Secrets hold; null for one that is not there or not compared.
fn states(drifted: &Drifted) -> (Value, Value) {
    let (mut one, mut two) = match &drifted.standing {
        Standing::Differs(difference) => (difference.expected.clone(), difference.actual.clone()),
        Standing::Missing => (drifted.object.value().clone(), Value::Null),
        _ => (Value::Null, Value::Null),
    };
    drift::hide(&mut one, &mut two);
    (one, two)
}

/// An object for programs.
fn entry(drifted: &Drifted) -> Value {
    let state = match &drifted.standing {
        Standing::AsRecorded => "asRecorded",
        Standing::Differs(_) => "differs",
        Standing::Missing => "missing",
        Standing::Going => "beingDeleted",
        Standing::Taken(_) => "takenOver",
        Standing::Foreign => "foreign",
        Standing::Unserved => "unserved",
    };
    let mut entry = json!({ "name": drifted.object.canonical(), "state": state });
    if let Standing::Taken(owner) = &drifted.standing {
        entry["owner"] = owner.to_string().into();
    }
    let (expected, actual) = states(drifted);
    for (side, state) in [("expected", expected), ("actual", actual)] {
        if !state.is_null() {
            entry[side] = state;
        }
    }
    entry
}

#[cfg(test)]
mod tests {
    use atc_engine::release::drift::by_fields;
    use atc_engine::release::object::Object;
    use atc_engine::release::ownership::Owner;

    use super::*;

    fn drifted(kind: &str, name: &str, standing: impl FnOnce(&Value) -> Standing) -> Drifted {
        let value = json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name, "namespace": "n" }, "data": { "k": "hunter2" } });
        let standing = standing(&value);
        let object = Object::try_from(value).expect("object");
        Drifted { object, standing }
    }

    fn changed(recorded: &Value) -> Standing {
        let mut live = recorded.clone();
        live["data"]["k"] = "hunter3".into();
        let difference = by_fields(recorded, live, Scope::Recorded).expect("differs");
        Standing::Differs(Box::new(difference))
    }

    #[test]
    fn what_is_shown_of_each() {
        let all = [
            drifted("ConfigMap", "changed", changed),
            drifted("ConfigMap", "gone", |_| Standing::Missing),
            drifted("ConfigMap", "theirs", |_| {
                Standing::Taken(Owner::new("n", "other"))
            }),
            drifted("Secret", "s", changed),
            drifted("Secret", "t", |_| Standing::Missing),
        ];
        let (expected, actual) = sides(&all);
        let text =
            drift::diff_values(&expected, &actual, &drift::DiffOptions::default()).expect("text");
        assert!(
            text.contains("-      k: hunter2\n+      k: hunter3\n"),
            "{text}"
        );
        assert!(text.contains("-n/core/v1/configmap/gone:\n"), "{text}");
        assert!(!text.contains("theirs"), "{text}");
        assert!(
            text.contains("-      k: (hidden)\n+      k: (hidden, differs)\n"),
            "{text}"
        );
        let list: Vec<Value> = all.iter().map(entry).collect();
        assert_eq!(list[0]["actual"]["data"]["k"], "hunter3");
        assert_eq!(
            list[2],
            json!({ "name": "n/core/v1/configmap/theirs", "state": "takenOver", "owner": "n/other" })
        );
        let secrets = format!("{}{}{:?}", list[3], list[4], all);
        assert!(!secrets.contains("hunter"), "{secrets}");
        assert!(words(&all[2]).contains("release \"n/other\""));
    }
}
