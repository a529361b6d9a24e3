//! The namespace of a release, made where there is none.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use atc_engine::release::cluster::{ApplyOptions, Cluster, ErrorKind};
use atc_engine::release::object::Object;
use serde_json::{Value, json};

use crate::cli::Takeoff;

/// How long a namespace may take to become active. It is so at once unless it is on its way out.
const LIMIT: Duration = Duration::from_secs(30);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// The cluster as a dry run asks it: as if the namespace that it would make were there.
pub(super) fn expected(args: &Takeoff, cluster: Cluster, name: &str) -> Cluster {
    if args.dry && args.create_namespace {
        cluster.expecting(name)
    } else {
        cluster
    }
}

/// Creates the namespace unless it is there, and waits until it is active. It carries no marks: it belongs to nobody.
pub(super) async fn ensure(cluster: &Cluster, name: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + LIMIT;
    let wanted = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let object =
        Object::try_from(wanted).with_context(|| format!("\"{name}\" can be no namespace"))?;
    let mapping = cluster.mapping(object.api_version(), object.kind()).await?;
    loop {
        let live = match cluster.get(&mapping, "", name).await? {
            Some(live) => live,
            None => match cluster.apply(&object, &ApplyOptions::default()).await {
                // Somebody else was quicker, or the one before is not quite gone.
                Err(error)
                    if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::AlreadyExists) =>
                {
                    Value::Null
                }
                applied => applied?.live,
            },
        };
        match live.pointer("/status/phase").and_then(Value::as_str) {
            Some("Active") => return Ok(()),
            phase if Instant::now() + PAUSE > deadline => {
                bail!(
                    "namespace \"{name}\" is not active within {LIMIT:?} but {}",
                    phase.unwrap_or("of no phase")
                );
            }
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
}
