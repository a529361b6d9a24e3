//! Removing what a release does not want any more: stage by stage, each gone before the next, only what is still ours.

use std::time::Duration;

use futures::FutureExt;

use super::delete::{Deleted, Orphaned, Propagation};
use super::inventory::{Place, Told};
use super::mapping::Mapping;
use super::read::LiveMeta;
use super::wait::Going;
use super::{Cluster, ClusterError, ErrorKind};
use crate::ownership::{Owner, owner_of};
use crate::plan::PruneItem;

/// Default time for one stage to be gone: what the existing tool waits.
pub const PRUNE_LIMIT: Duration = Duration::from_mins(2);
/// Tries of a delete whose object changes between the look at its owner and the delete.
const MAX_TRIES: u32 = 5;

/// What a prune came to. What it could not remove must stay in the record.
#[derive(Debug, Default)]
pub struct Pruned {
    /// Deleted by us, and gone.
    pub gone: Vec<PruneItem>,
    /// Not there before, or of a kind that is not served any more.
    pub absent: Vec<PruneItem>,
    /// Somebody else's by now, or nobody's: left alone, and no longer ours to remember.
    pub not_ours: Vec<PruneItem>,
    /// Being deleted when the time was up, or not begun since an earlier stage is not gone.
    pub remaining: Vec<PruneItem>,
    /// Deletes that were refused; their objects are in `remaining` too.
    pub errors: Vec<ClusterError>,
}

impl Pruned {
    /// Whether nothing is left to do.
    pub fn is_complete(&self) -> bool {
        self.remaining.is_empty() && self.errors.is_empty()
    }
}

/// What became of one item.
enum Fate {
    Gone,
    Absent,
    NotOurs,
    Going(Going),
    Failed(ClusterError),
}

impl Cluster {
    /// Deletes these objects in this order, waiting at most `limit` for each stage to be gone ([`PRUNE_LIMIT`] is the
    /// usual one; zero only begins the first stage). Stops after a stage that is not gone; doing it again continues.
    ///
    /// An object is deleted only if `us` owns it at that moment. One of a kind that the server does not serve any more is
    /// absent.
    pub async fn prune(&self, stages: &[Vec<PruneItem>], us: &Owner, limit: Duration) -> Pruned {
        let mut result = Pruned::default();
        let mut stages = stages.iter();
        for stage in stages.by_ref() {
            let lists = self.lists(stage.iter().map(place)).await;
            let fates = stage.iter().map(|item| {
                let told = lists.look(&place(item), &item.target.name);
                self.remove(item, us, told).boxed()
            });
            let fates = self.breadth(fates.collect()).await;
            let mut going = Vec::new();
            for (item, fate) in stage.iter().zip(fates) {
                match fate {
                    Fate::Gone => result.gone.push(item.clone()),
                    Fate::Absent => result.absent.push(item.clone()),
                    Fate::NotOurs => result.not_ours.push(item.clone()),
                    Fate::Going(object) => going.push((item, object)),
                    Fate::Failed(error) => {
                        result.remaining.push(item.clone());
                        result.errors.push(error);
                    }
                }
            }
            let targets: Vec<Going> = going.iter().map(|(_, object)| object.clone()).collect();
            let left = self.wait_gone(&targets, limit).await;
            for (item, object) in going {
                if left.contains(&object) {
                    result.remaining.push(item.clone());
                } else {
                    result.gone.push(item.clone());
                }
            }
            if !result.is_complete() {
                break;
            }
        }
        result.remaining.extend(stages.flatten().cloned());
        result
    }

    /// Takes our marks off these objects, see [`Cluster::orphan`]. The results are in the order of the items.
    pub async fn orphan_all(
        &self,
        items: &[PruneItem],
        us: &Owner,
        owner_uid: Option<&str>,
    ) -> Vec<Result<Orphaned, ClusterError>> {
        let calls = items
            .iter()
            .map(|item| self.orphan_item(item, us, owner_uid).boxed());
        self.breadth(calls.collect()).await
    }

