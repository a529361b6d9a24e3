//! The disk cache: what is kept, what is noticed, what goes first.

use std::time::Duration;

use super::*;

fn open(dir: &Path) -> Store {
    Store::open(dir, 1000).unwrap()
}

fn content(byte: u8, size: usize) -> Content {
    Content::digest(vec![byte; size])
}

fn sha(byte: u8, size: usize) -> String {
    content(byte, size).digests.sha256.clone()
}

fn get(store: &Store, sha256: &str) -> Option<Vec<u8>> {
    store
        .content(sha256, 1000)
        .map(|content| content.data().to_vec())
}

/// Makes a content look used that long ago.
fn age(store: &Store, sha256: &str, seconds: u64) {
    let file = File::options()
        .write(true)
        .open(store.content.join(sha256))
        .unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds))
        .unwrap();
}

#[test]
fn what_was_put_is_there_also_for_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let validators = Validators {
        etag: Some("\"1\"".into()),
        last_modified: None,
    };
    open(dir.path())
        .put("http://h/a", &content(1, 10), &validators)
        .unwrap();
    let store = open(dir.path());
    let entry = store.entry("http://h/a").unwrap();
    assert_eq!(
        (&entry.digests, &entry.validators),
        (&*content(1, 10).digests, &validators)
    );
    assert_eq!(get(&store, &entry.digests.sha256), Some(vec![1; 10]));
    assert!(store.entry("http://h/b").is_none() && get(&store, &sha(2, 10)).is_none());
}

#[test]
fn a_url_is_not_written_down() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store
        .put(
            "http://joe:secret@h/a",
            &content(1, 10),
            &Validators::default(),
        )
        .unwrap();
    for file in files(&store.urls).unwrap() {
        assert!(!fs::read_to_string(&file.path).unwrap().contains("secret"));
        assert!(!file.path.to_string_lossy().contains("secret"));
    }
}

#[test]
fn torn_and_changed_contents_are_misses_and_go_w22() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for damage in [&b""[..], &[1; 9], &[2; 10], &[1; 2000]] {
        store
            .put("u", &content(1, 10), &Validators::default())
            .unwrap();
        fs::write(store.content.join(sha(1, 10)), damage).unwrap();
        assert!(get(&store, &sha(1, 10)).is_none());
    }
    store
        .put("u", &content(1, 10), &Validators::default())
        .unwrap();
    // A change that keeps the length is noticed at the next read, which removes the file.
    fs::write(store.content.join(sha(1, 10)), [3; 10]).unwrap();
    assert!(get(&store, &sha(1, 10)).is_none() && !store.content.join(sha(1, 10)).exists());
}

#[test]
fn entries_that_make_no_sense_are_misses() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store
        .put("u", &content(1, 10), &Validators::default())
        .unwrap();
    let path = store.urls.join(sha256_hex(b"u"));
    let good = fs::read_to_string(&path).unwrap();
    for bad in [
        String::new(),
        "x".repeat(20_000),
        good.replace(FORMAT, "other"),
        good[..100].to_owned(),
        good.replace(&sha(1, 10), "../../etc/passwd"),
    ] {
        fs::write(&path, &bad).unwrap();
        assert!(store.entry("u").is_none(), "{bad:.50}");
    }
    fs::write(&path, good).unwrap();
    assert!(store.entry("u").is_some());
    assert!(store.content("../urls/x", 1000).is_none());
}

#[test]
fn the_least_recently_used_goes_first_and_the_newest_stays_w22() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for byte in 1..=3 {
        store
            .put("u", &content(byte, 300), &Validators::default())
            .unwrap();
        age(&store, &sha(byte, 300), 100 - u64::from(byte));
    }
    assert!(get(&store, &sha(1, 300)).is_some(), "reading marks as used");
    store
        .put("u", &content(4, 300), &Validators::default())
        .unwrap();
    let there: Vec<bool> = (1..=4)
        .map(|byte| store.content.join(sha(byte, 300)).exists())
        .collect();
    assert_eq!(there, [true, false, true, true]);
    assert_eq!((store.evictions(), store.bytes()), (1, 900));
    assert_eq!(open(dir.path()).bytes(), 900, "also for the next process");
    store
        .put("u", &content(5, 1000), &Validators::default())
        .unwrap();
    assert_eq!(
        files(&store.content).unwrap().len(),
        1,
        "alone it may fill the whole cache"
    );
    store
        .put("u", &content(6, 1001), &Validators::default())
        .unwrap();
    assert!(
        !store.content.join(sha(6, 1001)).exists(),
        "larger than the whole cache: not kept"
    );
}

#[test]
fn the_number_of_urls_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for n in 0..MAX_INDEXED_URLS + 10 {
        fs::write(store.urls.join(format!("{n:064}")), "").unwrap();
    }
    store
        .put("u", &content(1, 10), &Validators::default())
        .unwrap();
    assert_eq!(files(&store.urls).unwrap().len(), MAX_INDEXED_URLS);
    assert!(store.entry("u").is_some());
}

#[cfg(unix)]
#[test]
fn the_folder_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store
        .put("u", &content(1, 10), &Validators::default())
        .unwrap();
    for path in [
        dir.path().join("modules"),
        store.content.clone(),
        store.content.join(sha(1, 10)),
    ] {
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o077,
            0,
            "{}",
            path.display()
        );
    }
    fs::set_permissions(&store.content, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(
        Store::open(dir.path(), 1000).unwrap_err().kind(),
        io::ErrorKind::PermissionDenied
    );
}
