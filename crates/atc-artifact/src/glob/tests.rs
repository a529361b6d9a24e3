use proptest::prelude::*;

use super::*;

fn check(glob: &str, name: &str, expect: bool) {
    let parsed: Glob = glob.parse().unwrap();
    assert_eq!(parsed.matches(name), expect, "'{glob}' on '{name}'");
}

#[test]
fn what_matches_what() {
    check(
        "oci://ghcr.io/yokecd/*",
        "oci://ghcr.io/yokecd/examples",
        true,
    );
    check(
        "oci://ghcr.io/yokecd/*",
        "oci://ghcr.io/yokecd/examples/a",
        false,
    );
    check(
        "oci://ghcr.io/yokecd/*",
        "oci://ghcr.io/other/examples",
        false,
    );
    check(
        "oci://ghcr.io/yokecd/*",
        "https://ghcr.io/yokecd/examples",
        false,
    );
    check("oci://h/mod:2.*", "oci://h/mod:2.1.4", true);
    check("oci://h/mod:2.*", "oci://h/mod:1.0.0", false);
    check("oci://h/mod:2.*", "oci://h/mod", false);
    check("http://example.com:*/*", "http://example.com:8080/x", true);
    check("**", "a/b", false);
    check("{a,b}", "a", false);
    check("{a,b}", "{a,b}", true);
    check("[!a]", "b", false);
    check("[!a]", "!", true);
    check("[^a]", "b", true);
    check("[^a]", "a", false);
    check("\\*", "*", true);
    check("\\*", "a", false);
    check("", "", true);
    check("", "a", false);
}

#[test]
fn what_is_no_glob_is_named() {
    for glob in [
        "[", "[]", "[]a]", "[^]", "[-a]", "[a-]", "[a", "[a-", "[a\\", "\\", "a*[", "x\\",
    ] {
        let error = glob.parse::<Glob>().unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("'{glob}' is no glob: ")),
            "{error}"
        );
    }
}

/// `path_match.tsv` holds 2,000 generated pairs and what Go's `path.Match` says of them.
#[test]
fn it_is_as_go_does() {
    let data = include_str!("path_match.tsv");
    let mut pairs = 0;
    for line in data.lines().filter(|line| !line.starts_with('#')) {
        let [expect, glob, name] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let got = match glob.parse::<Glob>() {
            Err(_) => "e",
            Ok(glob) if glob.matches(name) => "1",
            Ok(_) => "0",
        };
        assert_eq!(got, expect, "'{glob}' on '{name}'");
        pairs += 1;
    }
    assert_eq!(pairs, 2000);
}

#[test]
fn hostile_globs_end() {
    let glob: Glob = "*a".repeat(500).parse().unwrap();
    assert!(!glob.matches(&"a".repeat(20_000).replace("aaaa", "aaab")));
}

proptest! {
    #[test]
    fn no_input_panics(glob in ".{0,20}", name in ".{0,20}") {
        if let Ok(glob) = glob.parse::<Glob>() {
            glob.matches(&name);
        }
    }

    #[test]
    fn a_quoted_name_matches_itself_alone(name in ".{0,12}", other in ".{0,12}") {
        let glob: Glob = name.chars().flat_map(|char| ['\\', char]).collect::<String>().parse().unwrap();
        prop_assert!(glob.matches(&name));
        prop_assert_eq!(glob.matches(&other), other == name);
    }

    #[test]
    fn a_star_takes_all_but_slashes(head in "[a-z]{0,5}", middle in ".{0,9}", tail in "[a-z]{0,5}") {
        let glob: Glob = format!("{head}*{tail}").parse().unwrap();
        prop_assert_eq!(glob.matches(&format!("{head}{middle}{tail}")), !middle.contains('/'));
    }
}
