use std::io::Write as _;

use super::*;
use crate::signature::tests::{golden, golden_text, public};

fn fingerprints(set: &KeySet) -> Vec<&str> {
    set.keys().map(PublicKey::fingerprint).collect()
}

fn write(path: PathBuf, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    File::create(path).unwrap().write_all(content).unwrap();
}

#[test]
fn a_file_holds_one_key_or_a_list() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.txt");
    write(file.clone(), &golden("p256.pem"));
    assert_eq!(
        fingerprints(&KeySet::read(&file).unwrap()),
        [public("p256").fingerprint()]
    );
    let texts = [golden_text("p256.pub.pem"), golden_text("ed25519.pub.pem")];
    write(
        file.clone(),
        format!(" {}", serde_json::json!(texts)).as_bytes(),
    );
    assert_eq!(KeySet::read(&file).unwrap().keys().count(), 2);
}

#[test]
fn a_folder_is_read_to_its_depth() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let error = KeySet::read(folder.path()).unwrap_err();
    assert!(matches!(error, KeyFileError::Empty { .. }), "{error}");
    write(path("a.pem"), &golden("p256.pub.pem"));
    write(path("b/c/d.pem"), &golden("p384.pub.pem"));
    write(path("b/same.pem"), &golden("p384.pub.pem"));
    write(path("notes.txt"), b"no key");
    write(path("..2026/link.pem"), b"no key");
    assert_eq!(KeySet::read(folder.path()).unwrap().keys().count(), 2);
    write(path("b/e.pem"), b"no key");
    let error = KeySet::read(folder.path()).unwrap_err();
    assert!(error.to_string().contains("b/e.pem"), "{error}");
}

/// A Secret that is mounted: links to a folder that a link leads to.
#[cfg(unix)]
#[test]
fn a_mounted_secret_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(path("..one/k.pem"), &golden("p256.pub.pem"));
    write(path("..two/k.pem"), &golden("p384.pub.pem"));
    std::os::unix::fs::symlink("..one", path("..data")).unwrap();
    std::os::unix::fs::symlink("..data/k.pem", path("k.pem")).unwrap();
    let before = KeyFiles::read(folder.path()).unwrap().digest();
    assert_eq!(before, KeyFiles::read(folder.path()).unwrap().digest());
    fs::remove_file(path("..data")).unwrap();
    std::os::unix::fs::symlink("..two", path("..data")).unwrap();
    let after = KeyFiles::read(folder.path()).unwrap();
    assert_ne!(before, after.digest());
    assert_eq!(
        fingerprints(&KeySet::parse(&after).unwrap()),
        [public("p384").fingerprint()]
    );
}

#[test]
fn what_gives_no_keys_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    let check = |content: &[u8], words: &str| {
        write(file.clone(), content);
        let error = KeySet::read(&file).unwrap_err();
        let words_of = format!(
            "{error}: {:?}",
            std::error::Error::source(&error).map(ToString::to_string)
        );
        assert!(
            words_of.contains(words) && words_of.contains("keys.json"),
            "{words_of}"
        );
    };
    check(b"", "no PEM block");
    check(b"text", "no PEM block");
    check(b"[]", "no key in");
    check(b"[1]", "no array of texts");
    check(b"[\"x\"]", "key 1 of");
    check(&vec![b' '; 1 + (1 << 20)], "larger than 1 MiB");
    let gone = KeySet::read(&folder.path().join("gone")).unwrap_err();
    assert!(gone.to_string().contains("gone"), "{gone}");
}

#[test]
fn a_folder_of_other_things_is_not_searched() {
    let folder = tempfile::tempdir().unwrap();
    for nth in 0..=MAX_KEY_FILES {
        File::create(folder.path().join(nth.to_string())).unwrap();
    }
    let error = KeySet::read(folder.path()).unwrap_err();
    assert!(matches!(error, KeyFileError::TooMany { .. }), "{error}");
}
