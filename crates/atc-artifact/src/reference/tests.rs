//! Tables: how names of artifacts are read.

use super::*;

const SUM: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn parse(text: &str) -> OciLocation {
    OciLocation::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

#[test]
fn names_are_taken_apart() {
    for (text, registry, repository, version) in [
        ("h.io/app:v1", "h.io", "app", "v1"),
        ("H.io/app", "h.io", "app", "latest"),
        ("h:5000/a/b/c:1.2.3-pre+b", "h:5000", "a/b/c", "1.2.3-pre+b"),
        ("localhost/app", "localhost", "app", "latest"),
        ("[::1]:5000/app:v1", "[::1]:5000", "app", "v1"),
        ("127.0.0.1:5000/app", "127.0.0.1:5000", "app", "latest"),
        ("alpine", "index.docker.io", "library/alpine", "latest"),
        ("alpine:3", "index.docker.io", "library/alpine", "3"),
        ("team/app:v1", "index.docker.io", "team/app", "v1"),
        ("docker.io/app", "index.docker.io", "library/app", "latest"),
        (
            "registry-1.docker.io/a/b",
            "index.docker.io",
            "a/b",
            "latest",
        ),
        ("h.io/a__b/c-d.e:X_1", "h.io", "a__b/c-d.e", "X_1"),
    ] {
        let at = parse(text);
        assert_eq!(
            (at.registry(), at.repository(), at.version()),
            (registry, repository, version),
            "{text}"
        );
        assert_eq!(at.to_string(), format!("oci://{text}"));
    }
    let both = parse(&format!("h.io/app:v1@{}", SUM.replace("def", "DEF")));
    assert_eq!(
        (both.tag(), both.digest(), both.version()),
        (Some("v1"), Some(SUM), SUM)
    );
    assert_eq!(parse("app").api_host(), "registry-1.docker.io");
    assert_eq!(parse("h.io/app").api_host(), "h.io");
}

#[test]
fn what_is_no_name_says_why() {
    for (text, error) in [
        ("joe:secret@h.io/app", ReferenceError::Digest),
        ("h.io/app@sha256:0123", ReferenceError::Digest),
        ("h.io/app@sha512:0123", ReferenceError::Digest),
        ("h.io/app@", ReferenceError::Digest),
        ("h.io/", ReferenceError::NoRepository),
        ("localhost:5000", ReferenceError::NoRepository),
        ("127.0.0.1:5000", ReferenceError::NoRepository),
        ("h.io:99999/app", ReferenceError::Registry),
        ("h.io:/app", ReferenceError::Registry),
        ("h?.io/app", ReferenceError::Registry),
        ("h.io/App", ReferenceError::Repository),
        ("h.io//app", ReferenceError::Repository),
        ("h.io/../app", ReferenceError::Repository),
        ("h.io/a/../../token", ReferenceError::Repository),
        ("h.io/a/./b", ReferenceError::Repository),
        ("h.io/a b", ReferenceError::Repository),
        ("h.io/app?x=1", ReferenceError::Repository),
        ("h.io/app:", ReferenceError::Tag),
        ("h.io/app:-v", ReferenceError::Tag),
        ("h.io/app:v?x", ReferenceError::Tag),
        (":", ReferenceError::NoRepository),
        ("@", ReferenceError::Digest),
        ("/:", ReferenceError::Repository),
    ] {
        let got = OciLocation::parse(text);
        assert_eq!(got, Err(error), "{text}");
    }
    assert_eq!(
        OciLocation::parse(&format!("h.io/{}", "a".repeat(256))),
        Err(ReferenceError::Repository)
    );
    assert_eq!(
        OciLocation::parse(&format!("h.io/a:{}", "a".repeat(129))),
        Err(ReferenceError::Tag)
    );
}

#[test]
fn plain_http_is_for_this_machine_and_private_networks() {
    for (text, local) in [
        ("localhost:5000/a", true),
        ("x.localhost/a", true),
        ("127.0.0.1/a", true),
        ("127.1.2.3:5000/a", true),
        ("[::1]:5000/a", true),
        ("10.0.0.7:5000/a", true),
        ("172.16.0.1/a", true),
        ("172.31.255.1/a", true),
        ("192.168.1.1/a", true),
        ("registry.local/a", true),
        ("registry.local:5000/a", true),
        ("172.32.0.1/a", false),
        ("11.0.0.1/a", false),
        ("[fe80::1]/a", false),
        ("local.example.com/a", false),
        ("notlocal:5000/a", false),
        ("10.example.com/a", false),
        ("a/b", false),
    ] {
        let at = parse(text);
        assert_eq!(at.schemes().contains(&"http"), local, "{text}");
        assert_eq!(at.schemes()[0], "https", "{text}");
        assert!(at.with_insecure(true).schemes().contains(&"http"), "{text}");
    }
}

#[test]
fn what_proves_nothing_is_remembered_apart() {
    let (plain, open) = (parse("h.io/a:v1"), parse("h.io/a:v1").with_insecure(true));
    assert_ne!(plain.key(), open.key());
    assert_eq!(parse("h.io/a").key(), parse("h.io/a:latest").key());
    assert_ne!(parse("h.io/a:v1").key(), parse("h.io/a:v2").key());
}
