use super::*;

fn job(name: &str) -> ResourceRef {
    ResourceRef::new("n", "batch", "Job", name)
}

fn waits(why: &str) -> Verdict {
    Verdict::InProgress(why.into())
}

#[test]
fn plain_lines_are_few() {
    let begin = Instant::now();
    let mut plain = Plain::new(begin);
    let mut take = |name: &str, verdict: &Verdict, seconds: u64| {
        let object = job(name);
        let progress = Progress::Waiting {
            object: &object,
            verdict,
        };
        plain.take(progress, begin + Duration::from_secs(seconds))
    };
    // What is ready soon leaves no line.
    assert_eq!(take("a", &waits("0 of 1"), 0), None);
    assert_eq!(take("b", &waits("0 of 1"), 1), None);
    let line = take("b", &waits("1 of 2"), 6).unwrap();
    assert_eq!(line, "waiting since 6 s for Job/a: 0 of 1; Job/b: 1 of 2");
    // Nothing else for a while, and nothing twice.
    assert_eq!(take("b", &waits("2 of 2"), 8), None);
    assert_eq!(take("b", &waits("1 of 2"), 12), None);
    assert_eq!(
        take("b", &Verdict::Ready, 13).unwrap(),
        "waiting since 13 s for Job/a: 0 of 1"
    );
    assert_eq!(take("a", &Verdict::Failed("lost".into()), 20), None);
    assert_eq!(take("a", &Verdict::Ready, 21), None);
    for name in ["c", "d", "e", "f"] {
        take(name, &waits("not yet"), 22);
    }
    let line = take("f", &waits("soon"), 30).unwrap();
    assert!(line.ends_with("Job/e: not yet; and 1 more"), "{line}");
}

#[test]
fn a_stage_begins_anew() {
    let begin = Instant::now();
    let mut plain = Plain::new(begin);
    let (object, verdict) = (job("a"), waits("x"));
    let waiting = Progress::Waiting {
        object: &object,
        verdict: &verdict,
    };
    let applying = Progress::Applying {
        stage: 2,
        stages: 3,
        objects: 1,
    };
    plain.take(waiting, begin);
    let later = begin + Duration::from_mins(1);
    assert_eq!(plain.take(applying, later), None);
    assert_eq!(plain.take(waiting, later + Duration::from_secs(1)), None);
    assert_eq!(
        step(applying).unwrap(),
        "applying 1 resource of stage 2 of 3"
    );
    let only = Progress::Applying {
        stage: 1,
        stages: 1,
        objects: 4,
    };
    assert_eq!(step(only).unwrap(), "applying 4 resources");
    assert_eq!(
        step(Progress::Removing { objects: 2 }).unwrap(),
        "removing 2 resources"
    );
}

#[test]
fn a_terminal_has_a_line_for_each_and_a_bound() {
    let mut terminal = Terminal::new(ProgressDrawTarget::hidden());
    let mut take = |name: &str, verdict: &Verdict| {
        let object = job(name);
        terminal.take(Progress::Waiting {
            object: &object,
            verdict,
        });
        let lines = terminal.waiting.values().flatten().count();
        let more = terminal.more.as_ref().map(ProgressBar::message);
        let first = terminal
            .waiting
            .values()
            .flatten()
            .next()
            .map(ProgressBar::message);
        (lines, more, first)
    };
    let (lines, more, first) = take("a", &waits("0 of 1\u{1b}[2J"));
    assert_eq!((lines, more), (1, None));
    assert_eq!(first.as_deref(), Some("Job/a: 0 of 1\\u{1b}[2J"));
    assert_eq!(
        take("a", &waits("1 of 1")).2.as_deref(),
        Some("Job/a: 1 of 1")
    );
    assert_eq!(take("a", &Verdict::Ready).0, 0);
    for number in 0..LINES + 3 {
        take(&format!("j{number}"), &waits("x"));
    }
    let (lines, more, _) = take("j0", &waits("y"));
    assert_eq!((lines, more.as_deref()), (LINES, Some("and 3 resources")));
    terminal.clear();
    assert!(terminal.waiting.is_empty() && terminal.more.is_none());
}
