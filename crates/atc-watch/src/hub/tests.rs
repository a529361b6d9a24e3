use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::*;
use crate::change::Fingerprint;
use crate::dependency::{Dependency, Effect, Role};
use crate::health::{FaultKind, WatchState};
use fake::{Fake, Mode};

mod fake;

type Hub = WatchHub<&'static str>;

fn kind_of(plural: &str) -> GroupKind {
    GroupKind::new("", plural)
}

fn target(plural: &str, name: &str) -> Target {
    Target::new(ResourceRef::new("default", "", plural, name), "v1", plural)
}

/// A run of `owner` that looks this up and sees that it is there in this version, or that it is not.
fn look_up(hub: &Hub, owner: &'static str, plural: &str, name: &str, seen: Option<(&str, u64)>) {
    hub.begin(&owner);
    hub.interest(&owner, &target(plural, name));
    let seen = seen.map_or(Seen::Absent, |(uid, version)| {
        Seen::Present(Fingerprint::bare(uid, version.to_string()))
    });
    hub.commit(
        &owner,
        vec![Dependency {
            target: target(plural, name),
            role: Role::Input,
            seen,
        }],
    );
}

async fn until(what: &str, condition: impl Fn() -> bool) -> Duration {
    let begun = Instant::now();
    let done = timeout(Duration::from_hours(1), async {
        while !condition() {
            sleep(Duration::from_millis(20)).await;
        }
    });
    done.await
        .unwrap_or_else(|_| panic!("not within an hour: {what}"));
    begun.elapsed()
}

/// Who is woken next, and after how long.
async fn woken(hub: &Hub) -> (&'static str, Duration) {
    let begun = Instant::now();
    let wake = timeout(Duration::from_mins(10), hub.next())
        .await
        .expect("nobody is woken");
    assert_eq!(wake.effect, Effect::Evaluate);
    (wake.owner, begun.elapsed())
}

async fn silence(hub: &Hub, seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
    assert_eq!(hub.try_next(), None);
}

fn health(hub: &Hub, plural: &str) -> WatchHealth {
    hub.health()
        .into_iter()
        .find(|health| health.resource.plural == plural)
        .unwrap()
}

