//! The queue by cases: time is an argument, nothing sleeps.

use super::*;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name(&'static str, u32);

impl Keyed for Name {
    fn lane(&self) -> &str {
        self.0
    }
}

fn edit() -> Work {
    Work {
        effect: Effect::Evaluate,
        cause: Cause::Edit("it".into()),
    }
}

fn child() -> Work {
    Work {
        effect: Effect::StatusOnly,
        cause: Cause::Child("c".into()),
    }
}

#[test]
fn what_others_of_ours_made_is_paced_and_other_look_ups_are_not() {
    let (now, key) = (Instant::now(), Name("a", 1));
    let run = |queue: &mut Queue<Name>, cause: Cause| {
        let effect = Effect::Evaluate;
        queue.push(&key, Work { effect, cause }, now);
        let ran = queue.pop(now).is_some();
        if ran {
            queue.done(&key, Disposition::Wait, now, 0.5);
        }
        ran
    };
    let at_once = |queue: &mut Queue<Name>, cause: fn(String) -> Cause| {
        (0..20).filter(|_| run(queue, cause("it".into()))).count()
    };
    for paced in [Cause::Peer, Cause::Child, Cause::Rule, Cause::Status] {
        let mut queue = Queue::new(Limits::new(4));
        assert_eq!(at_once(&mut queue, paced), 5);
        // What need not wait takes along what does.
        assert!(run(&mut queue, Cause::Input("it".into())));
    }
    for free in [Cause::Input, Cause::Edit] {
        assert_eq!(at_once(&mut Queue::new(Limits::new(4)), free), 20);
    }
}

fn drain(queue: &mut Queue<Name>, now: Instant) -> Vec<Name> {
    std::iter::from_fn(|| queue.pop(now).map(|(key, _)| key)).collect()
}

#[test]
fn pushes_coalesce_and_the_greater_effect_wins() {
    let (now, key) = (Instant::now(), Name("a", 1));
    let mut queue = Queue::new(Limits::new(4));
    queue.push(&key, child(), now);
    queue.push(&key, edit(), now);
    queue.push(&key, child(), now);
    let (got, work) = queue.pop(now).expect("ready");
    assert_eq!((got, work.effect), (key, Effect::Evaluate));
    assert_eq!(work.cause, Cause::Edit("it".into()));
    assert!(queue.pop(now).is_none());
}

#[test]
fn a_push_during_a_run_gives_exactly_one_more() {
    let (now, key) = (Instant::now(), Name("a", 1));
    let mut queue = Queue::new(Limits::new(4));
    queue.push(&key, edit(), now);
    assert!(queue.pop(now).is_some());
    for _ in 0..5 {
        queue.push(&key, edit(), now);
    }
    assert!(queue.pop(now).is_none(), "never twice at once");
    queue.done(&key, Disposition::Wait, now, 0.5);
    assert!(queue.pop(now).is_some());
    queue.done(&key, Disposition::Wait, now, 0.5);
    assert!(queue.pop(now).is_none());
}

#[test]
fn lanes_take_turns_and_none_takes_all() {
    let now = Instant::now();
    let mut queue = Queue::new(Limits::new(4));
    for i in 0..10 {
        queue.push(&Name("big", i), edit(), now);
    }
    queue.push(&Name("small", 0), edit(), now);
    assert_eq!(
        drain(&mut queue, now),
        [Name("big", 0), Name("small", 0), Name("big", 1)]
    );
    queue.done(&Name("big", 0), Disposition::Wait, now, 0.5);
    assert_eq!(drain(&mut queue, now), [Name("big", 2)]);
}

#[test]
fn failures_back_off_and_an_edit_resets() {
    let (start, key) = (Instant::now(), Name("a", 1));
    let mut queue = Queue::new(Limits::new(4));
    let mut now = start;
    queue.push(&key, edit(), now);
    for expect in [1, 2, 4, 8] {
        assert!(queue.pop(now).is_some());
        queue.done(&key, Disposition::Retry, now, 0.5);
        assert!(queue.pop(now).is_none());
        assert_eq!(queue.deadline(), Some(now + Duration::from_secs(expect)));
        now += Duration::from_secs(expect);
    }
    assert!(queue.pop(now).is_some());
    queue.done(&key, Disposition::Retry, now, 0.5);
    queue.push(&key, edit(), now);
    assert!(queue.pop(now).is_some(), "an edit does not wait");
    assert_eq!(queue.done(&key, Disposition::Retry, now, 0.5), 1);
}

#[test]
fn noisy_children_cost_one_run_a_second() {
    let (start, key) = (Instant::now(), Name("a", 1));
    let mut queue = Queue::new(Limits::new(4));
    let mut runs = 0;
    for tick in 0..600 {
        let now = start + Duration::from_millis(100 * tick);
        queue.push(&key, child(), now);
        while queue.pop(now).is_some() {
            runs += 1;
            queue.done(&key, Disposition::Wait, now, 0.5);
        }
    }
    assert!((55..=70).contains(&runs), "{runs} runs in 60 s");
    let late = start + Duration::from_secs(70);
    while queue.pop(late).is_some() {
        queue.done(&key, Disposition::Wait, late, 0.5);
    }
    assert!(queue.deadline().is_none(), "nothing left behind");
}

#[test]
fn what_is_paced_rests_from_what_instances_make_alone_r09() {
    let (start, key) = (Instant::now(), Name("a", 1));
    let seconds = Duration::from_secs;
    let evaluate = |cause: Cause| Work {
        effect: Effect::Evaluate,
        cause,
    };
    let paced = Disposition::Paced {
        pause: seconds(8),
        again: Some(seconds(18)),
    };
    let rests = || {
        let mut queue = Queue::new(Limits::new(4));
        queue.push(&key, edit(), start);
        assert!(queue.pop(start).is_some());
        // Its own write is seen while it runs, or after it.
        queue.push(&key, evaluate(Cause::Child("c".into())), start);
        queue.done(&key, paced, start, 0.5);
        queue.push(&key, evaluate(Cause::Peer("p".into())), start);
        assert!(queue.pop(start + seconds(7)).is_none());
        queue
    };
    let mut queue = rests();
    assert!(queue.pop(start + seconds(8)).is_some());
    queue.done(&key, paced, start + seconds(8), 0.5);
    let last = start + seconds(8 + 18);
    assert_eq!(queue.deadline(), Some(last), "once more when it is over");
    assert!(queue.pop(last).is_some());
    // It is over: what comes next is not left alone.
    queue.done(&key, Disposition::Wait, last, 0.5);
    queue.push(&key, evaluate(Cause::Child("c".into())), last);
    assert!(queue.pop(last).is_some());
    for free in [Cause::Edit("it".into()), Cause::Input("i".into())] {
        let mut queue = rests();
        queue.push(&key, evaluate(free), start + seconds(1));
        assert!(queue.pop(start + seconds(1)).is_some());
    }
    // Looks go on as ever, and leave the rest as it is.
    let mut queue = Queue::new(Limits::new(4));
    queue.push(&key, edit(), start);
    assert!(queue.pop(start).is_some());
    queue.done(&key, paced, start, 0.5);
    queue.push(&key, child(), start);
    let now = start + LOOK_DELAY;
    assert!(queue.pop(now).is_some());
    queue.done(&key, Disposition::Wait, now, 0.5);
    queue.push(&key, evaluate(Cause::Child("c".into())), now);
    assert!(queue.pop(start + seconds(7)).is_none());
    assert!(queue.pop(start + seconds(8)).is_some());
}

#[test]
fn a_drift_timer_comes_again() {
    let (now, key) = (Instant::now(), Name("a", 1));
    let mut queue = Queue::new(Limits::new(4));
    queue.push(&key, edit(), now);
    assert!(queue.pop(now).is_some());
    queue.done(&key, Disposition::After(Duration::from_secs(3)), now, 0.5);
    assert!(queue.pop(now + Duration::from_secs(2)).is_none());
    let (_, work) = queue.pop(now + Duration::from_secs(3)).expect("due");
    assert_eq!((work.effect, work.cause), (Effect::Evaluate, Cause::Timer));
}

#[test]
fn forgotten_keys_leave_nothing() {
    let now = Instant::now();
    let mut queue = Queue::new(Limits::new(4));
    for i in 0..4 {
        queue.push(&Name("a", i), edit(), now);
    }
    let (running, _) = queue.pop(now).expect("ready");
    for i in 0..4 {
        queue.forget(&Name("a", i));
    }
    assert!(queue.pop(now).is_none());
    queue.done(&running, Disposition::Retry, now, 0.5);
    assert!(queue.is_empty() && queue.deadline().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_sees_pushes_and_timers() {
    let queue = SharedQueue::new(Limits::new(2));
    let key = Name("a", 1);
    queue.push(&key, Effect::Evaluate, Cause::Edit("it".into()));
    let (got, _) = queue.next().await;
    queue.done(&got, Disposition::After(Duration::from_mins(1)));
    let start = Instant::now();
    let (_, work) = queue.next().await;
    assert_eq!(work.cause, Cause::Timer);
    assert!(start.elapsed() >= Duration::from_mins(1));
}

#[test]
fn looking_at_the_status_keeps_the_retry() {
    let (now, key) = (Instant::now(), Name("a", 1));
    let mut queue = Queue::new(Limits::new(4));
    queue.push(&key, edit(), now);
    assert!(queue.pop(now).is_some());
    queue.done(&key, Disposition::Retry, now, 0.5);
    queue.push(&key, child(), now);
    assert!(queue.pop(now).is_none(), "a look waits for more changes");
    let (_, work) = queue
        .pop(now + LOOK_DELAY)
        .expect("the child's change is looked at");
    assert_eq!(work.effect, Effect::StatusOnly);
    queue.done(&key, Disposition::Wait, now, 0.5);
    let (_, work) = queue
        .pop(now + Duration::from_secs(1))
        .expect("the retry is still due");
    assert_eq!((work.effect, work.cause), (Effect::Evaluate, Cause::Timer));
}

/// Says when it goes.
struct Guard(tokio::sync::mpsc::UnboundedSender<&'static str>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send("ended");
    }
}

#[tokio::test]
async fn what_runs_ends_with_whoever_drives_it() {
    let queue = SharedQueue::new(Limits::new(2));
    queue.push(&Name("a", 1), Effect::Evaluate, Cause::Edit("it".into()));
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let run = |_, _| {
        let guard = Guard(tell.clone());
        async move {
            let _ = guard.0.send("begun");
            std::future::pending::<Disposition>().await
        }
    };
    let stop = CancellationToken::new();
    tokio::select! {
        () = queue.drive(&stop, run) => panic!("it goes on for ever"),
        said = told.recv() => assert_eq!(said, Some("begun")),
    }
    assert_eq!(told.recv().await, Some("ended"));
}
