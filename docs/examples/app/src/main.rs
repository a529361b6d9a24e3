//! An application with a database that somebody else provides.
//!
//! The flight asks for the database with a custom resource. Its provider answers with a Secret; until that is there the
//! flight says that it waits, and is not ready; when it is there the application is deployed with the connection in it.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::Deserialize;
use yoke_sdk::{Metadata, Object, Output, Resource, Result, Value, json, lookup};

#[derive(Deserialize)]
struct App {
    image: String,
    #[serde(default = "one")]
    replicas: u32,
}

fn one() -> u32 {
    1
}

/// What is asked of the connection Secret: whether a key is there, never what it holds.
#[derive(Deserialize)]
struct Secret {
    metadata: Metadata,
    #[serde(default)]
    data: BTreeMap<String, Value>,
}

impl Resource for Secret {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Secret";
}

/// The key of the Secret that holds the connection.
const KEY: &str = "url";

fn main() -> ExitCode {
    yoke_sdk::run(flight)
}

fn flight(app: &Object<App>) -> Result<Output> {
    let mut output = Output::new();
    output.push(database(app))?;

    let name = format!("{}-db", app.metadata.name);
    // All that is printed while it waits is the Database, which may be ready by then. The App is not.
    let waiting =
        |msg: String| json!({ "conditions": [app.not_ready("Waiting", &msg)], "msg": msg });
    let status = match lookup::<Secret>(&app.metadata.namespace, &name)? {
        None => waiting(format!(
            "waiting for Secret {name} with the connection of Database {}",
            app.metadata.name
        )),
        Some(secret) if !secret.data.contains_key(KEY) => {
            waiting(format!("waiting for key {KEY} in Secret {name}"))
        }
        Some(secret) => {
            output.push(deployment(app, &secret))?;
            json!({ "msg": format!("deployed with the connection in Secret {name}") })
        }
    };
    output.push(app.with_status(status))?;
    Ok(output)
}

fn database(app: &Object<App>) -> Value {
    json!({
        "apiVersion": "db.example.dev/v1",
        "kind": "Database",
        "metadata": { "name": app.metadata.name, "namespace": app.metadata.namespace },
        "spec": { "engine": "postgres", "connectionSecret": format!("{}-db", app.metadata.name) },
    })
}

fn deployment(app: &Object<App>, connection: &Secret) -> Value {
    let labels = json!({ "app": app.metadata.name });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": app.metadata.name, "namespace": app.metadata.namespace },
        "spec": {
            "replicas": app.spec.replicas,
            "selector": { "matchLabels": labels },
            "template": {
                // Another Secret (an old one deleted, a new one made) means other pods: variables are read at their start.
                "metadata": { "labels": labels, "annotations": { "example.dev/connection": connection.metadata.uid } },
                "spec": {
                    "containers": [{
                        "name": "app",
                        "image": app.spec.image,
                        "env": [{
                            "name": "DATABASE_URL",
                            "valueFrom": { "secretKeyRef": { "name": connection.metadata.name, "key": KEY } },
                        }],
                    }],
                },
            },
        },
    })
}
