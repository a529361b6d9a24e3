//! The removal of a release that acts as a service account. An account that is gone, or has lost its rights, must hold
//! nobody's removal up; one that never could delete something must not have it deleted by us.
//!
//! So what it may not delete goes as ourselves, but what lies in no namespace only if it may not change it either. What it
//! may change and not delete, it lets go of. Namespaces and CRDs, with which everything in them goes, are never more than
//! let go of. (What lies in a namespace has its Flight as owner: the garbage collector would delete it anyway.)

use atc_release::cluster::{ErrorKind, Orphaned};
use atc_release::ownership::Owner;
use atc_release::plan::{Plan, PruneItem};

use super::{Removed, Unremoved};
use crate::engine::Engine;
use crate::error::chain;

impl Engine {
    /// Removes and lets go what a plan says, as the account; stage by stage, since only what it is refused for want of a
    /// right is not its matter any more.
    pub(super) async fn carry_out_acting(
        &self,
        plan: &Plan,
        us: &Owner,
        owner_uid: Option<&str>,
    ) -> Result<Removed, Unremoved> {
        let stages = plan.prune.iter().map(|stage| Plan {
            prune: vec![stage.clone()],
            ..Plan::default()
        });
        let orphans = Plan {
            orphan: plan.orphan.clone(),
            ..Plan::default()
        };
        let mut removed = Removed::default();
        for step in stages.chain([orphans]) {
            let done = match self.carry_out(&step, us, owner_uid).await {
                Err(left) if left.forbidden => {
                    tracing::info!(
                        release = us.to_string(),
                        why = left.failures.join("; "),
                        "the release's account may not remove it, it goes as ourselves or is let go of"
                    );
                    let rest = self.yielded(step, us, owner_uid, &mut removed).await?;
                    self.as_itself().carry_out(&rest, us, owner_uid).await?
                }
                other => other?,
            };
            removed.deleted.extend(done.deleted);
            removed.not_ours.extend(done.not_ours);
            removed.orphaned.extend(done.orphaned);
            removed.settled.extend(done.settled);
        }
        Ok(removed)
    }

    /// What of a step is to be done as ourselves, once the account has let go of what it may.
    async fn yielded(
        &self,
        step: Plan,
        us: &Owner,
        owner_uid: Option<&str>,
        removed: &mut Removed,
    ) -> Result<Plan, Unremoved> {
        let in_none = |item: &PruneItem| item.target.namespace.is_empty();
        let (wide, mut prune): (Vec<_>, Vec<_>) =
            step.prune.into_iter().flatten().partition(in_none);
        let mut orphan = step.orphan;
        let mut let_go: Vec<String> = orphan.iter().map(PruneItem::canonical).collect();
        let answers = self.reach().orphan_all(&wide, us, owner_uid).await;
        for (item, answer) in wide.into_iter().zip(answers) {
            match answer {
                Ok(fate) => {
                    let target = item.target.clone();
                    match fate {
                        Orphaned::Released => {
                            let_go.push(item.canonical());
                            removed.orphaned.push(target);
                        }
                        Orphaned::Gone => {}
                        Orphaned::NotOurs => removed.not_ours.push(target),
                    }
                    removed.settled.push(item.target);
                }
                Err(error) if error.kind() != ErrorKind::Forbidden => {
                    return Err(Unremoved {
                        failures: vec![chain(&error)],
                        forbidden: false,
                        going: false,
                    });
                }
                Err(_) if item.is_foundation() => {
                    let_go.push(item.canonical());
                    orphan.push(item);
                }
                Err(_) => prune.push(item),
            }
        }
        if !let_go.is_empty() {
            tracing::warn!(
                release = us.to_string(),
                objects = let_go.join(" "),
                "let go of what the release's account may not delete; it stays, delete it by hand"
            );
        }
        Ok(Plan {
            prune: vec![prune],
            orphan,
            ..Plan::default()
        })
    }
}
