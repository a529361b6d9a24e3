//! `yoke mayday`: removes a release, its resources and its history.

use anyhow::bail;
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
        confined: false,
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
    leave_to_its_maker(&engine, &request).await?;
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
    if !report.not_ours.is_empty() {
        let names = report.not_ours.iter().map(render::resource);
        render::warning(format!(
            "left alone, since the release does not own it any more: {}",
            names.collect::<Vec<_>>().join(", ")
        ));
    }
    render::message(format!(
        "{release} is removed: {} deleted{}",
        super::counted(report.deleted.len()),
        super::let_go(&report.orphaned),
    ));
    Ok(())
}

/// What a controller makes for a custom resource goes with that. Removed by itself, it would be made again.
async fn leave_to_its_maker(engine: &Engine, request: &MaydayRequest) -> anyhow::Result<()> {
    let (release, namespace) = (&request.release, &request.namespace);
    let Some(maker) = Box::pin(engine.maker(release, namespace)).await? else {
        return Ok(());
    };
    bail!(
        "{} is that of {maker}, whose controller would make again what is removed: delete {maker} instead (where no controller \
         runs any more, take its finalizer yoke.cd/mayday.flight off)",
        super::named(release, namespace)
    )
}