async fn synced(hub: &Hub, fake: &Fake, plural: &str) {
    until("synced", || {
        hub.synced(&kind_of(plural)) && fake.open(plural) == 1
    })
    .await;
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn an_object_appears_changes_and_goes() {
    let (fake, hub) = setup();
    fake.put("secrets", "other");
    look_up(&hub, "a", "secrets", "db", None);
    assert!(!hub.synced(&kind_of("secrets")));
    synced(&hub, &fake, "secrets").await;
    silence(&hub, 300).await;
    let version = fake.put("secrets", "db");
    assert_eq!(woken(&hub).await.0, "a");
    look_up(&hub, "a", "secrets", "db", Some(("uid-2", version)));
    fake.put("secrets", "other");
    silence(&hub, 300).await;
    fake.put("secrets", "db");
    assert_eq!(woken(&hub).await.0, "a");
    fake.delete("secrets", "db");
    assert_eq!(woken(&hub).await.0, "a");
    silence(&hub, 300).await;
    assert_eq!(
        fake.requests(&["secrets", "limit=500"]),
        1,
        "one list, however many watches"
    );
}

fn setup() -> (Fake, Hub) {
    let fake = Fake::default();
    let hub = WatchHub::new(fake.client());
    (fake, hub)
}

#[tokio::test(start_paused = true)]
async fn a_list_in_pages_decides_about_all_of_them() {
    let (fake, hub) = setup();
    fake.page(2);
    for name in ["a", "b", "c", "d", "e"] {
        fake.put("secrets", name);
    }
    look_up(&hub, "first", "secrets", "a", Some(("uid-1", 1)));
    look_up(&hub, "last", "secrets", "e", Some(("uid-5", 5)));
    look_up(&hub, "stale", "secrets", "d", Some(("uid-4", 3)));
    look_up(&hub, "gone", "secrets", "x", Some(("uid-0", 1)));
    let mut owners = [woken(&hub).await.0, woken(&hub).await.0];
    owners.sort_unstable();
    assert_eq!(owners, ["gone", "stale"]);
    silence(&hub, 60).await;
    assert_eq!(fake.requests(&["secrets", "limit=500"]), 3);
    assert_eq!(
        hub.latest(&target("secrets", "x").reference),
        Latest::Absent { at: 5 }
    );
    assert_eq!(
        hub.latest(&target("secrets", "c").reference),
        Latest::Unknown,
        "nobody wants c"
    );
    assert_eq!(health(&hub, "secrets").tracked, 4);
}

#[tokio::test(start_paused = true)]
async fn too_old_as_event_and_as_answer_means_compare_all_w38() {
    for by_event in [true, false] {
        let (fake, hub) = setup();
        let one = fake.put("secrets", "one");
        let two = fake.put("secrets", "two");
        fake.put("secrets", "three");
        look_up(&hub, "changed", "secrets", "one", Some(("uid-1", one)));
        look_up(&hub, "deleted", "secrets", "two", Some(("uid-2", two)));
        look_up(&hub, "same", "secrets", "three", Some(("uid-3", 3)));
        synced(&hub, &fake, "secrets").await;
        silence(&hub, 1).await;
        // A gap: things happen that no watch shows.
        fake.mode("secrets", Mode::Silent);
        fake.put("secrets", "one");
        fake.delete("secrets", "two");
        fake.compact("secrets");
        fake.mode("secrets", Mode::Serve);
        if by_event {
            fake.error_event("secrets", 410);
        } else {
            fake.close("secrets");
        }
        let mut owners = [woken(&hub).await, woken(&hub).await];
        owners.sort_unstable();
        assert!(
            owners.iter().all(|(_, after)| *after < 5 * SECOND),
            "{owners:?}"
        );
        assert_eq!(owners.map(|(owner, _)| owner), ["changed", "deleted"]);
        synced(&hub, &fake, "secrets").await;
        silence(&hub, 100).await;
    }
}

#[tokio::test(start_paused = true)]
async fn always_too_old_does_not_spin() {
    let (fake, hub) = setup();
    fake.mode("secrets", Mode::AnswerWatch(410));
    look_up(&hub, "a", "secrets", "db", None);
    sleep(300 * SECOND).await;
    assert!(
        fake.requests(&["secrets"]) < 60,
        "{}",
        fake.requests(&["secrets"])
    );
    fake.put("secrets", "db");
    assert!(
        woken(&hub).await.1 <= 30 * SECOND,
        "the lists alone show it"
    );
    fake.mode("secrets", Mode::Serve);
    assert!(until("open", || fake.open("secrets") == 1).await <= 60 * SECOND);
    assert_eq!(health(&hub, "secrets").fault, None);
}

const KINDS: [&str; 20] = [
    "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10", "k11", "k12", "k13", "k14",
    "k15", "k16", "k17", "k18", "k19",
];

#[tokio::test(start_paused = true)]
async fn all_are_back_soon_after_the_api_server_is() {
    for mode in [
        Mode::Refuse,
        Mode::Hang,
        Mode::Answer(503),
        Mode::Answer(401),
    ] {
        let (fake, hub) = setup();
        for plural in KINDS {
            look_up(&hub, plural, plural, "x", None);
        }
        for plural in KINDS {
            synced(&hub, &fake, plural).await;
        }
        for plural in KINDS {
            fake.mode(plural, mode);
            fake.close(plural);
        }
        sleep(300 * SECOND).await;
        for health in hub.health() {
            assert!(
                health.synced
                    && health.state == WatchState::Failing
                    && !health.is_well(60 * SECOND)
            );
            assert!(
                health.silence >= 200 * SECOND || matches!(mode, Mode::Answer(_)),
                "{mode:?} {health:?}"
            );
        }
        assert!(KINDS.iter().all(|plural| !hub.synced(&kind_of(plural))));
        assert_eq!(hub.latest(&target("k0", "x").reference), Latest::Unknown);
        let attempts: usize = KINDS.iter().map(|plural| fake.requests(&[plural])).sum();
        assert!(attempts < 20 * 40, "{mode:?}: {attempts}");
        for plural in KINDS {
            fake.put(plural, "x");
            fake.mode(plural, Mode::Serve);
        }
        for _ in KINDS {
            let (owner, after) = woken(&hub).await;
            assert!(after <= 60 * SECOND, "{mode:?} {owner} {after:?}");
        }
        assert!(
            until("back", || KINDS.iter().all(|plural| fake.open(plural) == 1)).await
                <= 60 * SECOND
        );
        assert!(
            hub.health()
                .iter()
                .all(|health| health.is_well(60 * SECOND) && health.fault.is_none())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_harms_no_other() {
    let (fake, hub) = setup();
    for (index, mode) in [
        Mode::Hang,
        Mode::Answer(403),
        Mode::Answer(500),
        Mode::Refuse,
    ]
    .into_iter()
    .cycle()
    .take(19)
    .enumerate()
    {
        fake.mode(KINDS[index], mode);
        look_up(&hub, KINDS[index], KINDS[index], "x", None);
    }
    sleep(10 * SECOND).await;
    look_up(&hub, "well", "k19", "x", None);
    assert!(until("synced", || hub.synced(&kind_of("k19"))).await <= 6 * SECOND);
    fake.put("k19", "x");
    assert!(woken(&hub).await.1 < SECOND);
    let forbidden = health(&hub, "k1");
    let fault = forbidden.fault.clone().unwrap();
    assert_eq!(
        (fault.kind, forbidden.synced),
        (FaultKind::Forbidden, false)
    );
    assert!(!forbidden.is_well(60 * SECOND) && forbidden.silence <= 30 * SECOND);
    assert_eq!(
        fault.to_string(),
        "the api server answered 403: made to answer 403"
    );
    assert_eq!(
        health(&hub, "k0")
            .fault
            .map_or(FaultKind::Unreachable, |fault| fault.kind),
        FaultKind::Unreachable
    );
    // Once it is allowed, what was missed is found.
    fake.put("k1", "x");
    fake.mode("k1", Mode::Serve);
    let (owner, after) = woken(&hub).await;
    assert!(owner == "k1" && after <= 30 * SECOND);
    // Taken back and given again.
    until("watching", || fake.open("k1") == 1).await;
    look_up(&hub, "k1", "k1", "x", Some(("uid-2", 2)));
    fake.mode("k1", Mode::AnswerWatch(403));
    fake.close("k1");
    until("noticed", || !hub.synced(&kind_of("k1"))).await;
    fake.delete("k1", "x");
    fake.compact("k1");
    fake.mode("k1", Mode::Serve);
    assert_eq!(woken(&hub).await.0, "k1");
}

#[tokio::test(start_paused = true)]
async fn a_connection_gone_silent_is_noticed_within_a_minute() {
    let (fake, hub) = setup();
    look_up(&hub, "a", "secrets", "db", None);
    synced(&hub, &fake, "secrets").await;
    fake.bookmark("secrets");
    sleep(20 * SECOND).await;
    fake.mode("secrets", Mode::Silent);
    fake.put("secrets", "db");
    fake.mode("secrets", Mode::Serve);
    let (_, after) = woken(&hub).await;
    assert!(after <= 60 * SECOND, "{after:?}");
    // And if the server accepts watches but never says anything, it is asked again and again, but calmly.
    look_up(&hub, "a", "secrets", "db", Some(("uid-1", 1)));
    fake.mode("secrets", Mode::Silent);
    fake.close("secrets");
    let before = fake.requests(&["watch=true"]);
    sleep(600 * SECOND).await;
    let asked = fake.requests(&["watch=true"]) - before;
    assert!((8..=20).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_is_resumed_where_it_was() {
    let (fake, hub) = setup();
    look_up(&hub, "a", "secrets", "db", None);
    synced(&hub, &fake, "secrets").await;
    for _ in 0..5 {
        sleep(40 * SECOND).await;
        fake.close("secrets");
        synced(&hub, &fake, "secrets").await;
    }
    fake.put("secrets", "other");
    sleep(SECOND).await;
    fake.close("secrets");
    fake.put("secrets", "db");
    assert!(woken(&hub).await.1 < SECOND);
    assert_eq!(fake.requests(&["secrets", "limit=500"]), 1);
    assert_eq!(fake.requests(&["watch=true", "resourceVersion=1"]), 1);
    let seconds: Vec<String> = (35..=45)
        .map(|seconds| format!("timeoutSeconds={seconds}"))
        .collect();
    let bounded: usize = seconds
        .iter()
        .map(|seconds| fake.requests(&[seconds]))
        .sum();
    assert_eq!(
        bounded,
        fake.requests(&["watch=true", "allowWatchBookmarks=true"])
    );
    assert_eq!(bounded, fake.requests(&["watch=true"]));
    // A server that ends each at once is not flooded.
    let before = fake.requests(&["watch=true"]);
    fake.mode("secrets", Mode::Close);
    fake.close("secrets");
    sleep(300 * SECOND).await;
    let asked = fake.requests(&["watch=true"]) - before;
    assert!(asked < 30, "{asked}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_leads_to_a_new_try() {
    let (fake, hub) = setup();
    look_up(&hub, "a", "secrets", "db", None);
    synced(&hub, &fake, "secrets").await;
    fake.garbage("secrets");
    until("noticed", || {
        health(&hub, "secrets")
            .fault
            .is_some_and(|fault| fault.kind == FaultKind::Unreadable)
    })
    .await;
    fake.put("secrets", "db");
    assert!(woken(&hub).await.1 <= SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_kind_vanishes_and_comes_back() {
    let (fake, hub) = setup();
    let version = fake.put("widgets", "x");
    look_up(&hub, "a", "widgets", "x", Some(("uid-1", version)));
    look_up(&hub, "b", "widgets", "y", None);
    look_up(&hub, "c", "secrets", "db", None);
    synced(&hub, &fake, "widgets").await;
    silence(&hub, 10).await;
    fake.mode("widgets", Mode::Answer(404));
    fake.close("widgets");
    assert_eq!(woken(&hub).await.0, "a");
    look_up(&hub, "a", "widgets", "x", None);
    silence(&hub, 600).await;
    let gone = health(&hub, "widgets");
    assert!(
        gone.state == WatchState::Gone && !gone.synced && gone.is_well(60 * SECOND),
        "{gone:?}"
    );
    assert!(fake.requests(&["widgets"]) < 60);
    fake.put("secrets", "db");
    assert_eq!(woken(&hub).await.0, "c", "others do not notice");
    // Back, with other objects of the same names.
    fake.delete("widgets", "x");
    fake.put("widgets", "x");
    fake.put("widgets", "y");
    fake.mode("widgets", Mode::Serve);
    let mut owners = [woken(&hub).await, woken(&hub).await];
    owners.sort_unstable();
    assert_eq!(owners.map(|(owner, _)| owner), ["a", "b"]);
    assert!(owners.iter().all(|(_, after)| *after <= 30 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_somebody_just_found_is_looked_for_at_once() {
    let (fake, hub) = setup();
    fake.mode("widgets", Mode::Answer(404));
    look_up(&hub, "a", "widgets", "x", None);
    sleep(300 * SECOND).await;
    fake.mode("widgets", Mode::Serve);
    hub.installed(&kind_of("widgets"));
    assert!(until("synced", || hub.synced(&kind_of("widgets"))).await <= 2 * SECOND);
    fake.mode("widgets", Mode::Answer(404));
    fake.close("widgets");
    sleep(300 * SECOND).await;
    fake.put("widgets", "x");
    fake.mode("widgets", Mode::Serve);
    look_up(&hub, "b", "widgets", "y", None);
    assert!(woken(&hub).await.1 <= 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn another_version_of_a_kind_is_taken_when_the_first_is_no_longer_served() {
    let (fake, hub) = setup();
    look_up(&hub, "a", "widgets", "x", None);
    synced(&hub, &fake, "widgets").await;
    let newer = Target {
        version: "v2".into(),
        ..target("widgets", "y")
    };
    hub.begin(&"b");
    hub.interest(&"b", &newer);
    hub.commit(
        &"b",
        vec![Dependency {
            target: newer,
            role: Role::Input,
            seen: Seen::Absent,
        }],
    );
    sleep(100 * SECOND).await;
    assert_eq!(fake.requests(&["/v2/"]), 0, "one watch is enough");
    fake.mode("v1/widgets", Mode::Answer(404));
    fake.close("widgets");
    until("the other version", || {
        fake.requests(&["/v2/", "watch=true"]) > 0
    })
    .await;
    fake.put("widgets", "x");
    assert_eq!(woken(&hub).await.0, "a");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_nobody_needs_ends_after_a_grace() {
    let (fake, hub) = setup();
    look_up(&hub, "a", "secrets", "db", None);
    look_up(&hub, "b", "secrets", "db", None);
    synced(&hub, &fake, "secrets").await;
    hub.forget(&"a");
    sleep(100 * SECOND).await;
    assert_eq!(fake.open("secrets"), 1, "b still needs it");
    hub.forget(&"b");
    sleep(20 * SECOND).await;
    assert_eq!(fake.open("secrets"), 1, "not at once");
    look_up(&hub, "a", "secrets", "db", None);
    sleep(100 * SECOND).await;
    assert_eq!(fake.requests(&["limit=500"]), 1, "in time: the same watch");
    hub.forget(&"a");
    let after = until("the end", || {
        fake.open("secrets") == 0 && hub.health().is_empty()
    })
    .await;
    assert!(after >= GRACE && after <= GRACE + 2 * SWEEP, "{after:?}");
    // And all begins anew.
    look_up(&hub, "a", "secrets", "db", None);
    synced(&hub, &fake, "secrets").await;
    fake.put("secrets", "db");
    assert_eq!(woken(&hub).await.0, "a");
}

#[tokio::test(start_paused = true)]
async fn all_ends_with_the_hub() {
    let (fake, hub) = setup();
    look_up(&hub, "a", "secrets", "db", None);
    fake.mode("widgets", Mode::Refuse);
    look_up(&hub, "a", "secrets", "db", None);
    synced(&hub, &fake, "secrets").await;
    let other = hub.clone();
    drop(hub);
    sleep(100 * SECOND).await;
    assert_eq!(fake.open("secrets"), 1);
    drop(other);
    sleep(SECOND).await;
    assert_eq!(fake.open("secrets"), 0);
    let before = fake.requests(&[]);
    sleep(600 * SECOND).await;
    assert_eq!(fake.requests(&[]), before);
}

#[tokio::test(start_paused = true)]
async fn many_owners_one_watch_and_none_is_forgotten() {
    let (fake, hub) = setup();
    for plural in KINDS {
        look_up(&hub, plural, "secrets", "db", None);
    }
    synced(&hub, &fake, "secrets").await;
    let takers: Vec<_> = (0..4)
        .map(|_| {
            let hub = hub.clone();
            tokio::spawn(async move {
                let mut taken = Vec::new();
                for _ in 0..5 {
                    taken.push(hub.next().await.owner);
                }
                taken
            })
        })
        .collect();
    tokio::task::yield_now().await;
    fake.put("secrets", "db");
    let mut owners = Vec::new();
    for taker in takers {
        owners.extend(timeout(SECOND, taker).await.unwrap().unwrap());
    }
    owners.sort_unstable();
    let mut all = KINDS;
    all.sort_unstable();
    assert_eq!(owners, all);
    assert_eq!(
        (fake.open("secrets"), fake.requests(&["limit=500"])),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_takes_what_waits_for_its_owner() {
    let (fake, hub) = setup();
    look_up(&hub, "a", "secrets", "db", None);
    synced(&hub, &fake, "secrets").await;
    let version = fake.put("secrets", "db");
    until("due", || hub.pending() == 1).await;
    hub.begin(&"a");
    assert_eq!(hub.pending(), 1, "it may look at the status only");
    hub.fail(&"a", Vec::new());
    hub.begin_evaluation(&"a");
    let seen = Seen::Present(Fingerprint::bare("uid-1", version.to_string()));
    hub.commit(
        &"a",
        vec![Dependency {
            target: target("secrets", "db"),
            role: Role::Input,
            seen,
        }],
    );
    silence(&hub, 100).await;
    hub.begin(&"a");
    hub.interest(&"a", &target("secrets", "db"));
    fake.put("secrets", "db");
    silence(&hub, 100).await;
    hub.fail(&"a", Vec::new());
    assert_eq!(woken(&hub).await.0, "a");
    fake.put("secrets", "db");
    until("due", || hub.pending() == 1).await;
    hub.forget(&"a");
    silence(&hub, 1).await;
}
