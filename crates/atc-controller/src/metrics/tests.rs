use atc_engine::watch::{Resource, WatchState};

use super::*;

fn airway(name: &str) -> Arc<str> {
    name.into()
}

#[test]
fn evaluations_are_counted_by_airway_until_it_goes() {
    let metrics = Metrics::bare();
    metrics.evaluated(&airway("a.x.dev"), false, Duration::from_millis(7));
    metrics.evaluated(&airway("a.x.dev"), true, Duration::from_secs(2));
    metrics.evaluated(&airway("b.x.dev"), false, Duration::ZERO);
    let text = metrics.text().unwrap();
    for line in [
        r#"atc_evaluations_total{airway="a.x.dev",result="ok"} 1"#,
        r#"atc_evaluations_total{airway="a.x.dev",result="failed"} 1"#,
        r#"atc_evaluation_duration_seconds_bucket{le="0.01",airway="a.x.dev"} 1"#,
        r#"atc_evaluation_duration_seconds_count{airway="a.x.dev"} 2"#,
        "# UNIT atc_evaluation_duration_seconds seconds",
        "# EOF",
    ] {
        assert!(
            text.lines().any(|there| there == line),
            "{line} is not in:\n{text}"
        );
    }
    metrics.forget("a.x.dev");
    let text = metrics.text().unwrap();
    assert!(
        !text.contains("a.x.dev") && text.contains("b.x.dev"),
        "{text}"
    );
}

/// However many Airways come, what is told has a bound.
#[test]
fn airways_beyond_the_bound_are_counted_together() {
    let metrics = Metrics::bare();
    for nth in 0..MAX_AIRWAYS + 10 {
        metrics.evaluated(&airway(&format!("a{nth}")), false, Duration::ZERO);
    }
    let text = metrics.text().unwrap();
    let others = r#"atc_evaluations_total{airway="_others",result="ok"} 10"#;
    assert!(text.lines().any(|line| line == others));
    let lines = text
        .lines()
        .filter(|line| line.starts_with("atc_evaluations_total"));
    assert_eq!(lines.count(), MAX_AIRWAYS + 1);
}

fn told(watches: Vec<WatchHealth>) -> String {
    let mut metrics = Metrics::bare();
    let watches = Watches(move || watches.clone());
    metrics.registry.register_collector(Box::new(watches));
    metrics.text().unwrap()
}

fn watch(group: &str, kind: &str, silence: Duration) -> WatchHealth {
    WatchHealth {
        resource: Resource::new(group, "v1", kind, "any"),
        state: WatchState::Watching,
        synced: true,
        silence,
        failures: 0,
        fault: None,
        tracked: 1,
    }
}

#[test]
fn the_silence_of_each_watch_is_told_by_kind_r13() {
    let text = told(vec![
        watch("", "Secret", Duration::from_millis(1_500)),
        watch("apps", "Deployment", Duration::from_millis(40_250)),
    ]);
    for line in [
        "# TYPE atc_watch_silence_seconds gauge",
        r#"atc_watch_silence_seconds{kind="Secret"} 1.5"#,
        r#"atc_watch_silence_seconds{kind="Deployment.apps"} 40.25"#,
    ] {
        assert!(
            text.lines().any(|there| there == line),
            "{line} is not in:\n{text}"
        );
    }
}

#[test]
fn kinds_beyond_the_bound_are_not_told() {
    let kinds = 0..MAX_KINDS + 10;
    let watches = kinds.map(|nth| watch("x.dev", &format!("K{nth}"), Duration::ZERO));
    let text = told(watches.collect());
    let samples = text
        .lines()
        .filter(|line| line.starts_with("atc_watch_silence_seconds{"));
    assert_eq!(samples.count(), MAX_KINDS);
}
