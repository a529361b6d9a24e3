//! SIGINT and SIGTERM.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Home, printer};

/// Sends the signal, and wants the process to end with 1 soon, with a message.
fn ends(signal: &str, child: Child) {
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .expect("kill");
    assert!(sent.success());
    let started = Instant::now();
    let ended = child.wait_with_output().expect("ends");
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("interrupted"), "{stderr}");
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
}

/// The program is up when it handles the signal; before that it would die of it, which is no loss but no test.
fn wait_for_handler(child: &Child) {
    let path = format!("/proc/{}/status", child.id());
    for _ in 0..500 {
        let status = std::fs::read_to_string(&path).unwrap_or_default();
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .unwrap_or("0")
            .trim()
            .to_owned();
        // SIGINT is 2, SIGTERM 15; the one of the runtime is set last.
        if u64::from_str_radix(&caught, 16).unwrap_or_default() & (1 << 14) != 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no handler");
}

#[cfg(target_os = "linux")]
#[test]
fn while_it_reads_stdin() {
    let home = Home::new();
    home.put("f.wasm", printer(b"[]", b"", "", 0));
    for args in [
        &["takeoff", "-stdout", "r"][..],
        &["takeoff", "-stdout", "r", "f.wasm"],
        &["takeoff", "-out", "d", "r"],
    ] {
        for signal in ["-INT", "-TERM"] {
            let mut child = home
                .command(args)
                .stdin(Stdio::piped())
                .spawn()
                .expect("runs");
            let mut stdin = child.stdin.take().expect("pipe");
            stdin.write_all(b"apiVersion").expect("begins");
            wait_for_handler(&child);
            ends(signal, child);
            drop(stdin);
        }
    }
    assert!(!home.path().join("d").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn while_a_flight_runs() {
    let home = Home::new();
    home.put("f.wasm", printer(b"", b"", "(loop br 0)", 0));
    let child = home
        .command(&["takeoff", "-stdout", "-timeout", "-1s", "r", "f.wasm"])
        .spawn()
        .expect("runs");
    wait_for_handler(&child);
    std::thread::sleep(Duration::from_millis(500));
    ends("-INT", child);
}

#[cfg(target_os = "linux")]
#[test]
fn while_nobody_reads_its_output() {
    let home = Home::new();
    home.put("f.wasm", printer(&vec![b'x'; 2_000_000], b"", "", 0));
    let child = home
        .command(&["takeoff", "-stdout", "r", "f.wasm"])
        .spawn()
        .expect("runs");
    wait_for_handler(&child);
    std::thread::sleep(Duration::from_millis(500));
    ends("-INT", child);
}

#[cfg(target_os = "linux")]
#[test]
fn while_the_cluster_does_not_answer() {
    let home = Home::bare();
    // Connections are taken by the system, and nobody reads from them.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("port");
    let server = format!("http://{}", silent.local_addr().expect("address"));
    let config = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
         clusters: [{{name: c, cluster: {{server: \"{server}\"}}}}], users: [{{name: u, user: {{}}}}]}}"
    );
    home.put(".kube/config", config);
    for args in [
        &["blackbox"][..],
        &["turbulence", "r"],
        &["turbulence", "-fix", "r"],
    ] {
        let child = home.command(args).spawn().expect("runs");
        wait_for_handler(&child);
        ends("-INT", child);
    }
}
