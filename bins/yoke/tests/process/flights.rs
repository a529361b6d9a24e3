//! Flights that fail, and where they come from.

use std::io::Write as _;

use crate::{Home, printer};

#[test]
fn an_exit_code_is_named_and_ours_is_1() {
    let home = Home::new();
    for code in [1, 2, 3, 137, 255] {
        home.put("f.wasm", printer(b"[]", b"the reason\n", "", code));
        let stderr = home
            .yoke(&["takeoff", "-stdout", "r", "f.wasm"])
            .failed(1, &[&format!("exit_code({code})")]);
        assert!(stderr.starts_with("the reason\n---\nerror: "), "{stderr}");
        assert_eq!(stderr.matches("the reason").count(), 1, "{stderr}");
    }
    home.put("f.wasm", printer(b"[]", b"", "", 7));
    home.yoke(&["takeoff", "-stdout", "r", "f.wasm"])
        .failed(1, &["exit_code(7)", "nothing to stderr"]);
}

#[test]
fn a_trap_is_named() {
    let home = Home::new();
    home.put("f.wasm", printer(b"[]", b"before\n", "unreachable", 0));
    let stderr = home
        .yoke(&["takeoff", "-stdout", "r", "f.wasm"])
        .failed(1, &["unreachable"]);
    assert!(stderr.starts_with("before\n---\nerror: "), "{stderr}");
}

#[test]
fn limits_are_named() {
    let home = Home::new();
    home.put("loop.wasm", printer(b"", b"", "(loop br 0)", 0));
    home.yoke(&["takeoff", "-stdout", "-timeout", "50ms", "r", "loop.wasm"])
        .failed(1, &["timed out", "50ms"]);
    home.put(
        "big.wasm",
        wat::parse_str(r#"(module (memory (export "memory") 33) (func (export "_start")))"#)
            .expect("module"),
    );
    home.yoke(&[
        "takeoff",
        "-stdout",
        "-max-memory-mib",
        "2",
        "r",
        "big.wasm",
    ])
    .failed(1, &["memory", "2 MiB"]);
}

#[test]
fn places() {
    let home = Home::new();
    let module = printer(b"[]", b"", "", 0);
    home.put("f.wasm", &module);
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zipped.write_all(&module).expect("zips");
    home.put("f.wasm.gz", zipped.finish().expect("zips"));
    let url = format!("file://{}/f.wasm", home.path().display());
    for place in ["f.wasm", "./f.wasm", "f.wasm.gz", &url] {
        assert_eq!(
            home.yoke(&["takeoff", "-stdout", "r", place]).ok(),
            "[]",
            "{place}"
        );
    }
    home.yoke(&["takeoff", "-stdout", "r", "nowhere.wasm"])
        .failed(1, &["nowhere.wasm"]);
    home.yoke(&["takeoff", "-stdout", "r", "."])
        .failed(1, &["directory"]);
    home.yoke(&["takeoff", "-stdout", "r", ""])
        .failed(1, &["empty"]);
    home.yoke(&["takeoff", "-stdout", "r", "s3://bucket/f.wasm"])
        .failed(1, &["s3"]);
    home.yoke(&["takeoff", "-stdout", "r", "oci://host/f:v1"])
        .failed(1, &["oci://host/f:v1"]);
    home.put("text.wasm", "(module)");
    home.yoke(&["takeoff", "-stdout", "r", "text.wasm"])
        .failed(1, &["text.wasm"]);
}

#[test]
fn a_checksum_is_held_against_the_module() {
    let home = Home::new();
    home.put("f.wasm", printer(b"[]", b"", "", 0));
    let wrong = "0".repeat(64);
    let stderr = home
        .yoke(&["takeoff", "-stdout", "-checksum", &wrong, "r", "f.wasm"])
        .failed(1, &[&wrong, "checksum"]);
    let right = stderr
        .rsplit_once("got '")
        .expect("got")
        .1
        .split('\'')
        .next()
        .expect("sum")
        .to_owned();
    assert_eq!(
        home.yoke(&["takeoff", "-stdout", "-checksum", &right, "r", "f.wasm"])
            .ok(),
        "[]"
    );
    home.yoke_with(&["takeoff", "-stdout", "-checksum", &right, "r"], "[]")
        .failed(1, &["-checksum"]);
}

#[test]
fn a_cache_folder_is_used_only_if_given() {
    let home = Home::new();
    let flight = home.put("f.wasm", printer(b"[]", b"", "", 0));
    let names = || {
        let mut names: Vec<_> = std::fs::read_dir(home.path())
            .expect("list")
            .map(|e| e.expect("entry").file_name())
            .collect();
        names.sort();
        names
    };
    home.yoke(&["takeoff", "-stdout", "r", "f.wasm"]).ok();
    assert_eq!(names(), [".kube", "f.wasm"]);
    for _ in 0..2 {
        assert_eq!(
            home.yoke(&[
                "takeoff",
                "-stdout",
                "-compilation-cache",
                "cache",
                "r",
                "f.wasm"
            ])
            .ok(),
            "[]"
        );
    }
    assert_eq!(names(), [".kube", "cache", "f.wasm"]);
    std::fs::remove_file(flight).expect("removed");
    home.yoke(&[
        "takeoff",
        "-stdout",
        "-compilation-cache",
        "cache",
        "r",
        "f.wasm",
    ])
    .failed(1, &["f.wasm"]);
}
