//! Reading what a readiness verdict rests on, and judging.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use super::mapping::Mapping;
use super::{Cluster, ClusterError, ErrorKind};
use crate::object::Object;
use crate::readiness::{self, Found, Judgement, Related, Verdict, Which};

/// Rules of readiness besides the built-in ones.
pub trait Rules: Send + Sync {
    /// What a rule says of a live object; `None` where there is none for its kind.
    fn verdict<'a>(&'a self, live: &'a Value) -> BoxFuture<'a, Option<Verdict>>;
}

/// No rules but the built-in ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRules;

impl Rules for NoRules {
    fn verdict<'a>(&'a self, _: &'a Value) -> BoxFuture<'a, Option<Verdict>> {
        std::future::ready(None).boxed()
    }
}

/// Is told of objects that are listed for a verdict that goes on resting on them.
pub trait Listing: Send {
    /// They are about to be listed.
    fn begin(&mut self, mapping: &Mapping, related: &Related);

    /// They were listed in this version of the cluster: whatever changed up to there counts. Empty where it is not known.
    fn end(&mut self, version: &str);
}

/// Nobody is told.
impl Listing for () {
    fn begin(&mut self, _: &Mapping, _: &Related) {}

    fn end(&mut self, _: &str) {}
}

/// A live object and the verdict on it.
#[derive(Clone)]
pub struct Judged {
    /// The object; `None` when there is none, which is never ready.
    pub live: Option<Value>,
    /// The verdict and what it rests on.
    pub judgement: Judgement,
}

impl Judged {
    /// What is said of an object that is not there.
    pub(super) fn absent() -> Self {
        Self {
            live: None,
            judgement: Verdict::InProgress("it does not exist".to_owned()).into(),
        }
    }
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
    /// Judges a live object: by the rules, where they have one for it, else by what is built in, reading whatever else
    /// its readiness rests on: nothing for most kinds, one list for a Service, seldom a second.
    pub async fn judge(
        &self,
        live: &Value,
        rules: &dyn Rules,
        listing: &mut dyn Listing,
    ) -> Result<Judgement, ClusterError> {
        if !readiness::is_deleting(live)
            && !readiness::is_fixed(live)
            && let Some(verdict) = rules.verdict(live).await
        {
            return Ok(verdict.into());
        }
        let mut found = Vec::new();
        for wanted in readiness::related(live) {
            found.push(self.find(wanted, listing).await?);
        }
        for wanted in readiness::further(live, &found) {
            // Nobody is told of these: when they change, what was found first changes too.
            found.push(self.find(wanted, &mut ()).await?);
        }
        Ok(readiness::judge(live, &found))
    }

    /// Reads an object and judges it.
    pub async fn look(&self, object: &Object, rules: &dyn Rules) -> Result<Judged, ClusterError> {
        let mapping = self.mapping(object.api_version(), object.kind()).await?;
        let namespace = object.namespace().unwrap_or_default();
        match self.get(&mapping, namespace, object.name()).await? {
            Some(live) => self.judged(live, rules).await,
            None => Ok(Judged::absent()),
        }
    }

    /// A live object with the verdict on it.
    pub(super) async fn judged(
        &self,
        live: Value,
        rules: &dyn Rules,
    ) -> Result<Judged, ClusterError> {
        let judgement = self.judge(&live, rules, &mut ()).await?;
        Ok(Judged {
            live: Some(live),
            judgement,
        })
    }

    async fn find(
        &self,
        wanted: Related,
        listing: &mut dyn Listing,
    ) -> Result<Found, ClusterError> {
        let mapping = self.mapping(wanted.api_version, wanted.kind).await?;
        let objects = match &wanted.which {
            Which::Labelled {
                selector,
                fields,
                limit,
            } => {
                listing.begin(&mapping, &wanted);
                let (namespace, labels) =
                    (Some(wanted.namespace.as_str()), Some(selector.as_str()));
                if let Some(limit) = limit {
                    self.first_page(&mapping, namespace, labels, *fields, *limit)
                        .await?
                } else {
                    let (objects, version) = self.list_at(&mapping, namespace, labels).await?;
                    listing.end(&version);
                    objects
                }
            }
            Which::Named(name) => match self.get(&mapping, &wanted.namespace, name).await {
                Ok(found) => found.into_iter().collect(),
                Err(error) if error.kind() == ErrorKind::Forbidden => Vec::new(),
                Err(error) => return Err(error),
            },
        };
        Ok(Found {
            related: wanted,
            objects,
        })
    }
}
