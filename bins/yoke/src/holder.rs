//! Who we are, for whoever meets our claim or our lock: in words, and as a process that others on this machine can look up.

use atc_engine::{HOLD_WAIT, HoldRequest};

use crate::interrupt::Interrupt;

/// In words: `yoke takeoff of ann on build-7, process 4711`.
pub(crate) fn words(verb: &str) -> String {
    let user = std::env::var("USER")
        .or_else(|_| std::env::var("LOGNAME"))
        .map(|user| format!(" of {}", plain(&user)))
        .unwrap_or_default();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::env::var("HOSTNAME"))
        .map(|host| format!(" on {}", plain(&host)))
        .unwrap_or_default();
    format!("yoke {verb}{user}{host}, process {}", std::process::id())
}

/// How a command holds its release.
pub(crate) fn request(verb: &str, interrupt: &Interrupt) -> HoldRequest {
    HoldRequest {
        who: words(verb),
        process: process(std::process::id()).unwrap_or_default(),
        has_ended,
        wait: HOLD_WAIT,
        stop: interrupt.stop(),
    }
}

/// Text of the environment as part of a line: without control characters, and not without end.
fn plain(text: &str) -> String {
    let text = text.trim().chars().filter(|c| !c.is_control());
    text.take(64).collect()
}

/// A process that runs here, as `<boot>/<process namespace>/<id>/<start>`: no other has the same four. `None` where it
/// does not run, or the system does not say.
fn process(id: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    Some(format!("{}/{id}/{}", machine()?, start(&stat)?))
}

/// What two processes that can see each other have in common.
fn machine() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{}/{}", boot.trim(), namespace.to_string_lossy()))
}

/// When a process started, in ticks since the boot: the 20th word after its name, which ends with the last parenthesis. A
/// process that has ended and that nobody has waited for (`Z`, `X`) has none.
fn start(stat: &str) -> Option<&str> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    let state = words.next()?;
    (!matches!(state, "Z" | "X"))
        .then(|| words.nth(18))
        .flatten()
}

/// Whether the process of a claim has certainly ended: it was one of this machine, and there is none like it any more.
fn has_ended(claimed: &str) -> bool {
    let Some((rest, _)) = claimed.rsplit_once('/') else {
        return false;
    };
    let Some((place, id)) = rest.rsplit_once('/') else {
        return false;
    };
    let (Some(here), Ok(id)) = (machine(), id.parse()) else {
        return false;
    };
    here == place && process(id).as_deref() != Some(claimed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_found_behind_any_name() {
        let after = |name: &str, state: &str| {
            let zeros = ["0"; 18].join(" ");
            format!("7 ({name}) {state} {zeros} 4711 0 0")
        };
        for name in ["yoke", "a b", "x) Z (y"] {
            assert_eq!(start(&after(name, "S")), Some("4711"), "{name}");
            assert_eq!(start(&after(name, "Z")), None, "{name}");
        }
        assert_eq!(start(""), None);
        assert_eq!(start("7 (yoke) S 1 2"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_what_ran_here_and_is_gone_has_ended() {
        let us = process(std::process::id()).expect("we run");
        assert!(!has_ended(&us));
        let mut child = std::process::Command::new("true").spawn().expect("runs");
        let (here, id) = (machine().expect("linux"), child.id());
        child.wait().expect("ends");
        assert!(has_ended(&format!("{here}/{id}/4711")));
        // Our id, of a process that started at another time.
        let (same, _) = us.rsplit_once('/').expect("parts");
        assert!(has_ended(&format!("{same}/1")));
        // Of another machine, or no name at all: nobody here can know.
        assert!(!has_ended(&format!("other/boot/{id}/4711")));
        for nonsense in ["", "x", "a/b", "a/b/c/d"] {
            assert!(!has_ended(nonsense), "{nonsense}");
        }
    }
}
