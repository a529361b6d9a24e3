//! Starts, ends and restarts on the real programs.
#![expect(clippy::unwrap_used, reason = "a test; helpers are not seen as one")]

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use controlplane::{Component, ControlPlane, Options};

fn gone(what: &str, folder: &Path) {
    let end = Instant::now() + Duration::from_secs(10);
    while folder.exists() || processes_of(folder) > 0 {
        assert!(
            Instant::now() < end,
            "{what}: of {} something is left",
            folder.display()
        );
        thread::sleep(Duration::from_millis(50));
    }
}

/// Processes whose command line names the folder.
fn processes_of(folder: &Path) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|e| std::fs::read(e.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(folder.to_str().unwrap()))
        .count()
}

#[test]
fn starts_survives_outages_and_leaves_nothing() {
    let plane = ControlPlane::start(&Options::default()).unwrap();
    let folder = plane.folder().to_owned();
    let namespace = plane.namespace("life").unwrap();
    for component in [Component::ApiServer, Component::Etcd] {
        plane.stop_component(component);
        if component == Component::ApiServer {
            plane.request("GET", "/api/v1/namespaces", "").unwrap_err();
        }
        plane.start_component(component).unwrap();
        plane.start_component(component).unwrap_err();
        plane.wait_ready().unwrap();
        plane
            .request("GET", &format!("/api/v1/namespaces/{namespace}"), "")
            .unwrap();
    }
    plane.pause_component(Component::ApiServer).unwrap();
    plane.resume_component(Component::ApiServer).unwrap();
    plane.wait_ready().unwrap();
    let kept = plane.keep("kept", Command::new("cat")).unwrap();
    drop(plane);
    gone("dropped", &folder);
    drop(kept);
}

/// Not a test of its own: the process that the next test kills.
const OWNER: &str = "CONTROLPLANE_TEST_OWNER";

#[test]
fn dies_with_a_killed_owner() {
    if std::env::var_os(OWNER).is_some() {
        let plane = ControlPlane::start(&Options::default()).unwrap();
        println!("\nfolder {}", plane.folder().display());
        thread::sleep(Duration::from_mins(1));
        return;
    }
    let mut owner = Command::new(std::env::current_exe().unwrap());
    owner
        .args(["--exact", "dies_with_a_killed_owner", "--nocapture"])
        .env(OWNER, "1")
        .stdout(Stdio::piped());
    let mut owner = owner.spawn().unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let folder = lines
        .find_map(|l| l.strip_prefix("folder ").map(str::to_owned))
        .unwrap();
    let folder = PathBuf::from(folder);
    assert!(processes_of(&folder) >= 2);
    owner.kill().unwrap();
    owner.wait().unwrap();
    gone("killed", &folder);
}
