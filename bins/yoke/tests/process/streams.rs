//! What goes to stdout and what to stderr.

use std::io::Read as _;
use std::process::Stdio;

use crate::{Home, configmap, printer};

#[test]
fn output_is_byte_for_byte() {
    let home = Home::new();
    let odd = b"# \xff\0\r\n---\n[]";
    home.put("f.wasm", printer(odd, b"", "", 0));
    let ran = home.yoke(&["takeoff", "-stdout", "r", "f.wasm"]);
    ran.ok();
    assert_eq!(ran.stdout(), odd);
    assert_eq!(ran.stderr(), "");
    let ran = home.yoke_with(&["takeoff", "-stdout", "r"], odd);
    ran.ok();
    assert_eq!(ran.stdout(), odd);
}

#[test]
fn no_cluster_is_wanted_for_it() {
    let home = Home::bare();
    home.put("f.wasm", printer(b"[]\n", b"", "", 0));
    assert_eq!(
        home.yoke(&["takeoff", "-stdout", "r", "f.wasm"]).ok(),
        "[]\n"
    );
    home.yoke(&["takeoff", "r", "f.wasm"])
        .failed(1, &["no kubeconfig"]);
    home.yoke(&["takeoff", "-stdout", "-cluster-access", "r", "f.wasm"])
        .failed(1, &["no kubeconfig"]);
    home.yoke(&["takeoff", "-stdout", "-kube-context", "x", "r", "f.wasm"])
        .failed(1, &["no kubeconfig"]);
    home.yoke(&["takeoff", "-stdout", "-kubeconfig", "gone", "r", "f.wasm"])
        .failed(1, &["\"gone\" does not exist"]);
    home.yoke(&["mayday", "r"]).failed(1, &["no kubeconfig"]);
}

#[test]
fn stderr_of_a_flight_is_passed_on_and_underlined() {
    let home = Home::new();
    for (said, shown) in [
        ("hello\n", "hello\n---\n"),
        ("no end", "no end\n---\n"),
        ("", ""),
    ] {
        home.put("f.wasm", printer(b"[]", said.as_bytes(), "", 0));
        let ran = home.yoke(&["takeoff", "-stdout", "r", "f.wasm"]);
        assert_eq!(ran.ok(), "[]");
        assert_eq!(ran.stderr(), shown);
    }
}

#[test]
fn empty_output_is_an_error() {
    let home = Home::new();
    for blank in ["", " \n\n", "\t"] {
        home.put("f.wasm", printer(blank.as_bytes(), b"", "", 0));
        home.yoke(&["takeoff", "-stdout", "r", "f.wasm"])
            .failed(1, &["output of the flight is empty"]);
        home.yoke_with(&["takeoff", "-stdout", "r"], blank)
            .failed(1, &["stdin is empty"]);
    }
}

