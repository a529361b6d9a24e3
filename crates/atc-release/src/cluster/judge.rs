//! Reading what a readiness verdict rests on, and judging.

use futures::FutureExt;
use serde_json::Value;

use super::request::JSON;
use super::{Cluster, ClusterError, PAGE};
use crate::object::Object;
use crate::readiness::{self, Found, Judgement, Related, Verdict};

/// A live object and the verdict on it.
#[derive(Clone)]
pub struct Judged {
    /// The object; `None` when there is none, which is never ready.
    pub live: Option<Value>,
    /// The verdict and what it rests on.
    pub judgement: Judgement,
}

impl std::fmt::Debug for Judged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The object may be a Secret.
        f.debug_struct("Judged")
            .field("exists", &self.live.is_some())
            .field("judgement", &self.judgement)
            .finish()
    }
}

impl Cluster {
    /// Judges a live object, reading whatever else its readiness rests on: nothing for most kinds, one list for a
    /// Service, seldom a second.
    pub async fn judge(&self, live: &Value) -> Result<Judgement, ClusterError> {
        let mut found = Vec::new();
        for wanted in readiness::related(live) {
            found.push(self.find(wanted).await?);
        }
        for wanted in readiness::further(live, &found) {
            found.push(self.find(wanted).await?);
        }
        Ok(readiness::judge(live, &found))
    }

    /// Reads an object and judges it.
    pub async fn look(&self, object: &Object) -> Result<Judged, ClusterError> {
        let mapping = self.mapping(object.api_version(), object.kind()).await?;
        let live = self
            .get(
                &mapping,
                object.namespace().unwrap_or_default(),
                object.name(),
            )
            .await?;
        let judgement = match &live {
            Some(live) => self.judge(live).await?,
            None => Verdict::InProgress("it does not exist".to_owned()).into(),
        };
        Ok(Judged { live, judgement })
    }

    /// Reads and judges these objects, side by side. In their order.
    pub async fn look_all(&self, objects: &[&Object]) -> Vec<Result<Judged, ClusterError>> {
        let looks = objects.iter().map(|object| self.look(object).boxed());
        self.breadth(looks.collect()).await
    }

    async fn find(&self, wanted: Related) -> Result<Found, ClusterError> {
        let mapping = self.mapping(wanted.api_version, wanted.kind).await?;
        let (namespace, labels) = (
            Some(wanted.namespace.as_str()),
            Some(wanted.selector.as_str()),
        );
        let objects = match wanted.limit {
            Some(limit) => self.first_page(&mapping, namespace, labels, limit).await?,
            None => self.pages(&mapping, namespace, labels, JSON, PAGE).await?,
        };
        Ok(Found {
            related: wanted,
            objects,
        })
    }
}
