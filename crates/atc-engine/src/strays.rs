//! What an instance made outside of its namespace, when that is deleted while nobody is there: the namespace takes the
//! record with it, and the instance waits for its finalizer. Objects inside go with the namespace; those without one are
//! found by their marks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use atc_api::names;
use atc_release::cluster::{ClusterError, ErrorKind, LiveMeta, Mapping};
use atc_release::object::{Object, Stages};
use atc_release::ownership::Owner;
use serde_json::json;
use tokio::sync::Mutex;

use crate::engine::Engine;
use crate::error::EngineError;

/// One look serves all instances that are removed within this time: a namespace may hold hundreds, and a look is a list
/// of every kind without a namespace. What it misses was made after it, by ourselves, and so is remembered.
const LIFE: Duration = Duration::from_secs(10);

type Found = Arc<Vec<(Mapping, LiveMeta, Owner)>>;

/// What was found last.
#[derive(Default)]
pub(crate) struct Strays(Mutex<Option<(Instant, Found)>>);

impl Strays {
    async fn look(&self, engine: &Engine) -> Result<Found, ClusterError> {
        let mut last = self.0.lock().await;
        if let Some((at, found)) = &*last
            && at.elapsed() < LIFE
        {
            return Ok(found.clone());
        }
        let cluster = engine.cluster();
        let found = cluster.owned_cluster_objects(names::MANAGED_BY_ATC).await?;
        let found = Arc::new(found);
        *last = Some((Instant::now(), found.clone()));
        Ok(found)
    }
}

impl Engine {
    /// What bears the marks of a release and lies in no namespace, if the namespace of its record is on its way out.
    pub(crate) async fn strays(&self, us: &Owner) -> Result<Stages, EngineError> {
        match self.cluster().is_leaving(&us.namespace).await {
            Ok(true) => {}
            Ok(false) => return Ok(Stages::default()),
            // Whoever may not know this lets instances go all the same.
            Err(error) if error.kind() == ErrorKind::Forbidden => return Ok(Stages::default()),
            Err(error) => return Err(EngineError::cluster(error)),
        }
        let found = self.found_strays().look(self).await;
        let ours = found.map_err(EngineError::cluster)?;
        let ours = ours.iter().filter(|(_, _, owner)| owner == us);
        let objects = ours.filter_map(|(kind, live, _)| {
            let name = json!({ "name": live.name() });
            let object =
                json!({ "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": name });
            Object::try_from(object).ok()
        });
        Ok(Stages::new(vec![objects.collect()]))
    }
}
