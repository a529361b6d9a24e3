//! What goes wrong on the way, and is an error that names the place, or no matter.

use super::*;

/// Short times, so that what hangs is seen soon.
fn quick() -> Fetcher {
    fetcher(|options| {
        options.stall_timeout = Duration::from_millis(300);
        options.timeout = Duration::from_secs(1);
    })
}

#[tokio::test]
async fn what_does_not_have_its_digest_is_refused() {
    let registry = Registry::start().await;
    let (sum, layer) = registry.put("app:v1", &gzip(MODULE));
    let (url, pinned) = (registry.oci("app:v1"), registry.oci(&format!("app@{sum}")));
    let altered: Vec<u8> = gzip(MODULE)
        .iter()
        .enumerate()
        .map(|(at, byte)| byte ^ u8::from(at == 20))
        .collect();
    let blob = |body: &[u8]| reply("200 OK", "", body);
    for (body, words) in [
        (
            altered,
            format!("wrong layer of '{url}': wanted {layer}, got sha256:"),
        ),
        (
            gzip(MODULE)[..20].to_vec(),
            "bytes, got a size of 20 bytes".to_owned(),
        ),
        (
            [gzip(MODULE), vec![0]].concat(),
            "bytes, got more".to_owned(),
        ),
        (Vec::new(), "got a size of 0 bytes".to_owned()),
    ] {
        registry.fault("GET", "/blobs/", 1, blob(&body));
        let error = fails(&plain(), &url, &words).await;
        assert_eq!(error.kind(), ErrorKind::Invalid);
        registry.mend();
    }
    let (other, _) = registry.put("app:v2", &gzip(b"\0asm other"));
    let body = registry.stored(&format!("app/manifests/{other}"));
    let headers = format!("Content-Type: {MANIFEST}\r\n");
    registry.fault("GET", "/manifests/", 1, reply("200 OK", &headers, &body));
    fails(
        &plain(),
        &pinned,
        &format!("wrong manifest of '{pinned}': wanted {sum}, got {other}"),
    )
    .await;
    let headers = format!("{headers}Docker-Content-Digest: {sum}\r\n");
    registry.fault("GET", "/manifests/", 1, reply("200 OK", &headers, &body));
    assert_eq!(
        get(&plain(), &url).await.unwrap().bytes,
        &b"\0asm other"[..],
        "a header that is wrong does not matter where no digest was asked for"
    );
    assert!(
        get(&plain(), &pinned).await.is_ok(),
        "nothing wrong was kept"
    );
}

#[tokio::test]
async fn what_breaks_off_is_tried_again_and_never_used() {
    let registry = Registry::start().await;
    registry.put("app:v1", &gzip(MODULE));
    let url = registry.oci("app:v1");
    let cut = || Reply::Cut(gzip(MODULE), 30);
    registry.fault("GET", "/blobs/", 2, cut());
    assert_eq!(get(&plain(), &url).await.unwrap().bytes, MODULE);
    assert_eq!(registry.calls("GET", "/blobs/").len(), 3);
    registry.fault("GET", "/blobs/", 3, cut());
    assert!(
        fails(&plain(), &url, "cannot download")
            .await
            .is_transient()
    );
    for part in ["/manifests/", "/blobs/"] {
        registry.mend();
        registry.fault("GET", part, 1, Reply::Nothing);
        assert_eq!(get(&plain(), &url).await.unwrap().bytes, MODULE, "{part}");
    }
}

#[tokio::test]
async fn a_busy_registry_is_asked_again_when_it_wants() {
    let registry = Registry::start().await;
    registry.put("app:v1", &gzip(MODULE));
    let url = registry.oci("app:v1");
    for (status, headers) in [
        ("500 Oh", ""),
        ("503 Busy", ""),
        ("502 Bad Gateway", ""),
        ("429 Too Many Requests", "Retry-After: 1\r\n"),
    ] {
        registry.fault("GET", "/manifests/", 1, reply(status, headers, b"busy"));
        let start = Instant::now();
        assert_eq!(get(&plain(), &url).await.unwrap().bytes, MODULE, "{status}");
        let least = Duration::from_secs(u64::from(!headers.is_empty()));
        assert!(start.elapsed() >= least, "{status}: {:?}", start.elapsed());
    }
    registry.forget_calls();
    registry.fault(
        "GET",
        "/manifests/",
        9,
        reply("503 Busy", "", b"come back later"),
    );
    assert!(
        fails(&plain(), &url, "status 503: come back later")
            .await
            .is_transient()
    );
    assert_eq!(registry.calls("GET", "/manifests/").len(), 3);
    registry.mend();
    // Longer than all may take: it is said at once.
    registry.fault(
        "GET",
        "/manifests/",
        9,
        reply("429 Too Many Requests", "Retry-After: 3600\r\n", b""),
    );
    let start = Instant::now();
    fails(&plain(), &url, "429").await;
    assert!(start.elapsed() < Duration::from_secs(1));
    for (status, words) in [
        ("403 Forbidden", "403"),
        ("400 Bad", "400"),
        ("501 No", "501"),
    ] {
        registry.mend();
        registry.forget_calls();
        registry.fault("GET", "/manifests/", 9, reply(status, "", b"no"));
        fails(&plain(), &url, words).await;
        assert_eq!(registry.calls("GET", "/manifests/").len(), 1, "{status}");
    }
}

#[tokio::test]
async fn downloads_without_a_registry_are_tried_again_too() {
    let server = Registry::start().await;
    let url = server.url("/m.wasm");
    for trouble in [
        reply("503 Busy", "", b""),
        reply("429 Slow", "Retry-After: 1\r\n", b""),
        Reply::Nothing,
    ] {
        server.fault("GET", "/m.wasm", 1, trouble);
        assert!(get(&plain(), &url).await.is_ok());
    }
    assert_eq!(server.calls("GET", "/m.wasm").len(), 6);
    server.fault("GET", "/m.wasm", 9, reply("404 Not Found", "", b""));
    fails(&plain(), &url, "404").await;
    assert_eq!(server.calls("GET", "/m.wasm").len(), 7);
}

