//! `yoke takeoff`: what a flight or stdin says → printed, written to files, compared, or brought about in the cluster.

mod flight;
mod namespace;
mod out;
pub(super) mod ready;

use std::time::Instant;

use anyhow::{Context as _, bail};
use atc_engine::access::Matchers;
use atc_engine::api::{ResourceRef, names};
use atc_engine::artifact::{Certificates, Credentials, ModulePolicy, PolicyOptions};
use atc_engine::flight::Compiler;
use atc_engine::release::cluster::Cluster;
use atc_engine::release::decorate::Decoration;
use atc_engine::release::desired;
use atc_engine::release::drift;
use atc_engine::release::history;
use atc_engine::release::object::Stages;
use atc_engine::release::plan::PruneOptions;
use atc_engine::{
    DryRun, Engine, EngineError, EngineOptions, Memory, NoObserver, Report, TakeoffRequest,
    Unjudged,
};

use super::exclusive::{self, Scope};
use crate::cli::{Global, Takeoff, given};
use crate::connect::{self, Need};
use crate::interrupt::Interrupt;
use crate::progress::Show;
use crate::{holder, output, render};
use flight::Printed;

/// Does it, up to where the flags say to stop.
pub(super) async fn run(
    global: &Global,
    args: &Takeoff,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    check(args)?;
    let out = given(args.out.as_ref());
    let shows_only = args.stdout || out.is_some();
    let need = if shows_only && !args.cluster_access {
        Need::Nothing
    } else {
        Need::Cluster
    };
    let connection = connect::connect(global, args.namespace.as_deref(), need).await?;
    let namespace = connection.namespace;
    let cache = given(args.compilation_cache.as_ref());
    let defaults = EngineOptions::default();
    let options = EngineOptions {
        cache_dir: cache.map(Into::into),
        credentials: Credentials::User,
        certificates: Certificates::User,
        // Also of what is kept: faster code saves milliseconds a run, and would cost seconds the first time.
        compiler: Compiler::Quick,
        policy: ModulePolicy::new(PolicyOptions {
            keys: given(args.verify.as_ref()).map(Into::into),
            ..PolicyOptions::default()
        })?,
        poll: args.poll.positive().unwrap_or(defaults.poll),
        // The same for each stage, as in the existing tool.
        stage_wait: args.wait.positive().unwrap_or(defaults.stage_wait),
        explain: true,
        ..defaults
    };
    let cluster = namespace::expected(args, connection.cluster, &namespace);
    let engine = Engine::new(cluster, options)?;

    let printed = flight::run(&engine, args, &namespace).await?;
    if args.stdout {
        return output::write(printed.bytes).await;
    }
    if let Some(out) = out {
        let stages = desired::parse(&printed.bytes).context(unreadable(args))?;
        return out::write(out, &args.release, &stages).await;
    }

    let decoration = Decoration {
        release: args.release.clone(),
        namespace: namespace.clone(),
        managed_by: names::MANAGED_BY_YOKE.to_owned(),
        cross_namespace: args.cross_namespace,
        ..Decoration::default()
    };
    let prepared = match engine.prepare(&printed.bytes, None, &decoration).await {
        Err(EngineError::Output { source }) => {
            return Err(anyhow::Error::new(source).context(unreadable(args)));
        }
        prepared => prepared?,
    };
    if args.diff_only {
        return diff(engine.cluster(), args, &namespace, &prepared.stages).await;
    }
    // One that the release makes itself is not somebody else's.
    if args.create_namespace && !args.dry && prepared.namespace(&namespace).is_none() {
        namespace::ensure(engine.cluster(), &namespace).await?;
    }
    if args.load_custom_readiness && !args.dry {
        engine.load_readiness(&namespace).await?;
    }
    let request = TakeoffRequest {
        hold: Some(holder::request("takeoff", interrupt)),
        ..request(args, &namespace, &printed, decoration)
    };
    let scope = Scope {
        verb: "takeoff",
        release: &args.release,
        namespace: &namespace,
        lock: args.lock && !args.dry,
    };
    if scope.lock {
        // The lock lies there, too.
        let memory = &mut Memory::default();
        engine
            .make_home(&request, &prepared, memory, &NoObserver)
            .await?;
    }
    let work = Box::pin(async {
        let show = Show::new();
        let started = Instant::now();
        let mut report = engine
            .takeoff(&request, &prepared, &mut Memory::default(), &show)
            .await?;
        show.end();
        tracing::debug!(elapsed_ms = started.elapsed().as_millis(), "takeoff");
        tell(args, &namespace, &prepared.stages, &report);
        match args.wait.positive() {
            Some(limit) if !args.dry => {
                let (stages, children) = (&prepared.stages, &mut report.children);
                let waiting = ready::wait(&engine, &namespace, stages, children, limit, &show);
                interrupt.or_drop(waiting).await
            }
            _ => Ok(()),
        }
    });
    exclusive::run(engine.cluster(), interrupt, &scope, work).await
}

