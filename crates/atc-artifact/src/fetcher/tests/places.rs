//! Local files, pipes and proxies: where a fetch goes.

use super::*;

#[tokio::test]
async fn local_files_are_read_within_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, data: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, data).unwrap();
        path.display().to_string()
    };
    for path in [
        put("m.wasm", MODULE),
        put("m.wasm.gz", &gzip(MODULE)),
        put("plain.gz", MODULE),
    ] {
        assert_eq!(get(&plain(), &path).await.unwrap().bytes, MODULE, "{path}");
        assert_eq!(
            get(&plain(), &format!("file://{path}"))
                .await
                .unwrap()
                .origin,
            Origin::File
        );
    }
    assert!(get(&plain(), &put("fits", &vec![0; 100_000])).await.is_ok());
    for (path, words) in [
        (dir.path().display().to_string(), "a directory"),
        (put("over", &vec![0; 100_001]), "larger than 100000 bytes"),
        (put("bomb.gz", &gzip(&vec![0; 100_001])), "when unpacked"),
        (put("cut.gz", &gzip(MODULE)[..20]), "gzip stream"),
        ("/dev/zero".to_owned(), "a device"),
        ("nowhere.wasm".to_owned(), "nowhere.wasm"),
        ("with\0zero".to_owned(), "cannot read"),
        (
            "oci://127.0.0.1:1/app:v1".to_owned(),
            "cannot reach the registry of 'oci://127.0.0.1:1/app:v1'",
        ),
    ] {
        let text = chain(&get(&plain(), &path).await.unwrap_err());
        assert!(text.contains(words), "{path}: {text}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_pipe_is_refused_and_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let error = get(&plain(), &pipe.display().to_string())
        .await
        .unwrap_err();
    assert!(matches!(error, ArtifactError::NotAFile { .. }), "{error}");
}

/// Set for the run of [`with_a_proxy_in_the_environment`] in a process of its own: the port of a server that plays the
/// proxy.
const PROXY_PORT: &str = "ATC_ARTIFACT_TEST_PROXY_PORT";

#[tokio::test]
async fn a_proxy_is_used_but_never_for_this_machine() {
    let server = Server::start().await;
    server.on("http://modules.invalid/m", ok(MODULE, ""));
    server.on("/m", ok(b"direct", ""));
    let port = server.port.to_string();
    let proxy = format!("http://127.0.0.1:{port}");
    let child = tokio::task::spawn_blocking(move || {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "fetcher::tests::places::with_a_proxy_in_the_environment",
                "--nocapture",
            ])
            .env_clear()
            .envs([("HTTP_PROXY", &proxy), ("HTTPS_PROXY", &proxy)])
            .env(PROXY_PORT, port)
            .output()
            .unwrap()
    });
    let output = child.await.unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(
        (server.hits("http://modules.invalid/m"), server.hits("/m")),
        (1, 2)
    );
}

/// The other half of the test above; alone it has nothing to do.
#[tokio::test]
async fn with_a_proxy_in_the_environment() {
    let Ok(port) = std::env::var(PROXY_PORT) else {
        return;
    };
    let proxied = get(&plain(), "http://modules.invalid/m").await.unwrap();
    assert_eq!(proxied.bytes, MODULE);
    for host in ["127.0.0.1", "localhost"] {
        let direct = get(&plain(), &format!("http://{host}:{port}/m"))
            .await
            .unwrap();
        assert_eq!(direct.bytes, &b"direct"[..]);
    }
}
