//! What an atc says at its start where something is not as it must be. No control plane is needed for that.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use atc_tests::binary;
use serde_json::json;
use tempfile::TempDir;

/// Nothing listens there.
const NOWHERE: &str = "127.0.0.1:1";
/// Lines that are waited for: one a try, and those of the start.
const LINES: usize = 10;

/// An atc that listens on this port and knows no other API server than one that is not there.
fn atc(folder: &TempDir, port: u16) -> Command {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{ "name": "c", "cluster": { "server": format!("http://{NOWHERE}") } }],
        "users": [{ "name": "u", "user": {} }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
    });
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, config.to_string()).unwrap();
    let mut command = Command::new(binary("atc").unwrap());
    command
        .env_clear()
        .env("KUBE", path)
        .env("PORT", port.to_string())
        .env("CACHE_FS", folder.path())
        .env("SVC_NAMESPACE", "n")
        .env("WEBHOOK_URL", "https://localhost:3000");
    command
}

#[test]
fn a_port_that_is_taken_is_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind(("0.0.0.0", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let ran = atc(&folder, port).output().unwrap();
    let log = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(ran.status.code(), Some(1), "{log}");
    assert!(
        log.contains(&format!("can't serve HTTPS on port {port}")),
        "{log}"
    );
    assert!(!log.contains("serving HTTPS"), "{log}");
}

#[test]
fn a_server_that_is_not_there_is_told_with_its_address() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = atc(&folder, 0);
    command.env("CONCURRENCY", "0").stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let hint = format!("looked for at {NOWHERE}: check that it runs there");
    let mut log = String::new();
    for line in lines.map_while(Result::ok).take(LINES) {
        log.push_str(&line);
        log.push('\n');
        if line.contains(&hint) && log.contains("serving HTTPS") {
            break;
        }
    }
    process.kill().unwrap();
    process.wait().unwrap();
    for words in [&*hint, "serving HTTPS", "CONCURRENCY is below 1"] {
        assert!(log.contains(words), "{words:?} in {log}");
    }
}

#[test]
fn settings_that_are_missing_or_wrong_name_their_variables() {
    let folder = tempfile::tempdir().unwrap();
    for (variable, value, words) in [
        ("VERBOSE", "yes", "set by VERBOSE in the environment, too"),
        ("PORT", "99999", "from 1 to 65535"),
    ] {
        let ran = atc(&folder, 0).env(variable, value).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
    let ran = atc(&folder, 0).env_remove("WEBHOOK_URL").output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(
        said.contains("WEBHOOK_URL and SVC_NAMESPACE instead"),
        "{said}"
    );
}
