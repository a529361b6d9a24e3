//! `yoke mayday`: removes a release, its resources and its history.

use atc_engine::release::plan::PruneOptions;
use atc_engine::{Engine, EngineOptions, MaydayRequest};

use super::exclusive::{self, Scope};
use crate::cli::{Global, Mayday};
use crate::connect::{self, Need};
use crate::interrupt::Interrupt;
use crate::{holder, render};

/// Removes it. A release that does not exist is a warning.
pub(super) async fn run(
    global: &Global,
    args: &Mayday,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    super::check_release(&args.release)?;
    let connection = connect::connect(global, args.namespace.as_deref(), Need::Cluster).await?;
    let engine = Engine::new(connection.cluster, EngineOptions::default())?;
    let request = MaydayRequest {
        release: args.release.clone(),
        namespace: connection.namespace.clone(),
        prune: PruneOptions {
            crds: args.remove_crds || args.remove_all,
            namespaces: args.remove_namespaces || args.remove_all,
        },
        owner: None,
        owner_uid: None,
        remembered: Vec::new(),
        hold: Some(holder::request("mayday", interrupt)),
    };
    let scope = Scope {
        verb: "mayday",
        release: &request.release,
        namespace: &request.namespace,
        lock: false,
    };
    let work = Box::pin(async { Ok(engine.mayday(&request).await?) });
    let report = exclusive::run(engine.cluster(), interrupt, &scope, work).await?;
    let release = super::named(&args.release, &connection.namespace);
    if !report.existed {
        render::warning(format!("{release} does not exist: nothing to remove"));
        return Ok(());
    }
    render::message(format!(
        "{release} is removed: {} deleted{}",
        super::counted(report.deleted.len()),
        super::let_go(&report.orphaned),
    ));
    Ok(())
}
