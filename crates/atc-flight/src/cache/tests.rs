use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::*;
use crate::testkit::{SAY, flight};
use crate::{Compiler, Invocation, NoCluster, Runtime, RuntimeOptions};

/// A cache folder, and runtimes that share it as processes would.
struct Shared(tempfile::TempDir);

impl Shared {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn options(&self) -> RuntimeOptions {
        RuntimeOptions {
            cache_dir: Some(self.0.path().join("cache")),
            ..RuntimeOptions::default()
        }
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("cache").join(FOLDER)
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = fs::read_dir(self.folder())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        files
    }

    /// A new process, as it were: runs the module, and says whether it came from disk.
    async fn run(&self, n: u32) -> bool {
        self.run_with(self.options(), n).await
    }

    async fn run_with(&self, options: RuntimeOptions, n: u32) -> bool {
        let runtime = Runtime::new(options).unwrap();
        let wasm = nth(n);
        let digest = Sha256::digest(&wasm).into();
        let inner = &runtime.0;
        let from_disk = inner
            .disk
            .as_ref()
            .is_some_and(|disk| disk.load(&inner.engine, digest).is_some());
        let module = runtime.module(&wasm).await.unwrap();
        let outcome = module
            .run(Invocation::default(), Arc::new(NoCluster))
            .await
            .unwrap();
        assert_eq!(&outcome.stdout[..], b"[]\n");
        from_disk
    }
}

fn nth(n: u32) -> bytes::Bytes {
    flight(&format!("(drop (i32.const {n})) {SAY}"), "")
}

#[tokio::test]
async fn kept_for_the_next_process() {
    let shared = Shared::new();
    assert!(!shared.run(1).await);
    assert!(shared.run(1).await);
    assert!(!shared.run(2).await);
    assert_eq!(shared.files().len(), 2);
    assert_eq!(
        fs::metadata(shared.folder()).unwrap().permissions().mode() & 0o777,
        0o700
    );
    for file in shared.files() {
        assert_eq!(
            fs::metadata(file).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

#[tokio::test]
async fn other_settings_are_other_files() {
    let shared = Shared::new();
    assert!(!shared.run(1).await);
    let quick = || RuntimeOptions {
        compiler: Compiler::Quick,
        ..shared.options()
    };
    assert!(!shared.run_with(quick(), 1).await);
    assert!(shared.run_with(quick(), 1).await);
    assert_eq!(shared.files().len(), 2);
}

/// Whatever is done to a file, the module is compiled again and the file replaced.
#[tokio::test]
async fn a_file_in_doubt_is_compiled_again_w22() {
    type Harm = fn(&std::path::Path);
    let harms: [(&str, Harm); 10] = [
        ("a bit of the magic", |file| flip(file, 0)),
        ("a bit of the hash", |file| flip(file, MAGIC.len())),
        ("the first bit of code", |file| flip(file, HEADER)),
        ("a bit in the middle", |file| {
            flip(file, HEADER + fs::read(file).unwrap().len() / 2);
        }),
        ("the last bit", |file| {
            flip(file, fs::read(file).unwrap().len() - 1);
        }),
        ("one byte less", |file| {
            cut(file, fs::metadata(file).unwrap().len() - 1);
        }),
        ("the header only", |file| cut(file, HEADER as u64)),
        ("nothing", |file| cut(file, 0)),
        ("one byte more", |file| {
            let mut bytes = fs::read(file).unwrap();
            bytes.push(0);
            fs::write(file, bytes).unwrap();
        }),
        ("writable by all", |file| {
            fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
        }),
    ];
    for (name, harm) in harms {
        let shared = Shared::new();
        assert!(!shared.run(1).await);
        let file = shared.files().remove(0);
        harm(&file);
        assert!(!shared.run(1).await, "{name}");
        assert!(shared.run(1).await, "{name}: it was replaced");
    }
}

fn flip(file: &std::path::Path, at: usize) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at] ^= 1;
    fs::write(file, bytes).unwrap();
}

fn cut(file: &std::path::Path, length: u64) {
    fs::File::options()
        .write(true)
        .open(file)
        .unwrap()
        .set_len(length)
        .unwrap();
}

/// The code of one module under the name of another: sound, but not what it says.
#[tokio::test]
async fn a_file_of_another_module_is_not_taken() {
    let shared = Shared::new();
    assert!(!shared.run(1).await);
    let one = shared.files().remove(0);
    assert!(!shared.run(2).await);
    let two = shared
        .files()
        .into_iter()
        .find(|file| *file != one)
        .unwrap();
    fs::copy(&two, &one).unwrap();
    assert!(!shared.run(1).await);
    assert!(shared.run(1).await);
}

#[tokio::test]
async fn links_and_folders_in_place_of_files() {
    let shared = Shared::new();
    assert!(!shared.run(1).await);
    let file = shared.files().remove(0);
    let elsewhere = shared.0.path().join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert!(!shared.run(1).await, "a link is not followed");
    assert!(shared.run(1).await && elsewhere.exists());
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(
        !shared.run(1).await,
        "a folder can't be replaced, and does no harm"
    );
    assert!(!shared.run(1).await);
}

/// A folder that others could have written to is not used, and neither is one that can't be made.
#[tokio::test]
async fn a_folder_that_is_not_ours_alone() {
    let shared = Shared::new();
    fs::create_dir_all(shared.folder()).unwrap();
    for mode in [0o755, 0o770, 0o707] {
        fs::set_permissions(shared.folder(), fs::Permissions::from_mode(mode)).unwrap();
        assert!(!shared.run(1).await);
        assert!(shared.files().is_empty(), "{mode:o}");
    }
    fs::remove_dir(shared.folder()).unwrap();
    let elsewhere = shared.0.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, shared.folder()).unwrap();
    assert!(!shared.run(1).await);
    assert_eq!(
        fs::read_dir(&elsewhere).unwrap().count(),
        0,
        "a link is not followed"
    );
    fs::remove_file(shared.folder()).unwrap();
    fs::write(shared.folder(), "a file").unwrap();
    assert!(!shared.run(1).await);
}

