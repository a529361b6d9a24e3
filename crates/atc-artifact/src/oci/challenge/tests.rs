//! Tables: headers as registries send them, and as they should not.

use proptest::prelude::*;

use super::*;

fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Challenge {
    Challenge::Bearer {
        realm: realm.to_owned(),
        service: service.map(str::to_owned),
        scope: scope.map(str::to_owned),
    }
}

#[test]
fn challenges_are_read() {
    let hub = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/a:pull,push""#;
    for (text, expect) in [
        (
            hub,
            vec![bearer(
                "https://auth.docker.io/token",
                Some("registry.docker.io"),
                Some("repository:library/a:pull,push"),
            )],
        ),
        (r#"Basic realm="registry""#, vec![Challenge::Basic]),
        ("basic", vec![Challenge::Basic]),
        (
            r#"BEARER Realm = "r" , SERVICE=s"#,
            vec![bearer("r", Some("s"), None)],
        ),
        (
            r#"Bearer realm=r,service="""#,
            vec![bearer("r", None, None)],
        ),
        (
            r#"Bearer realm="a\"b\\c, Basic""#,
            vec![bearer(r#"a"b\c, Basic"#, None, None)],
        ),
        (
            r#"Negotiate abc==, Bearer realm="r", Basic realm="x""#,
            vec![bearer("r", None, None), Challenge::Basic],
        ),
        (
            r#"Basic realm="x", Bearer realm="r""#,
            vec![Challenge::Basic, bearer("r", None, None)],
        ),
        (r#"Bearer service="s""#, vec![]),
        ("Bearer", vec![]),
        ("Digest nonce=1", vec![]),
        (r#"Bearer realm="open"#, vec![bearer("open", None, None)]),
        ("realm=x", vec![]),
        ("=", vec![]),
        ("", vec![]),
        (",,, ,", vec![]),
    ] {
        assert_eq!(parse(text), expect, "{text}");
    }
}

#[test]
fn several_headers_count() {
    let mut headers = HeaderMap::new();
    headers.append(WWW_AUTHENTICATE, "Negotiate".parse().unwrap());
    headers.append(WWW_AUTHENTICATE, r#"Bearer realm="r""#.parse().unwrap());
    headers.append(WWW_AUTHENTICATE, "Basic".parse().unwrap());
    assert_eq!(read(&headers), [bearer("r", None, None), Challenge::Basic]);
}

proptest! {
    #[test]
    fn nothing_makes_it_panic_or_hang(text in r#"[a-zA-Z=", \\é\t]{0,60}"#) {
        let found = parse(&text);
        prop_assert!(found.len() <= text.len());
    }
}
