//! `yoke descent`: back to an earlier revision of a release.

use atc_engine::release::plan::PruneOptions;
use atc_engine::{DescentReport, DescentRequest, Engine, EngineOptions};

use super::exclusive::{self, Scope};
use super::takeoff::ready;
use crate::cli::{Descent, Global};
use crate::connect::{self, Need};
use crate::interrupt::Interrupt;
use crate::{holder, render};

/// Goes there, and with `-wait` waits until its last stage is ready.
pub(super) async fn run(
    global: &Global,
    args: &Descent,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    super::check_release(&args.release)?;
    anyhow::ensure!(
        !args.load_custom_readiness,
        "-load-custom-readiness is not part of this version yet"
    );
    let connection = connect::connect(global, args.namespace.as_deref(), Need::Cluster).await?;
    let engine = Engine::new(connection.cluster, EngineOptions::default())?;
    let request = DescentRequest {
        release: args.release.clone(),
        namespace: connection.namespace,
        revision: args.revision,
        prune: PruneOptions {
            crds: args.remove_crds || args.remove_all,
            namespaces: args.remove_namespaces || args.remove_all,
        },
        hold: holder::request("descent", interrupt),
    };
    let scope = Scope {
        verb: "descent",
        release: &request.release,
        namespace: &request.namespace,
        lock: args.lock,
    };
    let work = Box::pin(async {
        let report = engine.descend(&request).await?;
        tell(&request, &report);
        let Some(limit) = args.wait.positive() else {
            return Ok(());
        };
        let waiting = ready::wait(engine.cluster(), args.poll, &report.stages, limit);
        interrupt.or_drop(waiting).await
    });
    exclusive::run(engine.cluster(), interrupt, &scope, work).await
}

fn tell(request: &DescentRequest, report: &DescentReport) {
    let pruned = match report.pruned.len() {
        0 => String::new(),
        pruned => format!(", {} deleted", super::counted(pruned)),
    };
    render::message(format!(
        "{} is at revision {}: {} applied{pruned}{}",
        super::named(&request.release, &request.namespace),
        request.revision,
        super::counted(report.stages.count()),
        super::let_go(&report.orphaned)
    ));
}
