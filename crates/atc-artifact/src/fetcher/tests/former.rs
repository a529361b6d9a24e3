//! What the existing tool has kept in the same folder, while a server is away.

use super::*;

/// As the existing tool keeps the module of a URL.
fn kept(dir: &tempfile::TempDir, url: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = dir.path().join(crate::verify::sha1_hex(url.as_bytes()));
    std::fs::write(&path, bytes).unwrap();
    path
}

#[tokio::test]
async fn the_existing_tools_module_bridges_a_server_that_is_away() {
    let (server, dir) = (Server::start().await, tempfile::tempdir().unwrap());
    // As it was written, which is not as it is asked for.
    let url = server
        .on("/m?x=a%20b", status("503 Away", ""))
        .replace("http://", "HTTP://");
    let path = kept(&dir, &url, &gzip(MODULE));
    let fetcher = cached_in(&dir);
    let given = get(&fetcher, &url).await.unwrap();
    assert_eq!((&given.bytes[..], given.origin), (MODULE, Origin::Stale));
    assert_eq!(fetcher.figures().stale, 1);
    assert!(fetcher.fetch_fresh(&at(&url), None).await.is_err());
    // It is ours from now on.
    std::fs::remove_file(&path).unwrap();
    let given = get(&cached_in(&dir), &url).await.unwrap();
    assert_eq!((&given.bytes[..], given.origin), (MODULE, Origin::Stale));

    // A server that gives something has the word.
    let new = b"\0asm new";
    server.on("/m?x=a%20b", ok(new, ""));
    let given = get(&cached_in(&dir), &url).await.unwrap();
    assert_eq!((&given.bytes[..], given.origin), (&new[..], Origin::Server));
}

#[tokio::test]
async fn an_artifact_of_a_registry_has_its_url_as_well() {
    let dir = tempfile::tempdir().unwrap();
    // Nobody listens there.
    let url = "oci://127.0.0.1:1/flights/app:v1.0.0";
    kept(&dir, url, &gzip(MODULE));
    let given = get(&cached_in(&dir), url).await.unwrap();
    assert_eq!((&given.bytes[..], given.origin), (MODULE, Origin::Stale));
}

#[tokio::test]
async fn what_must_not_be_taken_is_not() {
    let server = Server::start().await;
    let url = server.on("/m", status("503 Away", ""));
    let refused = async |bytes: &[u8], checksum: Option<&str>, change: fn(&std::path::Path)| {
        let dir = tempfile::tempdir().unwrap();
        change(&kept(&dir, &url, bytes));
        cached_in(&dir).fetch(&at(&url), checksum).await.is_err()
    };
    let as_it_is = |_: &std::path::Path| {};
    let (good, other) = (sha256_hex(MODULE), sha256_hex(b"another"));
    assert!(!refused(&gzip(MODULE), Some(&good), as_it_is).await);
    assert!(refused(&gzip(MODULE), Some(&other), as_it_is).await);
    // Torn, and larger than a module may be.
    let whole = gzip(MODULE);
    assert!(refused(&whole[..whole.len() - 9], None, as_it_is).await);
    assert!(refused(&gzip(&vec![0; 100_001]), None, as_it_is).await);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let for_all = |path: &std::path::Path| {
            let all = std::fs::Permissions::from_mode(0o666);
            std::fs::set_permissions(path, all).unwrap();
        };
        assert!(refused(&whole, None, for_all).await);
        let link = |path: &std::path::Path| {
            let aside = path.with_extension("aside");
            std::fs::rename(path, &aside).unwrap();
            std::os::unix::fs::symlink(&aside, path).unwrap();
        };
        assert!(refused(&whole, None, link).await);
    }
}