/// The least recently used go first, by use and not by age; never more than the bound.
#[tokio::test]
async fn the_folder_is_bounded_w22() {
    let shared = Shared::new();
    assert!(!shared.run(0).await);
    let one = fs::metadata(shared.files().remove(0)).unwrap().len();
    let options = || RuntimeOptions {
        cache_max_bytes: one * 3 + one / 2,
        ..shared.options()
    };
    let ago = |file: &PathBuf, seconds| {
        let time = SystemTime::now() - Duration::from_secs(seconds);
        fs::File::options()
            .write(true)
            .open(file)
            .unwrap()
            .set_modified(time)
            .unwrap();
    };
    let first = shared.files().remove(0);
    ago(&first, 500);
    for n in [1, 2] {
        assert!(!shared.run_with(options(), n).await);
        shared
            .files()
            .iter()
            .filter(|file| **file != first)
            .for_each(|file| ago(file, 100));
    }
    assert!(
        shared.run_with(options(), 0).await,
        "used: now it is the youngest"
    );
    assert!(!shared.run_with(options(), 3).await);
    assert_eq!(shared.files().len(), 3);
    assert!(first.exists());
    assert!(
        !shared
            .run_with(
                RuntimeOptions {
                    cache_max_bytes: one / 2,
                    ..shared.options()
                },
                4
            )
            .await
    );
    assert_eq!(
        shared.files().len(),
        3,
        "what is larger than the bound is not kept"
    );
}

#[tokio::test]
async fn what_died_writers_left_is_removed() {
    let shared = Shared::new();
    assert!(!shared.run(1).await);
    let (old, new) = (
        shared.folder().join("partial-1-1"),
        shared.folder().join("partial-1-2"),
    );
    fs::write(&old, "half").unwrap();
    fs::write(&new, "half").unwrap();
    let time = SystemTime::now() - Duration::from_hours(1);
    fs::File::options()
        .write(true)
        .open(&old)
        .unwrap()
        .set_modified(time)
        .unwrap();
    assert!(!shared.run(2).await);
    assert!(!old.exists() && new.exists());
}

/// Many processes at once on an empty folder, with one of them that harms files: all runs are right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once() {
    let shared = Arc::new(Shared::new());
    let runs: Vec<_> = (0..24)
        .map(|n| {
            let shared = shared.clone();
            tokio::spawn(async move {
                shared.run(n % 4).await;
                if n % 6 == 0 {
                    for file in shared.files() {
                        if let Ok(bytes) = fs::read(&file) {
                            let _ = fs::write(&file, &bytes[..bytes.len() / 2]);
                        }
                    }
                }
            })
        })
        .collect();
    for run in runs {
        run.await.unwrap();
    }
    let left = shared
        .files()
        .into_iter()
        .filter(|file| file.to_string_lossy().contains("partial-"))
        .count();
    assert_eq!(left, 0);
}

/// Once loaded, code does not change with its file.
#[tokio::test]
async fn loaded_code_does_not_depend_on_the_file() {
    let shared = Shared::new();
    assert!(!shared.run(1).await);
    let runtime = Runtime::new(shared.options()).unwrap();
    let module = runtime.module(&nth(1)).await.unwrap();
    for file in shared.files() {
        let length = fs::metadata(&file).unwrap().len();
        fs::write(&file, vec![0xcc; usize::try_from(length).unwrap()]).unwrap();
        cut(&file, 0);
    }
    let outcome = module
        .run(Invocation::default(), Arc::new(NoCluster))
        .await
        .unwrap();
    assert_eq!(&outcome.stdout[..], b"[]\n");
}
