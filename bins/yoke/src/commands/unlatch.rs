//! `yoke unlatch`: removes the lock of a release, and ends the claim of whoever works on it.

use atc_engine::release::cluster::Holder;

use crate::cli::{Global, Unlatch};
use crate::connect::{self, Need};
use crate::render;

/// Does it. A release that nobody holds is a warning.
pub(super) async fn run(global: &Global, args: &Unlatch) -> anyhow::Result<()> {
    super::check_release(&args.release)?;
    let connection = connect::connect(global, args.namespace.as_deref(), Need::Cluster).await?;
    let (cluster, namespace) = (&connection.cluster, &connection.namespace);
    let lock = cluster.break_lock(&args.release, namespace).await?;
    let claim = cluster.break_claim(&args.release, namespace).await?;
    let release = super::named(&args.release, namespace);
    if lock.is_none() && claim.is_none() {
        render::warning(format!("{release} is not locked"));
    }
    if let Some(Holder { who, since }) = lock {
        render::message(format!(
            "{release} is unlocked: the lock of {} since {since} is removed",
            one(&who)
        ));
    }
    if let Some(claim) = claim {
        render::message(format!(
            "{release} is let go: the claim of {} since {} is ended",
            one(&claim.who),
            claim.since
        ));
    }
    Ok(())
}

/// A holder in messages.
fn one(who: &str) -> &str {
    if who.is_empty() {
        "another process"
    } else {
        who
    }
}