#[test]
fn a_closed_stdout_is_no_matter() {
    let home = Home::new();
    home.put("f.wasm", printer(&vec![b'x'; 2_000_000], b"", "", 0));
    let mut child = home
        .command(&["takeoff", "-stdout", "r", "f.wasm"])
        .spawn()
        .expect("runs");
    let mut stdout = child.stdout.take().expect("pipe");
    stdout.read_exact(&mut [0; 10]).expect("begins");
    drop(stdout);
    let ended = child.wait_with_output().expect("ends");
    assert_eq!(
        (
            ended.status.code(),
            String::from_utf8_lossy(&ended.stderr).as_ref()
        ),
        (Some(0), "")
    );

    home.put("out", configmap("a"));
    for args in [
        &["-h"][..],
        &["takeoff", "-h"],
        &["takeoff", "-out", "-", "r"],
        &["version"],
        &["version", "-o", "json"],
        &["completion", "bash"],
        &["man"],
        &["man", "takeoff"],
    ] {
        let input = std::fs::File::open(home.path().join("out")).expect("file");
        let mut child = home.command(args).stdin(input).spawn().expect("runs");
        drop(child.stdout.take());
        let ended = child.wait_with_output().expect("ends");
        assert_eq!(
            (
                ended.status.code(),
                String::from_utf8_lossy(&ended.stderr).as_ref()
            ),
            (Some(0), ""),
            "{args:?}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let home = Home::new();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("device");
    let file = home.put("in", configmap("a"));
    let mut command = home.command(&["takeoff", "-stdout", "r"]);
    let ended = command
        .stdin(std::fs::File::open(file).expect("file"))
        .stdout(full)
        .output()
        .expect("runs");
    assert_eq!(ended.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("cannot write to stdout"));
}

#[test]
fn a_closed_stderr_is_no_matter() {
    let home = Home::new();
    home.put("f.wasm", printer(b"[]", &vec![b'x'; 200_000], "", 0));
    for debug in ["-debug=false", "-debug"] {
        let mut child = home
            .command(&["takeoff", debug, "-stdout", "r", "f.wasm"])
            .spawn()
            .expect("runs");
        drop(child.stderr.take());
        let ended = child.wait_with_output().expect("ends");
        assert_eq!(
            (ended.status.code(), ended.stdout.as_slice()),
            (Some(0), b"[]".as_slice()),
            "{debug}"
        );
    }
    for args in [&["takeoff", "-stdout", "r", "gone.wasm"][..], &["fly"]] {
        let mut child = home.command(args).spawn().expect("runs");
        drop(child.stderr.take());
        let ended = child.wait_with_output().expect("ends");
        assert_eq!(ended.status.code(), Some(1), "{args:?}");
    }
}

#[test]
fn a_pipe_gets_no_colours() {
    let home = Home::new();
    let ran = home.yoke(&["takeoff", "-stdout", "r", "gone.wasm"]);
    let stderr = ran.failed(1, &["error: ", "gone.wasm"]);
    assert!(!stderr.contains('\x1b'), "{stderr:?}");
}

#[test]
fn errors_are_told_once() {
    let home = Home::new();
    let stderr = home
        .yoke(&["takeoff", "-stdout", "r", "gone.wasm"])
        .failed(1, &["gone.wasm"]);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert_eq!(stderr.matches("os error").count(), 1, "{stderr}");
    assert_eq!(stderr.matches("RUST_BACKTRACE").count(), 0, "{stderr}");
}

#[test]
fn passwords_are_never_shown() {
    let home = Home::new();
    for flag in ["-debug=false", "-debug"] {
        for url in [
            "http://user:hunter2@127.0.0.1:1/f.wasm?token=hunter2",
            "https://hunter2@127.0.0.1:1/f.wasm",
            "ftp://u:hunter2@h/f",
        ] {
            let stderr = home
                .yoke(&["takeoff", flag, "-stdout", "r", url])
                .failed(1, &["error: "]);
            assert!(!stderr.contains("hunter2"), "{stderr}");
        }
        let config = "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], \
                      clusters: [{name: c, cluster: {server: \"http://user:hunter2@127.0.0.1:1\"}}], users: [{name: u, user: {password: hunter2, username: u}}]}";
        let path = home.put("secret.yaml", config);
        let stderr = home
            .yoke(&[
                "mayday",
                flag,
                "-kubeconfig",
                path.to_str().expect("text"),
                "r",
            ])
            .failed(1, &["error: "]);
        assert!(!stderr.contains("hunter2"), "{stderr}");
    }
}

#[test]
fn debug_tells_times_on_stderr() {
    let home = Home::new();
    home.put("f.wasm", printer(b"[]", b"", "", 0));
    let ran = home.yoke(&["takeoff", "-debug", "-stdout", "r", "f.wasm"]);
    assert_eq!(ran.ok(), "[]");
    assert!(
        ran.stderr().contains("flight loaded elapsed_ms="),
        "{}",
        ran.stderr()
    );
}

#[test]
fn stdin_is_the_input_of_a_flight() {
    let home = Home::new();
    let cat = wat::parse_str(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 2)
            (data (i32.const 0) "\40\00\00\00\00\80\00\00")
            (func (export "_start")
              (loop $again
                (i32.store (i32.const 4) (i32.const 32768))
                (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16)))
                (i32.store (i32.const 4) (i32.load (i32.const 16)))
                (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 20)))
                (br_if $again (i32.load (i32.const 16))))))"#,
    )
    .expect("module");
    home.put("cat.wasm", cat);
    for input in [&b"hi"[..], &b"\0\xff\r\n".repeat(100_000)] {
        let ran = home.yoke_with(&["takeoff", "-stdout", "r", "cat.wasm"], input);
        ran.ok();
        assert_eq!(ran.stdout(), input);
    }
    let mut nothing = home.command(&["takeoff", "-stdout", "r", "cat.wasm"]);
    let ended = nothing.stdin(Stdio::null()).output().expect("ran");
    assert_eq!(
        ended.status.code(),
        Some(1),
        "EOF at once, so nothing is printed"
    );
}
