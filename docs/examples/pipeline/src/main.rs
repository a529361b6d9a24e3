//! Jobs one after another: each begins when the one before it has completed.
//!
//! Nothing here waits. The flight prints the Jobs that should exist by now; it has looked at them, so it runs again when
//! one of them changes.

use std::process::ExitCode;

use serde::Deserialize;
use yoke_sdk::{Object, Output, Resource, Result, Value, json, lookup};

#[derive(Deserialize)]
struct Pipeline {
    steps: Vec<Step>,
    #[serde(default)]
    retries: u32,
}

#[derive(Deserialize)]
struct Step {
    name: String,
    image: String,
    #[serde(default)]
    command: Vec<String>,
}

/// What is asked of a Job.
#[derive(Deserialize)]
struct Job {
    #[serde(default)]
    status: JobStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JobStatus {
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    r#type: String,
    status: String,
    #[serde(default)]
    message: String,
}

impl Resource for Job {
    const API_VERSION: &'static str = "batch/v1";
    const KIND: &'static str = "Job";
}

impl Job {
    fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status
            .conditions
            .iter()
            .find(|one| one.r#type == kind && one.status == "True")
    }
}

fn main() -> ExitCode {
    yoke_sdk::run(flight)
}

fn flight(pipeline: &Object<Pipeline>) -> Result<Output> {
    let mut output = Output::new();
    let count = pipeline.spec.steps.len();
    let mut msg = format!("all {count} Jobs have completed");
    for (nth, step) in (1..).zip(&pipeline.spec.steps) {
        let name = format!("{}-{}", pipeline.metadata.name, step.name);
        output.push(job(pipeline, step, &name))?;
        let live: Option<Job> = lookup(&pipeline.metadata.namespace, &name)?;
        let condition = |kind| live.as_ref().and_then(|job| job.condition(kind));
        if let Some(failed) = condition("Failed") {
            msg = format!(
                "Job {name} has failed ({nth} of {count}): {}",
                failed.message
            );
            break;
        }
        if condition("Complete").is_none() {
            msg = format!("waiting for Job {name} ({nth} of {count})");
            break;
        }
    }
    output.push(pipeline.with_status(json!({ "msg": msg })))?;
    Ok(output)
}

fn job(pipeline: &Object<Pipeline>, step: &Step, name: &str) -> Value {
    let labels =
        json!({ "example.dev/pipeline": pipeline.metadata.name, "example.dev/step": step.name });
    let mut container = json!({ "name": "step", "image": step.image });
    if !step.command.is_empty() {
        container["command"] = json!(step.command);
    }
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": name, "namespace": pipeline.metadata.namespace, "labels": labels },
        "spec": {
            "backoffLimit": pipeline.spec.retries,
            "template": {
                "metadata": { "labels": labels },
                "spec": { "restartPolicy": "Never", "containers": [container] },
            },
        },
    })
}
