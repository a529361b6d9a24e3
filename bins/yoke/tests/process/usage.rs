//! Help, wrong use, and what this version lacks.

use crate::{Home, configmap};

#[test]
fn help_goes_to_stdout() {
    let home = Home::bare();
    for args in [
        &["-h"][..],
        &["--help"],
        &["takeoff", "-h"],
        &["takeoff", "r", "-help"],
        &["descent", "-h"],
        &["mayday", "-h"],
        &["blackbox", "-h"],
        &["drift", "-h"],
        &["completion", "-h"],
        &["man", "-h"],
        &["unlatch", "-h"],
        &["meta", "-h"],
        &["sign", "-h"],
        &["verify", "-h"],
        &["version", "-h"],
    ] {
        let ran = home.yoke(args);
        assert!(ran.ok().contains("Usage: yoke"), "{args:?}");
        assert_eq!(ran.stderr(), "");
    }
}

#[test]
fn wrong_use() {
    let home = Home::bare();
    home.yoke(&["takeoff", "-no-such-flag", "r"])
        .failed(2, &["no-such-flag"]);
    home.yoke(&["takeoff", "-wait", "soon", "r"])
        .failed(2, &["soon"]);
    home.yoke(&["takeoff"]).failed(1, &["RELEASE"]);
    home.yoke(&["takeoff", ""])
        .failed(1, &["name of the release is empty"]);
    home.yoke(&["fly"]).failed(1, &["fly"]);
    home.yoke(&[]).failed(1, &["Usage: yoke"]);
    home.yoke(&["atc", "install"])
        .failed(2, &["not part of this version yet"]);
    for flag in ["-out", "-verify"] {
        home.yoke(&["takeoff", flag, "", "r"])
            .failed(2, &["it is empty"]);
    }
    home.yoke(&["takeoff", "-dry", "-skip-dry-run", "r"])
        .failed(1, &["-skip-dry-run"]);
    home.yoke(&["takeoff", "-stdout", "r", "--", "x"])
        .failed(1, &["none is given"]);
    home.yoke(&["turbulence", ""])
        .failed(1, &["name of the release is empty"]);
    home.yoke(&["turbulence", "-fix", "-o", "json", "r"])
        .failed(1, &["-output"]);
    home.yoke(&["blackbox", "r", "x"])
        .failed(1, &["\"x\" is no id"]);
    home.yoke(&["man", "fly"]).failed(1, &["\"fly\""]);
    home.yoke(&["completion", "csh"]).failed(1, &["csh"]);
    home.yoke(&["descent", "", "1"])
        .failed(1, &["name of the release is empty"]);
    home.yoke(&["unlatch", ""])
        .failed(1, &["name of the release is empty"]);
    home.yoke(&["takeoff", "-verify=k", "-stdout", "r"])
        .failed(1, &["-verify checks a flight, and none is given"]);
}

#[test]
fn both_styles_and_both_places() {
    let home = Home::new();
    for args in [
        &["takeoff", "-stdout", "r"][..],
        &["takeoff", "--stdout", "r"],
        &["takeoff", "-stdout=true", "r"],
        &["takeoff", "r", "-stdout"],
        &["up", "r", "--stdout=1"],
        &["apply", "-dry=false", "-stdout", "r"],
        &["-kube-context", "c", "takeoff", "-stdout", "r"],
        &["takeoff", "-stdout", "-kube-context=c", "r"],
        &[
            "takeoff",
            "-timeout",
            "-1s",
            "-history-cap",
            "-1",
            "r",
            "-stdout",
        ],
        &[
            "takeoff",
            "-stdout",
            "-kubeconfig=",
            "-kube-context",
            "",
            "-checksum",
            "",
            "-namespace",
            "",
            "-compilation-cache=",
            "r",
        ],
    ] {
        assert_eq!(
            home.yoke_with(args, configmap("a")).ok(),
            configmap("a"),
            "{args:?}"
        );
    }
}

#[test]
fn an_unreachable_cluster_is_an_error_soon() {
    let home = Home::new();
    let started = std::time::Instant::now();
    home.yoke_with(&["takeoff", "r"], configmap("a"))
        .failed(1, &["error: ", "cannot be reached", "hint: "]);
    for args in [
        &["mayday", "r"][..],
        &["blackbox"],
        &["blackbox", "r"],
        &["turbulence", "r"],
        &["turbulence", "-fix", "r"],
    ] {
        home.yoke(args)
            .failed(1, &["error: ", "cannot be reached", "hint: "]);
    }
    assert!(started.elapsed().as_secs() < 20);
}

#[test]
fn kubeconfigs_r119() {
    let home = Home::bare();
    let part = |name: &str, text: &str| {
        home.put(name, format!("{{apiVersion: v1, kind: Config, {text}}}"))
    };
    part(
        "one",
        "clusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}], users: [{name: u, user: {}}]",
    );
    part(
        "two",
        "contexts: [{name: c, context: {cluster: c, user: u}}], current-context: c",
    );
    part(
        "gone-context",
        "contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}], current-context: gone",
    );
    home.put("broken", "{");
    let run = |list: &str, args: &[&str]| {
        let mut command = home.command(&[&["takeoff", "-stdout", "r"], args].concat());
        let file = home.put(".stdin", "[]");
        let ended = command
            .env("KUBECONFIG", list)
            .stdin(std::fs::File::open(file).expect("file"))
            .output()
            .expect("ran");
        (
            ended.status.code(),
            String::from_utf8_lossy(&ended.stderr).into_owned(),
        )
    };
    assert_eq!(run("one:two", &[]).0, Some(0));
    assert_eq!(run("missing:one::two", &["-kube-context", "c"]).0, Some(0));
    for (list, args, word) in [
        ("one:two", &["-kube-context", "nope"][..], "nope"),
        ("gone-context", &[], "gone"),
        ("broken", &[], "\"broken\""),
        ("one:two", &["-kubeconfig", "missing"], "\"missing\""),
    ] {
        let (code, stderr) = run(list, args);
        assert_eq!(code, Some(1), "{list} {args:?}: {stderr}");
        assert!(stderr.contains(word), "{list} {args:?}: {stderr}");
    }
}

#[test]
fn versions() {
    let home = Home::bare();
    let text = home.yoke(&["version"]).ok();
    assert!(text.contains(env!("CARGO_PKG_VERSION")), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&home.yoke(&["version", "-o", "json"]).ok()).expect("json");
    assert_eq!(json["yoke"], env!("CARGO_PKG_VERSION"));
    assert!(json["seenByFlights"].is_string(), "{json}");
    let yaml = home.yoke(&["version", "-output=yaml"]).ok();
    assert!(
        yaml.starts_with(&format!("yoke: \"{}\"\n", env!("CARGO_PKG_VERSION"))),
        "{yaml}"
    );
}

/// Such a text is no error in the existing tool, and gives access to nothing there either.
#[test]
fn a_matcher_that_fits_nothing_is_told() {
    let access = "Sec ret,team/Secret:db, a/b/c,Secret:,/,*";
    let args = [
        "takeoff",
        "-stdout",
        "-cluster-access=false",
        "-resource-access",
        access,
        "r",
    ];
    let ran = Home::bare().yoke_with(&args, configmap("a"));
    ran.ok();
    let told = ran.stderr();
    for text in ["Sec ret", "a/b/c", "Secret:", "/"] {
        assert!(
            told.contains(&format!("\"{text}\" fits no resource")),
            "{text}: {told}"
        );
    }
    assert_eq!(told.matches("fits no resource").count(), 4, "{told}");
}