/// What is said of resources that cannot be read: where they came from.
fn unreadable(args: &Takeoff) -> &'static str {
    match args.flight {
        Some(_) => "the flight's output cannot be read as resources",
        None => "stdin cannot be read as resources",
    }
}

/// Refuses what cannot be meant.
fn check(args: &Takeoff) -> anyhow::Result<()> {
    super::check_release(&args.release)?;
    if args.dry && args.skip_dry_run {
        bail!("-dry and -skip-dry-run together do nothing");
    }
    if args.flight.is_none() && given(args.checksum.as_ref()).is_some() {
        bail!("-checksum is that of a flight, and none is given");
    }
    if args.flight.is_none() && given(args.verify.as_ref()).is_some() {
        bail!("-verify checks a flight, and none is given");
    }
    if args.flight.is_none() && !args.args.is_empty() {
        bail!("what follows -- goes to a flight, and none is given");
    }
    if !args.cluster_access
        && args
            .resource_access
            .iter()
            .any(|matcher| !matcher.is_empty())
    {
        render::warning("-resource-access does nothing without -cluster-access");
    }
    // No error, as in the existing tool: scripts may build such a text, and it gives access to nothing.
    for matcher in Matchers::from_flags(&args.resource_access).iter() {
        if !matcher.can_match() {
            render::warning(format!(
                "-resource-access \"{matcher}\" fits no resource: it is [namespace/]Kind.group[:name], each part whole or *"
            ));
        }
    }
    Ok(())
}

fn request(
    args: &Takeoff,
    namespace: &str,
    printed: &Printed,
    decoration: Decoration,
) -> TakeoffRequest {
    TakeoffRequest {
        release: args.release.clone(),
        namespace: namespace.to_owned(),
        source_url: printed.url.clone(),
        source_checksum: printed.sha1.clone(),
        decoration,
        force_conflicts: args.force_conflicts,
        force_ownership: args.force_ownership,
        dry_run: match (args.dry, args.skip_dry_run) {
            (true, _) => DryRun::Only,
            (false, true) => DryRun::Skip,
            (false, false) => DryRun::First,
        },
        prune: PruneOptions {
            crds: args.remove_crds || args.remove_all,
            namespaces: args.remove_namespaces || args.remove_all,
        },
        history_cap: usize::try_from(args.history_cap)
            .ok()
            .filter(|cap| *cap > 0),
        hold: None,
    }
}

/// Prints how the next state differs from the active revision; nothing where it does not.
async fn diff(
    cluster: &Cluster,
    args: &Takeoff,
    namespace: &str,
    next: &Stages,
) -> anyhow::Result<()> {
    let heads = cluster.revisions(&args.release, namespace).await?;
    let active = match history::active(&heads) {
        Some(head) => cluster.revision(head).await?,
        None => None,
    };
    let current = active.map(|revision| revision.stages).unwrap_or_default();
    let options = super::diff_options(&args.diffs, "current", "next");
    let text = drift::diff(&current, next, &options)?;
    if text.is_empty() {
        render::message(format!(
            "{} would not change",
            super::named(&args.release, namespace)
        ));
    }
    output::write(text).await
}

/// Says what was done.
fn tell(args: &Takeoff, namespace: &str, stages: &Stages, report: &Report) {
    let release = super::named(&args.release, namespace);
    let resources = super::counted(stages.count());
    if args.dry {
        let unjudged = tell_unjudged(&report.unjudged);
        let judged = match unjudged {
            0 => String::new(),
            _ => format!("{} of ", stages.count().saturating_sub(unjudged)),
        };
        render::message(format!(
            "dry run of {release}: the API server would take {judged}{resources}"
        ));
    } else if report.changed {
        let pruned = match report.pruned.len() {
            0 => String::new(),
            pruned => format!(", {} deleted", super::counted(pruned)),
        };
        render::message(format!(
            "{release} took off: {resources} applied{pruned}{}",
            super::let_go(&report.orphaned)
        ));
    } else if report.written.is_empty() {
        render::warning(format!(
            "{release} is as it was: {resources}, none of them changed; no new revision"
        ));
    } else {
        render::warning(format!(
            "{release} is as it was: {resources} applied again, no new revision"
        ));
    }
}

/// Says what the server could not judge, those of the same reason in one line. Gives how many.
fn tell_unjudged(unjudged: &[Unjudged]) -> usize {
    let mut by_reason: Vec<(&str, Vec<&ResourceRef>)> = Vec::new();
    for Unjudged { object, why } in unjudged {
        match by_reason.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, objects)) => objects.push(object),
            None => by_reason.push((why, vec![object])),
        }
    }
    for (why, objects) in by_reason {
        let objects: Vec<String> = objects.into_iter().map(render::resource).collect();
        let objects = render::names(&objects);
        render::warning(format!("the API server can't judge {objects} yet: {why}"));
    }
    unjudged.len()
}
