use super::*;

fn check(list: &str, location: &str, expect: bool) {
    let parsed: AllowList = list.parse().unwrap();
    // What is no location at all is not allowed either.
    let allowed = location
        .parse()
        .is_ok_and(|location| parsed.allows(&location));
    assert_eq!(allowed, expect, "'{list}' on '{location}'");
}

#[test]
fn globs_between_commas() {
    let list = " http://127.0.0.1:*/ok/*, oci://h:5000/team/mod:2.*,,oci://h:5000/all/*,";
    check(list, "http://127.0.0.1:8080/ok/a.wasm", true);
    check(list, "http://127.0.0.1:8080/ok/a/b.wasm", false);
    check(list, "http://127.0.0.1:8080/no/a.wasm", false);
    check(list, "http://127.0.0.1:8080/x/ok/a.wasm", false);
    check(list, "http://localhost:8080/ok/a.wasm", false);
    check(list, "https://127.0.0.1:8080/ok/a.wasm", false);
    check(list, "oci://h:5000/team/mod:2.1.4", true);
    check(list, "oci://h:5000/team/mod:1.0.0", false);
    check(list, "oci://h:5000/team/mod", false);
    check(list, "oci://h:5000/all/x", true);
    check(list, "oci://h:5000/all/x:latest", true);
    check(list, "oci://h:5000/all/x/y", false);
    check(list, "/etc/passwd", false);
}

#[test]
fn what_is_requested_counts() {
    let list = "https://good.example:*/mods/*";
    check(list, "https://good.example/mods/a.wasm", true);
    check(list, "https://good.example:443/mods/a.wasm", true);
    check(list, "https://GOOD.example/mods/a.wasm#x", true);
    check(list, "https://joe:pw@good.example/mods/a.wasm", true);
    // As a text this matches, and is fetched from another host.
    check(
        list,
        "https://good.example:x@evil.example/mods/a.wasm",
        false,
    );
    check(list, "https://good.example/mods/../a.wasm", false);
    check(list, "https://good.example/x/../mods/a.wasm", true);
    let list = "oci://good.example:*/team/*";
    check(list, "oci://good.example:5000/team/a", true);
    check(list, "oci://good.example:x@evil.example/team/a", false);
    check(
        "https://good.example/*/*",
        "https://good.example/mods/%2e%2e/x/y.wasm",
        true,
    );
    check(
        "https://good.example/*/*/*",
        "https://good.example/mods/../y.wasm",
        false,
    );
    check(
        "https://good.example/mods/*",
        "https://good.example:443/mods/a.wasm?v=1",
        true,
    );
    check(
        "https://good.example/mods/*",
        "https://good.example:444/mods/a.wasm",
        false,
    );
    check("http://[\\[]::1]:80/*", "http://[::1]/a.wasm", true);
    for hidden in ["..%2fa.wasm", "..%5Ca.wasm", "a%2Ewasm", "x%2f..%2fa.wasm"] {
        let url = format!("https://good.example/mods/{hidden}");
        check("https://good.example/mods/*", &url, false);
    }
    check(
        "https://good.example/mods/*",
        "https://good.example/mods/a%20b.wasm?x=%2f",
        true,
    );
}

#[test]
fn a_digest_decides_and_not_the_tag() {
    let sum = "a".repeat(64);
    let tags = "oci://h/team/mod:2.*";
    check(tags, "oci://h/team/mod:2.1", true);
    check(tags, &format!("oci://h/team/mod:2.1@sha256:{sum}"), false);
    for digests in [
        format!("oci://h/team/mod@sha256:{sum}"),
        "oci://h/team/mod@*".to_owned(),
        "oci://h/team/*".to_owned(),
    ] {
        for location in ["oci://h/team/mod:2.1", "oci://h/team/mod"] {
            let location = format!("{location}@sha256:{}", sum.to_uppercase());
            check(&digests, &location, true);
        }
    }
    check("oci://h/team/mod@*", "oci://h/team/mod:2.1", false);
}

#[test]
fn files() {
    check("/modules/*", "/modules/a.wasm", true);
    check("/modules/*", "/modules/../etc/passwd", false);
    check("/modules/*/*", "/modules/../passwd", false);
    check("file:///modules/*", "/modules/./a.wasm", true);
    check("/modules/*", "file:///modules/a.wasm", true);
    check("*", "a.wasm", true);
    check("*", "../a.wasm", false);
}

#[test]
fn lists_that_are_none_are_errors() {
    let error = "https://h/*,oci://[".parse::<AllowList>().unwrap_err();
    assert!(error.to_string().contains("'oci://['"), "{error}");
    for empty in ["", " , "] {
        assert_eq!(empty.parse::<AllowList>(), Err(AllowListError::Empty));
    }
}
