//! Fetches from a server that does what real ones should not.

use std::error::Error as _;
use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

use super::*;
use std::time::Instant;

use crate::MAX_REDIRECTS;
use crate::error::ErrorKind;
use crate::gate::{MAX_AT_ONCE, MAX_AT_ONCE_PER_HOST};
use crate::verify::sha256_hex;

mod former;
mod places;
mod server;
mod stale;

use server::{Answer, Server, ok, status, whole};

const MODULE: &[u8] = b"\0asm\x01\0\0\0 and a few bytes more";

fn fetcher(change: impl FnOnce(&mut FetchOptions)) -> Fetcher {
    let mut options = FetchOptions {
        max_bytes: 100_000,
        tries: 1,
        ..FetchOptions::default()
    };
    change(&mut options);
    Fetcher::new(options)
}

fn plain() -> Fetcher {
    fetcher(|_| {})
}

fn cached_in(dir: &tempfile::TempDir) -> Fetcher {
    fetcher(|options| options.cache_dir = Some(dir.path().to_owned()))
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn at(text: &str) -> Location {
    text.parse().unwrap()
}

async fn get(fetcher: &Fetcher, url: &str) -> Result<Artifact, ArtifactError> {
    fetcher.fetch(&at(url), None).await
}

/// An error and all its sources in one text.
fn chain(error: &ArtifactError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(next) = source {
        text = format!("{text}: {next}");
        source = next.source();
    }
    text
}

#[tokio::test]
async fn a_document_comes_with_its_digests() {
    let server = Server::start().await;
    let url = server.on("/a.wasm?version=1&x=y", ok(MODULE, ""));
    let artifact = get(&plain(), &url).await.unwrap();
    assert_eq!(
        (&artifact.bytes[..], artifact.origin),
        (MODULE, Origin::Server)
    );
    assert_eq!(artifact.sha256, sha256_hex(MODULE));
    assert_eq!(artifact.sha1.len(), 40);
    let request = &server.requests("/a.wasm?version=1&x=y")[0].to_ascii_lowercase();
    assert!(!request.contains("accept-encoding") && request.contains("user-agent: atc-artifact/"));
}

#[tokio::test]
async fn what_ended_since_it_was_asked_for_is_not_downloaded_again() {
    let server = Server::start().await;
    let url = server.on("/a.wasm", ok(MODULE, ""));
    let Location::Http(http) = at(&url) else {
        panic!("{url} is no URL");
    };
    let (remote, dir) = (Remote::http(http), tempfile::tempdir().unwrap());
    let fetcher = cached_in(&dir);
    let asked = tokio::time::Instant::now();
    let first = fetcher.download(&remote, asked).await.unwrap();
    let second = fetcher.download(&remote, asked).await.unwrap();
    assert_eq!(first.digests.sha256, second.digests.sha256);
    // Also where nobody holds it any more.
    drop((first, second));
    fetcher.download(&remote, asked).await.unwrap();
    assert_eq!(server.requests("/a.wasm").len(), 1);
    // Whoever asks after that wants to know anew.
    let later = tokio::time::Instant::now();
    fetcher.download(&remote, later).await.unwrap();
    assert_eq!(server.requests("/a.wasm").len(), 2);
}

#[tokio::test]
async fn gzip_is_told_by_bytes_r127_p08() {
    let (server, z) = (Server::start().await, gzip(MODULE));
    let members = [gzip(&MODULE[..5]), gzip(&MODULE[5..])].concat();
    for (path, body, headers) in [
        ("/plain.gz", MODULE.to_vec(), ""),
        ("/a.wasm.gz", z.clone(), ""),
        ("/a.wasm", z.clone(), ""),
        ("/b.wasm", z.clone(), "Content-Encoding: gzip\r\n"),
        ("/b.wasm.gz", z.clone(), "Content-Encoding: gzip\r\n"),
        ("/c.wasm.gz", members, ""),
        ("/d.wasm.gz", gzip(&z), "Content-Encoding: gzip\r\n"),
        ("/e.wasm.gz?x=1", z.clone(), ""),
        ("/f.wasm", MODULE.to_vec(), "Content-Encoding: gzip\r\n"),
    ] {
        let url = server.on(path, ok(&body, headers));
        assert_eq!(get(&plain(), &url).await.unwrap().bytes, MODULE, "{path}");
    }
    let url = server.on("/g", ok(MODULE, "Content-Encoding: br\r\n"));
    assert!(chain(&get(&plain(), &url).await.unwrap_err()).contains("content encoding 'br'"));
}

#[tokio::test]
async fn what_breaks_off_is_an_error_r127() {
    let (server, z) = (Server::start().await, gzip(MODULE));
    let cut = |body: &[u8], keep: usize| {
        let whole = whole("200 OK", body, "");
        Answer::Raw(whole[..whole.len() - body.len() + keep].to_vec())
    };
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\0asm\r\n";
    for (path, answer) in [
        ("/half.gz", ok(&z[..z.len() / 2], "")),
        ("/no-sum.gz", ok(&z[..z.len() - 4], "")),
        ("/half", cut(MODULE, MODULE.len() / 2)),
        ("/none", cut(MODULE, 0)),
        ("/all but one", cut(MODULE, MODULE.len() - 1)),
        (
            "/encoded",
            ok(&z[..z.len() - 9], "Content-Encoding: gzip\r\n"),
        ),
        ("/chunked", Answer::Raw(chunked.to_vec())),
        ("/nothing", Answer::Raw(Vec::new())),
        (
            "/not-http",
            Answer::Raw(b"220 smtp.example.com ready\r\n".to_vec()),
        ),
    ] {
        let url = server.on(&path.replace(' ', "%20"), answer);
        let error = get(&plain(), &url).await.unwrap_err();
        assert!(chain(&error).contains(&url), "{path}: {}", chain(&error));
    }
}

#[tokio::test]
async fn statuses_are_errors_that_name_themselves() {
    let server = Server::start().await;
    for (line, kind) in [
        ("400 Bad Request", ErrorKind::Refused),
        ("401 Unauthorized", ErrorKind::Refused),
        ("404 Not Found", ErrorKind::Refused),
        ("410 Gone", ErrorKind::Refused),
        ("429 Too Many Requests", ErrorKind::Unavailable),
        ("500 Oh", ErrorKind::Unavailable),
        ("503 Busy", ErrorKind::Unavailable),
        ("206 Partial Content", ErrorKind::Refused),
        ("300 Multiple Choices", ErrorKind::Refused),
        ("304 Not Modified", ErrorKind::Refused),
    ] {
        let url = server.on("/s.wasm", status(line, ""));
        let error = get(&plain(), &url).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{line}");
        let text = chain(&error);
        assert!(text.contains(&line[..3]) && text.contains(&url), "{text}");
    }
}

#[tokio::test]
async fn redirects_are_followed_by_rules_r123() {
    let server = Server::start().await;
    let end = server.on("/end", ok(MODULE, ""));
    for code in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
    ] {
        let url = server.on("/start", status(code, "Location: /end#part\r\n"));
        assert_eq!(get(&plain(), &url).await.unwrap().bytes, MODULE, "{code}");
    }
    for (to, words) in [
        ("/start", "too many redirects"),
        ("file:///etc/passwd", "not an http or https URL"),
        ("ftp://h/", "not an http or https URL"),
        ("http://[", "not a URL"),
    ] {
        let url = server.on(
            "/start",
            status("302 Found", &format!("Location: {to}\r\n")),
        );
        let error = get(&plain(), &url).await.unwrap_err();
        assert!(chain(&error).contains(words), "{to}: {}", chain(&error));
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    assert_eq!(server.hits("/start"), 5 + MAX_REDIRECTS + 1 + 3);
    let long: Vec<String> = (0..MAX_REDIRECTS)
        .map(|n| {
            let next = if n == 0 {
                end.clone()
            } else {
                server.url(&format!("/hop{}", n - 1))
            };
            server.on(
                &format!("/hop{n}"),
                status("302 Found", &format!("Location: {next}\r\n")),
            )
        })
        .collect();
    assert_eq!(
        get(&plain(), &long[MAX_REDIRECTS - 1]).await.unwrap().bytes,
        MODULE
    );
}

#[tokio::test]
async fn credentials_never_leave_their_host_r123() {
    let (home, other) = (Server::start().await, Server::start().await);
    other.on("/m", ok(MODULE, ""));
    home.on("/m", ok(MODULE, ""));
    home.on(
        "/away",
        status("302 Found", &format!("Location: {}\r\n", other.url("/m"))),
    );
    home.on("/near", status("302 Found", "Location: /m\r\n"));
    let with = |path: &str| home.url(path).replace("http://", "http://joe:secret@");
    let authorized = |requests: Vec<String>| {
        requests
            .iter()
            .filter(|one| one.contains("uthorization: Basic"))
            .count()
    };
    get(&plain(), &with("/away")).await.unwrap();
    get(&plain(), &with("/near")).await.unwrap();
    assert_eq!(
        authorized([home.requests("/away"), home.requests("/near")].concat()),
        2,
        "they reach their host"
    );
    assert_eq!(
        (
            authorized(home.requests("/m")),
            authorized(other.requests("/m"))
        ),
        (1, 0)
    );
}

#[tokio::test]
async fn errors_hold_no_password() {
    let server = Server::start().await;
    let loops = server.on(
        "/loop",
        status("302 Found", "Location: /loop?token=secret\r\n"),
    );
    let failures = [
        server.on("/404?token=secret", status("404 Not Found", "")),
        server.on(
            "/cut?token=secret",
            Answer::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n".to_vec()),
        ),
        server.on("/bad.gz?token=secret", ok(b"\x1f\x8b\x08 nothing", "")),
        server.on("/large?token=secret", ok(&vec![0; 100_001], "")),
        server.on("/br?token=secret", ok(MODULE, "Content-Encoding: br\r\n")),
        loops,
        "http://127.0.0.1:1/m?token=secret".to_owned(),
    ];
    for url in failures {
        let url = url.replace("http://", "http://joe:secret@");
        let error = get(&plain(), &url).await.unwrap_err();
        let text = format!("{} {error:?}", chain(&error));
        assert!(
            !text.contains("secret") && !text.contains("am9lOnNlY3JldA"),
            "{text}"
        );
    }
    let error = plain()
        .fetch(
            &at(&server
                .on("/m", ok(MODULE, ""))
                .replace("http://", "http://joe:secret@")),
            Some("00"),
        )
        .await;
    assert!(!chain(&error.unwrap_err()).contains("secret"));
}

#[tokio::test]
async fn sizes_are_bounded() {
    let server = Server::start().await;
    let chunked = |size: usize| {
        let mut answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        answer.extend(format!("{size:x}\r\n").bytes());
        answer.extend(vec![0; size]);
        answer.extend(b"\r\n0\r\n\r\n");
        Answer::Raw(answer)
    };
    let lie = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n".to_vec();
    for (path, answer, fits) in [
        ("/fits", ok(&vec![0; 100_000], ""), true),
        ("/over", ok(&vec![0; 100_001], ""), false),
        ("/chunked-fits", chunked(100_000), true),
        ("/chunked-over", chunked(100_001), false),
        ("/gzip-fits", ok(&gzip(&vec![0; 100_000]), ""), true),
        ("/gzip-over", ok(&gzip(&vec![0; 100_001]), ""), false),
        ("/lie", Answer::Raw(lie), false),
    ] {
        let url = server.on(path, answer);
        let result = get(&plain(), &url).await;
        assert_eq!(result.is_ok(), fits, "{path}");
        if let Err(error) = result {
            let text = chain(&error);
            assert!(
                text.contains("larger than 100000 bytes") && text.contains(&url),
                "{text}"
            );
        }
    }
}

#[tokio::test]
async fn times_are_bounded() {
    let server = Server::start().await;
    let quick = |options: &mut FetchOptions| {
        options.stall_timeout = Duration::from_millis(200);
        options.timeout = Duration::from_millis(400);
    };
    for (path, answer) in [("/silent", Answer::Silence), ("/slow", Answer::Trickle)] {
        let url = server.on(path, answer);
        let start = Instant::now();
        let error = get(&fetcher(quick), &url).await.unwrap_err();
        assert!(
            error.is_transient() && chain(&error).contains(&url),
            "{}",
            chain(&error)
        );
        assert!(start.elapsed() < Duration::from_secs(2), "{path}");
    }
    let error = get(&plain(), "http://127.0.0.1:1/m.wasm")
        .await
        .unwrap_err();
    assert!(error.is_transient() && chain(&error).contains("127.0.0.1:1/m.wasm"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_download_however_many_ask() {
    let server = Server::start().await;
    let late = Duration::from_millis(200);
    let good = at(&server.on("/good", Answer::Late(late, whole("200 OK", MODULE, ""))));
    let bad = at(&server.on("/bad", Answer::Late(late, whole("500 Oh", b"", ""))));
    let fetcher = plain();
    for (location, path, works) in [(good, "/good", true), (bad, "/bad", false)] {
        let all = (0..100).map(|n| {
            let (fetcher, location) = (fetcher.clone(), location.clone());
            tokio::spawn(async move {
                if n % 2 == 0 {
                    fetcher.fetch(&location, None).await
                } else {
                    fetcher.fetch_fresh(&location, None).await
                }
            })
        });
        for one in futures::future::join_all(all).await {
            assert_eq!(one.unwrap().is_ok(), works);
        }
        assert_eq!(server.hits(path), 1, "{path}");
    }
    let url = server.on("/bad", ok(MODULE, ""));
    assert!(
        get(&fetcher, &url).await.is_ok(),
        "errors are not remembered"
    );
    assert!(fetcher.0.running.is_empty());
}

#[tokio::test]
async fn a_download_outlives_who_asked_first() {
    let server = Server::start().await;
    let url = server.on(
        "/a",
        Answer::Late(Duration::from_millis(200), whole("200 OK", MODULE, "")),
    );
    let fetcher = plain();
    let first = tokio::time::timeout(Duration::from_millis(50), get(&fetcher, &url)).await;
    assert!(first.is_err());
    assert_eq!(get(&fetcher, &url).await.unwrap().bytes, MODULE);
    assert_eq!(server.hits("/a"), 1);
}

#[tokio::test]
async fn checksums_decide_wherever_the_bytes_come_from() {
    let (server, dir) = (Server::start().await, tempfile::tempdir().unwrap());
    let (sum, bad) = (sha256_hex(MODULE), "0".repeat(64));
    let fetcher = cached_in(&dir);
    let named = at(&server.on(&format!("/m_sha256_{bad}.wasm"), ok(MODULE, "")));
    let location = at(&server.on("/m.wasm", ok(&gzip(MODULE), "")));
    for _ in 0..2 {
        for wanted in [
            None,
            Some(""),
            Some(sum.as_str()),
            Some(&format!("sha256:{}", sum.to_uppercase())),
        ] {
            assert!(fetcher.fetch(&location, wanted).await.is_ok(), "{wanted:?}");
        }
        for error in [
            fetcher.fetch(&location, Some(&bad)).await,
            fetcher.fetch(&named, None).await,
        ] {
            let text = chain(&error.unwrap_err());
            assert!(text.contains(&bad) && text.contains(&sum), "{text}");
        }
        assert!(
            fetcher.fetch(&named, Some(&sum)).await.is_ok(),
            "what is given wins over the name"
        );
    }
}

#[tokio::test]
async fn a_known_checksum_needs_no_server() {
    let (server, dir) = (Server::start().await, tempfile::tempdir().unwrap());
    let sum = sha256_hex(MODULE);
    let location = at(&server.on(&format!("/sha256_{sum}.wasm"), ok(MODULE, "")));
    cached_in(&dir).fetch(&location, None).await.unwrap();
    let restarted = cached_in(&dir);
    assert_eq!(
        restarted.fetch(&location, None).await.unwrap().origin,
        Origin::Cache
    );
    assert_eq!(server.hits(&format!("/sha256_{sum}.wasm")), 1);
    assert_eq!(
        restarted.fetch_fresh(&location, None).await.unwrap().origin,
        Origin::Server
    );
    assert_eq!(server.hits(&format!("/sha256_{sum}.wasm")), 2);
}

#[tokio::test]
async fn without_a_checksum_the_server_is_asked_now_and_then() {
    let (server, dir) = (Server::start().await, tempfile::tempdir().unwrap());
    let url = server.on("/m", ok(MODULE, "ETag: \"1\"\r\n"));
    let fetcher = fetcher(|options| {
        options.cache_dir = Some(dir.path().to_owned());
        options.fresh_for = Duration::from_millis(300);
    });
    assert_eq!(get(&fetcher, &url).await.unwrap().origin, Origin::Server);
    assert_eq!(get(&fetcher, &url).await.unwrap().origin, Origin::Cache);
    assert_eq!(server.hits("/m"), 1);

    tokio::time::sleep(Duration::from_millis(350)).await;
    server.on(
        "/m",
        Answer::Raw(b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec()),
    );
    let again = get(&fetcher, &url).await.unwrap();
    assert_eq!((&again.bytes[..], again.origin), (MODULE, Origin::Server));
    let asked = server.requests("/m").remove(1).to_ascii_lowercase();
    assert!(asked.contains("if-none-match: \"1\""), "{asked}");

    server.on("/m", ok(b"\0asm new", "ETag: \"2\"\r\n"));
    assert_eq!(
        get(&fetcher, &url).await.unwrap().bytes,
        MODULE,
        "current for a while"
    );
    assert_eq!(
        fetcher.fetch_fresh(&at(&url), None).await.unwrap().bytes,
        &b"\0asm new"[..]
    );
    assert_eq!(get(&fetcher, &url).await.unwrap().bytes, &b"\0asm new"[..]);
    assert_eq!(server.hits("/m"), 3);
}

#[tokio::test]
async fn after_a_restart_the_disk_helps_while_the_server_is_away() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start().await;
    let url = server.on("/m", ok(MODULE, ""));
    get(&cached_in(&dir), &url).await.unwrap();

    let restarted = cached_in(&dir);
    server.on("/m", status("503 Busy", ""));
    let stale = get(&restarted, &url).await.unwrap();
    assert_eq!((&stale.bytes[..], stale.origin), (MODULE, Origin::Stale));
    assert_eq!(get(&restarted, &url).await.unwrap().origin, Origin::Stale);
    assert_eq!(server.hits("/m"), 2, "one try, then a pause");
    assert!(
        restarted.fetch_fresh(&at(&url), None).await.is_err(),
        "fresh means fresh"
    );
    let error = restarted
        .fetch(&at(&url), Some(&"0".repeat(64)))
        .await
        .unwrap_err();
    assert!(
        chain(&error).contains("503"),
        "nothing fits, so the server's answer counts: {error}"
    );

    drop(server);
    tokio::task::yield_now().await;
    assert_eq!(
        get(&cached_in(&dir), &url).await.unwrap().origin,
        Origin::Stale
    );
    assert!(get(&plain(), &url).await.is_err());
}

#[tokio::test]
async fn a_damaged_cache_is_fetched_again() {
    let (server, dir) = (Server::start().await, tempfile::tempdir().unwrap());
    let url = server.on("/m", ok(MODULE, "ETag: \"1\"\r\n"));
    get(&cached_in(&dir), &url).await.unwrap();
    let file = dir.path().join("modules/content").join(sha256_hex(MODULE));
    std::fs::write(&file, b"\0asm evil").unwrap();
    let artifact = get(&cached_in(&dir), &url).await.unwrap();
    assert_eq!(
        (&artifact.bytes[..], artifact.origin),
        (MODULE, Origin::Server)
    );
    assert!(
        !server.requests("/m")[1]
            .to_ascii_lowercase()
            .contains("if-none-match")
    );
    assert_eq!(std::fs::read(&file).unwrap(), MODULE);
}

#[tokio::test]
async fn a_cache_that_does_not_work_is_done_without() {
    let (server, dir) = (Server::start().await, tempfile::tempdir().unwrap());
    let url = server.on("/m", ok(MODULE, ""));
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let fetcher = fetcher(|options| options.cache_dir = Some(file));
    assert!(get(&fetcher, &url).await.is_ok());
}

#[tokio::test]
async fn memory_holds_contents_only_while_they_are_used() {
    let server = Server::start().await;
    let url = server.on("/m", ok(MODULE, ""));
    let fetcher = plain();
    let first = get(&fetcher, &url).await.unwrap();
    let second = get(&fetcher, &url).await.unwrap();
    assert_eq!(first.bytes.as_ptr(), second.bytes.as_ptr());
    drop((first, second));
    get(&fetcher, &url).await.unwrap();
    assert_eq!(server.hits("/m"), 2);
}
