//! Fields that others set and that become ours, so that an apply can change or remove them.

use http::Method;
use serde_json::{Value, json};

use super::apply::{Applied, ApplyOptions};
use super::mapping::{Mapping, encode};
use super::read::LiveMeta;
use super::request::{Call, JSON_PATCH};
use super::{Cluster, ClusterError, ErrorKind};
use crate::managed_fields;
use crate::object::Object;

/// Tries of a change of managed fields whose object changes under it each time.
const MAX_TRIES: u32 = 5;

impl Cluster {
    /// An object that is new to the release was applied: what client-side apply had set of it becomes ours, and goes where
    /// we do not want it.
    pub(super) async fn adopt(
        &self,
        mapping: &Mapping,
        object: &Object,
        options: &ApplyOptions,
        applied: Applied,
    ) -> Result<Applied, ClusterError> {
        let us = self.manager(options);
        let live = LiveMeta::of(&applied.live);
        let ours = |live: &LiveMeta| managed_fields::adopted(&live.value()["managedFields"], us);
        if ours(&live).is_none() || !self.own(mapping, live, ours).await? {
            return Ok(applied);
        }
        self.apply_mapped(mapping, object, options).await
    }

    /// What others put into lists in the place of our entries becomes ours. Whether there was any. `recorded`: the object
    /// as it was applied before.
    pub(super) async fn reclaim(
        &self,
        mapping: &Mapping,
        object: &Object,
        options: &ApplyOptions,
        recorded: Option<&Object>,
    ) -> Result<bool, ClusterError> {
        let Some(live) = self.live_lists(mapping, object).await? else {
            return Ok(false);
        };
        let recorded = recorded.map(Object::value);
        self.own(mapping, live, |live| {
            let managed = &live.value()["managedFields"];
            managed_fields::reclaimed(managed, self.manager(options), object.value(), recorded)
        })
        .await
    }

    /// Whether [`Cluster::reclaim`] would find anything, so that an apply which is refused now may be accepted then.
    pub(super) async fn could_reclaim(
        &self,
        object: &Object,
        options: &ApplyOptions,
    ) -> Result<bool, ClusterError> {
        let mapping = self.mapping(object.api_version(), object.kind()).await?;
        let live = self.live_lists(&mapping, object).await?;
        let found = live.and_then(|live| {
            let managed = &live.value()["managedFields"];
            managed_fields::reclaimed(managed, self.manager(options), object.value(), None)
        });
        Ok(found.is_some())
    }

    async fn live_lists(
        &self,
        mapping: &Mapping,
        object: &Object,
    ) -> Result<Option<LiveMeta>, ClusterError> {
        if !managed_fields::has_entries(object.value()) {
            return Ok(None);
        }
        let namespace = object.namespace().unwrap_or_default();
        self.metadata(mapping, namespace, object.name()).await
    }

    /// Writes other managed fields over those that were seen, and nothing else. False when there is nothing to write.
    async fn own(
        &self,
        mapping: &Mapping,
        mut live: LiveMeta,
        wanted: impl Fn(&LiveMeta) -> Option<Value>,
    ) -> Result<bool, ClusterError> {
        let mut tries = 1;
        loop {
            let Some(fields) = wanted(&live) else {
                return Ok(false);
            };
            // Setting the resourceVersion (rather than testing it) makes a lost race a conflict, not an "invalid".
            let patch = json!([
                { "op": "test", "path": "/metadata/uid", "value": live.uid() },
                { "op": "replace", "path": "/metadata/managedFields", "value": fields },
                { "op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version() },
            ]);
            let (namespace, name) = (live.namespace(), live.name());
            let doing = "take over the fields of";
            let call = Call::object(doing, Method::PATCH, mapping, namespace, name, "")?;
            let query = format!("fieldManager={}", encode(&self.options().field_manager));
            let call = call.query(&query).body(JSON_PATCH, &patch);
            match self.patch(call, mapping).await {
                Ok(_) => return Ok(true),
                Err(error)
                    if matches!(error.kind(), ErrorKind::Stale | ErrorKind::Invalid)
                        && tries < MAX_TRIES =>
                {
                    tries += 1;
                }
                Err(error) => return Err(error),
            }
            match self.metadata(mapping, namespace, name).await? {
                Some(now) => live = now,
                None => return Ok(false),
            }
        }
    }
}
