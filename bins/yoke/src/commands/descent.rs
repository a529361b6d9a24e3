//! `yoke descent`: back to an earlier revision of a release.

use atc_engine::release::plan::PruneOptions;
use atc_engine::{DescentReport, DescentRequest, Engine, EngineOptions};

use super::exclusive::{self, Scope};
use super::takeoff::ready;
use crate::cli::{Descent, Global};
use crate::connect::{self, Need};
use crate::interrupt::Interrupt;
use crate::progress::Show;
use crate::{holder, render};

/// Goes there, and with `-wait` waits until its last stage is ready.
pub(super) async fn run(
    global: &Global,
    args: &Descent,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    super::check_release(&args.release)?;
    let connection = connect::connect(global, args.namespace.as_deref(), Need::Cluster).await?;
    let defaults = EngineOptions::default();
    let options = EngineOptions {
        poll: args.poll.positive().unwrap_or(defaults.poll),
        // The way back does not depend on what is broken, unless that is asked for; as in the existing tool.
        stage_wait: args.wait.positive().unwrap_or_default(),
        explain: true,
        ..defaults
    };
    let engine = Engine::new(connection.cluster, options)?;
    if args.load_custom_readiness {
        engine.load_readiness(&connection.namespace).await?;
    }
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
        let mut report = engine.descend(&request).await?;
        tell(&request, &report);
        let Some(limit) = args.wait.positive() else {
            return Ok(());
        };
        let show = Show::new();
        let (stages, children) = (&report.stages, &mut report.children);
        let waiting = ready::wait(&engine, &request.namespace, stages, children, limit, &show);
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
