//! Every input of the corpora through its target, so that what was found once is found again without cargo-fuzz.

use std::path::Path;
use std::process::Command;
use std::{fs, panic};

use atc_fuzz::{PATH_MATCH, TARGETS};

#[test]
fn inputs_hold() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, target) in TARGETS {
        let inputs = fs::read_dir(corpora.join(name)).expect("each target has a corpus");
        let mut tried = 0;
        for input in inputs {
            let path = input.unwrap().path();
            let data = fs::read(&path).unwrap();
            let held = panic::catch_unwind(|| target(&data));
            assert!(held.is_ok(), "{} does not hold", path.display());
            tried += 1;
        }
        assert!(tried > 0, "no inputs of {name}");
    }
}

/// The same once more with Go beside it: in a process of its own, since a variable says where it is.
#[test]
fn inputs_hold_against_go() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("pathmatch");
    let mut build = Command::new("go");
    build
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("pathmatch"))
        .args(["build", "-o"])
        .arg(&program)
        .arg(".");
    assert!(build.status().expect("go runs").success());
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "inputs_hold"])
        .env(PATH_MATCH, program)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}