#[tokio::test]
async fn sizes_are_bounded() {
    let registry = Registry::start().await;
    registry.put("bomb:v1", &gzip(&vec![0; 100_001]));
    fails(
        &plain(),
        &registry.oci("bomb:v1"),
        "larger than 100000 bytes when unpacked",
    )
    .await;
    registry.put("large:v1", &vec![0; 100_001]);
    fails(
        &plain(),
        &registry.oci("large:v1"),
        "larger than 100000 bytes",
    )
    .await;
    assert!(
        registry.calls("GET", "large/blobs").is_empty(),
        "its manifest says so already"
    );
    registry.put("fits:v1", &vec![0; 100_000]);
    assert!(get(&plain(), &registry.oci("fits:v1")).await.is_ok());

    registry.put("app:v1", &gzip(MODULE));
    let url = registry.oci("app:v1");
    registry.fault("GET", "/blobs/", 1, Reply::Endless(gzip(MODULE)));
    fails(&plain(), &url, "got more").await;
    registry.fault("GET", "/manifests/", 1, Reply::Endless(Vec::new()));
    fails(&plain(), &url, &format!("larger than {MAX_MANIFEST} bytes")).await;
    registry.fault(
        "GET",
        "/manifests/",
        1,
        Reply::Whole("404 Not Found", String::new(), vec![b'x'; 1 << 20]),
    );
    fails(&plain(), &url, "status 404").await;
}

#[tokio::test]
async fn times_are_bounded() {
    let registry = Registry::start().await;
    registry.put("app:v1", &gzip(MODULE));
    let url = registry.oci("app:v1");
    for part in ["/manifests/", "/blobs/"] {
        for slow in [Reply::Silence, Reply::SlowHead, Reply::SlowBody] {
            registry.mend();
            registry.fault("GET", part, 99, slow);
            let start = Instant::now();
            let error = get(&quick(), &url).await.unwrap_err();
            assert!(chain(&error).contains("app"), "{}", chain(&error));
            assert!(
                error.is_transient() || part == "/blobs/",
                "{}",
                chain(&error)
            );
            assert!(
                start.elapsed() < Duration::from_secs(3),
                "{:?}",
                start.elapsed()
            );
        }
    }
}

#[tokio::test]
async fn manifests_that_are_none_are_refused() {
    let registry = Registry::start().await;
    registry.put("app:v1", &gzip(MODULE));
    let url = registry.oci("app:v1");
    let long: String = format!(r#"{{"schemaVersion":2,"layers":"{}"}}"#, "x".repeat(5000));
    for (kind, body, words) in [
        (MANIFEST, "{", "not of the right form"),
        (MANIFEST, "<html></html>", "not of the right form"),
        (MANIFEST, long.as_str(), "not of the right form"),
        (
            "text/plain",
            r#"{"schemaVersion":2,"layers":[]}"#,
            "media type of its manifest is 'text/plain'",
        ),
        (MANIFEST, "{}", "media type"),
    ] {
        let headers = format!("Content-Type: {kind}\r\n");
        registry.fault(
            "GET",
            "/manifests/",
            1,
            reply("200 OK", &headers, body.as_bytes()),
        );
        let error = fails(&plain(), &url, words).await;
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(chain(&error).len() < 600);
    }
}

#[tokio::test]
async fn redirects_are_followed_without_credentials_r123() {
    let registry = Registry::with(Auth::Basic("joe:pw")).await;
    let store = Registry::start().await;
    let (_, layer) = registry.put("app:v1", &gzip(MODULE));
    let url = registry.oci("app:v1");
    let fetcher = || fetcher(|options| options.credentials = login(&registry.host(), "joe:pw"));
    let to = |url: &str| {
        reply(
            "307 Temporary Redirect",
            &format!("Location: {url}\r\n"),
            b"",
        )
    };

    store.fault("GET", "/elsewhere", 9, reply("200 OK", "", &gzip(MODULE)));
    registry.fault(
        "GET",
        &format!("/blobs/{layer}"),
        1,
        to(&store.url("/elsewhere?token=secret")),
    );
    assert_eq!(get(&fetcher(), &url).await.unwrap().bytes, MODULE);
    let calls = store.calls("GET", "/elsewhere");
    assert_eq!((calls.len(), calls[0].authorization.as_deref()), (1, None));

    registry.fault(
        "GET",
        "/blobs/",
        1 << 20,
        to(&format!("/v2/app/blobs/{layer}")),
    );
    let error = fails_somewhere(&fetcher(), &url, "too many redirects").await;
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(registry.calls("GET", "/blobs/").len() < 20);
    registry.mend();

    // A challenge of another host is none of the registry's.
    store.mend();
    store.fault(
        "GET",
        "/elsewhere",
        9,
        reply(
            "401 Unauthorized",
            "WWW-Authenticate: Basic realm=\"x\"\r\n",
            b"",
        ),
    );
    registry.fault("GET", "/blobs/", 9, to(&store.url("/elsewhere")));
    store.forget_calls();
    fails(&fetcher(), &url, "401").await;
    assert!(
        store
            .calls("GET", "/")
            .iter()
            .all(|call| call.authorization.is_none())
    );
}

async fn fails_somewhere(fetcher: &Fetcher, url: &str, words: &str) -> ArtifactError {
    let error = get(fetcher, url).await.map(|_| ()).unwrap_err();
    assert!(chain(&error).contains(words), "{}", chain(&error));
    error
}
