//! `yoke mayday`: removes a release, its resources and its history.

use atc_engine::release::plan::PruneOptions;
use atc_engine::{Engine, EngineOptions, MaydayRequest};

use crate::cli::{Global, Mayday};
use crate::connect::{self, Need};
use crate::render;

/// Removes it. A release that does not exist is a warning.
pub(crate) async fn run(global: &Global, args: &Mayday) -> anyhow::Result<()> {
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
        owner_uid: None,
    };
    let report = engine.mayday(&request).await?;
    let release = super::named(&args.release, &connection.namespace);
    if report.revisions == 0 {
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