    async fn orphan_item(
        &self,
        item: &PruneItem,
        us: &Owner,
        owner_uid: Option<&str>,
    ) -> Result<Orphaned, ClusterError> {
        let mapping = match self.recorded_mapping(item).await {
            Err(error) if error.kind() == ErrorKind::NoSuchKind => return Ok(Orphaned::Gone),
            other => other?,
        };
        let (namespace, name) = (&item.target.namespace, &item.target.name);
        self.orphan(&mapping, namespace, name, us, owner_uid).await
    }

    async fn remove(&self, item: &PruneItem, us: &Owner, told: Option<Told>) -> Fate {
        match self.try_remove(item, us, told).await {
            Ok(fate) => fate,
            Err(error) if error.kind() == ErrorKind::NoSuchKind => Fate::Absent,
            Err(error) => Fate::Failed(error),
        }
    }

    /// `told`: what a list told of it, where there was one. A delete by that goes through only if it is still so.
    async fn try_remove(
        &self,
        item: &PruneItem,
        us: &Owner,
        mut told: Option<Told>,
    ) -> Result<Fate, ClusterError> {
        let mapping = self.recorded_mapping(item).await?;
        let (namespace, name) = (item.target.namespace.as_str(), item.target.name.as_str());
        let mut tries = 1;
        loop {
            let look = match told.take() {
                Some(told) => told.live(),
                None => self.metadata(&mapping, namespace, name).await?,
            };
            let Some(live) = look else {
                // Deleted between a look and our next try counts as ours: it was there.
                return Ok(if tries == 1 { Fate::Absent } else { Fate::Gone });
            };
            if owner_of(live.value()).as_ref() != Some(us) {
                return Ok(Fate::NotOurs);
            }
            let going = || {
                Fate::Going(Going {
                    mapping: mapping.clone(),
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    uid: live.uid().to_owned(),
                })
            };
            if live.is_deleting() {
                return Ok(going());
            }
            let deleted = self
                .delete(
                    &mapping,
                    namespace,
                    name,
                    live.uid(),
                    Some(live.resource_version()),
                    propagation(&mapping),
                )
                .await;
            match deleted {
                Ok(Deleted::Gone) => return Ok(Fate::Gone),
                Ok(Deleted::Pending) => return Ok(going()),
                // It changed since the look: perhaps its owner did.
                Err(error) if error.kind() == ErrorKind::Stale && tries < MAX_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// The metadata of a recorded object as it lives; `None` where there is no such object, or no such kind any more.
    pub async fn live_item(&self, item: &PruneItem) -> Result<Option<LiveMeta>, ClusterError> {
        let look = async {
            let mapping = self.recorded_mapping(item).await?;
            let (namespace, name) = (&item.target.namespace, &item.target.name);
            self.metadata(&mapping, namespace, name).await
        };
        match look.await {
            Err(error) if error.kind() == ErrorKind::NoSuchKind => Ok(None),
            other => other,
        }
    }

    /// The mapping of a recorded object: in the version of the record, else in one that the group has by now.
    async fn recorded_mapping(&self, item: &PruneItem) -> Result<Mapping, ClusterError> {
        let kind = &item.target.group_kind;
        match self.mapping(&item.api_version, &kind.kind).await {
            Err(error) if error.kind() == ErrorKind::NoSuchKind && !kind.group.is_empty() => {
                self.mapping_of_group(&kind.group, &kind.kind).await
            }
            other => other,
        }
    }
}

fn place(item: &PruneItem) -> Place<'_> {
    let target = &item.target;
    (
        &item.api_version,
        &target.group_kind.kind,
        &target.namespace,
    )
}

/// Foreground, so that "gone" means its dependents too; kinds of which the cluster makes nothing have none to wait for
/// and go at once, also where no garbage collector runs.
fn propagation(mapping: &Mapping) -> Propagation {
    match (mapping.group.as_str(), mapping.kind.as_str()) {
        ("", "ConfigMap" | "Secret" | "ServiceAccount") | ("rbac.authorization.k8s.io", _) => {
            Propagation::Background
        }
        _ => Propagation::Foreground,
    }
}
