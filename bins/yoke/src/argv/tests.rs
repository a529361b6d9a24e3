//! What users type, and what the parser gets to read.

use std::ffi::OsString;

use clap::CommandFactory as _;

use super::normalize;
use crate::cli::Cli;

fn check(typed: &[&str], wanted: &[&str]) {
    let mut command = Cli::command();
    command.build();
    let args = std::iter::once("yoke")
        .chain(typed.iter().copied())
        .map(OsString::from);
    let got: Vec<String> = normalize(args, &command)
        .into_iter()
        .skip(1)
        .map(|arg| arg.into_string().expect("text"))
        .collect();
    assert_eq!(got, wanted, "{typed:?}");
}

#[test]
fn both_styles_are_one() {
    for dash in ["-", "--"] {
        let flag = |name: &str| format!("{dash}{name}");
        check(&["takeoff", &flag("dry"), "r"], &["takeoff", "--dry", "r"]);
        check(
            &["takeoff", &flag("namespace=n"), "r"],
            &["takeoff", "--namespace=n", "r"],
        );
        check(
            &["takeoff", &flag("namespace"), "n", "r"],
            &["takeoff", "--namespace=n", "r"],
        );
        check(&["takeoff", &flag("help")], &["takeoff", "--help"]);
    }
    check(&["-h"], &["-h"]);
    check(&["takeoff", "-h"], &["takeoff", "-h"]);
    check(&["up", "-dry", "r"], &["up", "--dry", "r"]);
}

#[test]
fn values_stay_as_they_are() {
    check(
        &["takeoff", "-timeout", "-1s", "r"],
        &["takeoff", "--timeout=-1s", "r"],
    );
    check(
        &["takeoff", "-history-cap", "-1", "r"],
        &["takeoff", "--history-cap=-1", "r"],
    );
    check(
        &["takeoff", "-history-cap=-1", "r"],
        &["takeoff", "--history-cap=-1", "r"],
    );
    check(
        &["takeoff", "-checksum", "-dry", "r"],
        &["takeoff", "--checksum=-dry", "r"],
    );
    check(
        &["takeoff", "-checksum", "--dry=x", "r"],
        &["takeoff", "--checksum=--dry=x", "r"],
    );
    check(
        &["takeoff", "-checksum=-a=b", "r"],
        &["takeoff", "--checksum=-a=b", "r"],
    );
    check(&["takeoff", "-out", "-", "r"], &["takeoff", "--out=-", "r"]);
    check(
        &["takeoff", "-namespace", "", "r"],
        &["takeoff", "--namespace=", "r"],
    );
    check(
        &["takeoff", "-namespace=", "r"],
        &["takeoff", "--namespace=", "r"],
    );
    check(
        &["takeoff", "-namespace", "takeoff", "mayday"],
        &["takeoff", "--namespace=takeoff", "mayday"],
    );
}

#[test]
fn globals_stand_before_and_after() {
    check(
        &["-kubeconfig", "takeoff", "mayday", "r"],
        &["--kubeconfig=takeoff", "mayday", "r"],
    );
    check(
        &["mayday", "-kubeconfig", "k", "r"],
        &["mayday", "--kubeconfig=k", "r"],
    );
    check(&["-debug", "mayday", "-debug=false", "r"], &["mayday", "r"]);
    check(&["-debug=true", "mayday", "r"], &["--debug", "mayday", "r"]);
}

#[test]
fn flags_may_follow_positionals() {
    check(
        &["takeoff", "r", "-dry", "f.wasm", "-wait", "5s"],
        &["takeoff", "r", "--dry", "f.wasm", "--wait=5s"],
    );
}

#[test]
fn switches_take_words() {
    for word in ["1", "t", "T", "true", "TRUE", "True"] {
        check(
            &["takeoff", &format!("-dry={word}"), "r"],
            &["takeoff", "--dry", "r"],
        );
        check(
            &["takeoff", &format!("-color={word}"), "r"],
            &["takeoff", "--color=true", "r"],
        );
    }
    for word in ["0", "f", "F", "false", "FALSE", "False"] {
        check(
            &["takeoff", &format!("-dry={word}"), "r"],
            &["takeoff", "r"],
        );
        check(
            &["takeoff", &format!("-color={word}"), "r"],
            &["takeoff", "--color=false", "r"],
        );
    }
    check(
        &["takeoff", "-color", "r"],
        &["takeoff", "--color=true", "r"],
    );
    check(&["takeoff", "-dry", "-dry=false", "r"], &["takeoff", "r"]);
    check(
        &["takeoff", "-dry=false", "-dry", "r"],
        &["takeoff", "--dry", "r"],
    );
    check(
        &["takeoff", "-dry=perhaps", "r"],
        &["takeoff", "--dry=perhaps", "r"],
    );
    check(
        &["takeoff", "-dry", "false"],
        &["takeoff", "--dry", "false"],
    );
}

#[test]
fn nothing_after_two_dashes_is_touched() {
    check(
        &[
            "takeoff",
            "-dry",
            "r",
            "f",
            "--",
            "-x",
            "--dry=false",
            "--",
            "-namespace",
            "n",
        ],
        &[
            "takeoff",
            "--dry",
            "r",
            "f",
            "--",
            "-x",
            "--dry=false",
            "--",
            "-namespace",
            "n",
        ],
    );
    check(
        &["takeoff", "r", "-namespace", "--", "-x"],
        &["takeoff", "r", "--namespace", "--", "-x"],
    );
}

#[test]
fn what_nobody_knows_is_passed_on() {
    check(
        &["takeoff", "-no-such-flag", "r"],
        &["takeoff", "--no-such-flag", "r"],
    );
    check(
        &["takeoff", "-no=such", "r"],
        &["takeoff", "--no=such", "r"],
    );
    check(&["takeoff", "-x"], &["takeoff", "--x"]);
    check(&["takeoff", "-wait"], &["takeoff", "--wait"]);
    check(&["fly", "-away"], &["fly", "--away"]);
    check(&["takeoff", "-", "-=x"], &["takeoff", "-", "-=x"]);
    check(
        &["-namespace", "n", "takeoff"],
        &["--namespace", "n", "takeoff"],
    );
    check(&[], &[]);
}

#[cfg(unix)]
#[test]
fn values_need_not_be_text() {
    use std::os::unix::ffi::OsStringExt as _;
    let mut command = Cli::command();
    command.build();
    let odd = OsString::from_vec(b"-out=\xff".to_vec());
    let got = normalize(["yoke".into(), "takeoff".into(), odd], &command);
    assert_eq!(got[2], OsString::from_vec(b"--out=\xff".to_vec()));
}
