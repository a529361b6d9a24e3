//! What is given while a server gives nothing, and who waits for whom.

use futures::FutureExt as _;

use super::*;

/// Until when something must have happened that takes a moment.
const SOON: Duration = Duration::from_secs(8);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("in time")
}

#[tokio::test]
async fn whatever_a_server_says_the_bytes_from_before_are_given() {
    let (server, dir) = (Server::start().await, tempfile::tempdir().unwrap());
    let url = server.on("/m", ok(MODULE, ""));
    get(&cached_in(&dir), &url).await.unwrap();
    for answer in [
        status("401 Unauthorized", ""),
        status("403 Forbidden", ""),
        status("404 Not Found", ""),
        status("500 Oh", ""),
        status("302 Found", "Location: ftp://h/\r\n"),
        ok(MODULE, "Content-Encoding: br\r\n"),
        ok(b"\x1f\x8b\x08 nothing", ""),
        ok(&vec![0; 100_001], ""),
        Answer::Raw(Vec::new()),
    ] {
        server.on("/m", answer);
        let restarted = cached_in(&dir);
        let stale = get(&restarted, &url).await.unwrap();
        assert_eq!((&stale.bytes[..], stale.origin), (MODULE, Origin::Stale));
        let fresh = cached_in(&dir).fetch_fresh(&at(&url), None).await;
        assert!(fresh.is_err(), "fresh means fresh");
    }
}

#[tokio::test]
async fn a_slow_server_is_not_waited_for_and_counts_later() {
    let (server, dir) = (Server::start().await, tempfile::tempdir().unwrap());
    let url = server.on("/m", ok(MODULE, ""));
    get(&cached_in(&dir), &url).await.unwrap();
    let late = REFRESH_WAIT + Duration::from_secs(1);
    server.on("/m", Answer::Late(late, whole("200 OK", b"\0asm new", "")));
    let restarted = cached_in(&dir);
    let both = [get(&restarted, &url), get(&restarted, &url)];
    for stale in soon(futures::future::join_all(both)).await {
        let stale = stale.unwrap();
        assert_eq!((&stale.bytes[..], stale.origin), (MODULE, Origin::Stale));
    }
    let at_once = get(&restarted, &url).now_or_never();
    assert!(at_once.is_none_or(|given| given.unwrap().origin == Origin::Stale));
    soon(async {
        while get(&restarted, &url).await.unwrap().bytes != b"\0asm new"[..] {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(server.hits("/m"), 2, "one refresh");
}

#[tokio::test]
async fn slow_servers_stop_neither_others_nor_files() {
    let (server, dir) = (Server::start().await, tempfile::tempdir().unwrap());
    let fetcher = plain();
    let slow = (0..2 * MAX_AT_ONCE).map(|n| {
        let (fetcher, url) = (
            fetcher.clone(),
            server.on(&format!("/{n}"), Answer::Trickle),
        );
        tokio::spawn(async move { get(&fetcher, &url).await })
    });
    let slow: Vec<_> = slow.collect();
    let started = || -> usize {
        (0..2 * MAX_AT_ONCE)
            .map(|n| server.hits(&format!("/{n}")))
            .sum()
    };
    soon(async {
        while started() < MAX_AT_ONCE_PER_HOST {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let other = server
        .on("/good", ok(MODULE, ""))
        .replace("127.0.0.1", "localhost");
    assert_eq!(soon(get(&fetcher, &other)).await.unwrap().bytes, MODULE);
    assert_eq!(started(), MAX_AT_ONCE_PER_HOST);
    let file = dir.path().join("m.wasm");
    std::fs::write(&file, MODULE).unwrap();
    let read = soon(get(&fetcher, file.to_str().unwrap())).await;
    assert_eq!(read.unwrap().bytes, MODULE);
    slow.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn who_pauses_leaves_the_place_to_others() {
    let server = Server::start().await;
    let fetcher = fetcher(|options| options.tries = 2);
    let busy = (0..MAX_AT_ONCE_PER_HOST).map(|n| {
        let (fetcher, url) = (
            fetcher.clone(),
            server.on(&format!("/{n}"), status("503 Busy", "Retry-After: 60\r\n")),
        );
        tokio::spawn(async move { get(&fetcher, &url).await })
    });
    let busy: Vec<_> = busy.collect();
    soon(async {
        while (0..MAX_AT_ONCE_PER_HOST).any(|n| server.hits(&format!("/{n}")) == 0) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let url = server.on("/good", ok(MODULE, ""));
    assert_eq!(soon(get(&fetcher, &url)).await.unwrap().bytes, MODULE);
    busy.iter().for_each(tokio::task::JoinHandle::abort);
}
