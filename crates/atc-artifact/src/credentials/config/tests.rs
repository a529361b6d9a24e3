//! Tables: which entry of a docker config counts.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn password(user: &str, password: &str) -> Credential {
    let (user, password) = (user.to_owned(), password.to_owned());
    Credential::Password { user, password }
}

fn auth(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// A config whose entries say by their password which one was taken.
fn config(keys: &[&str]) -> DockerConfig {
    let auths: serde_json::Map<_, _> = keys
        .iter()
        .map(|key| {
            (
                (*key).to_owned(),
                serde_json::json!({ "auth": auth(&format!("u:{key}")) }),
            )
        })
        .collect();
    DockerConfig::parse(serde_json::json!({ "auths": auths }).to_string().as_bytes()).unwrap()
}

#[test]
fn the_entry_that_fits_best_counts() {
    for (keys, registry, repository, taken) in [
        (&["h.io"][..], "h.io", "a", Some("h.io")),
        (&["https://h.io"], "h.io", "a", Some("https://h.io")),
        (&["https://h.io/v1/"], "h.io", "a", Some("https://h.io/v1/")),
        (&["http://h.io/v2"], "h.io", "a", Some("http://h.io/v2")),
        (&["H.io"], "h.io", "a", Some("H.io")),
        (&["h.io:5000"], "h.io", "a", None),
        (&["h.io"], "h.io:5000", "a", None),
        (&["h.io:5000"], "h.io:5000", "a", Some("h.io:5000")),
        (&["h.io", "h.io/team"], "h.io", "team/a", Some("h.io/team")),
        (&["h.io", "h.io/team"], "h.io", "team", Some("h.io/team")),
        (&["h.io", "h.io/team"], "h.io", "teams/a", Some("h.io")),
        (&["h.io/team"], "h.io", "a", None),
        (
            &["h.io/team/a", "h.io/team"],
            "h.io",
            "team/a/b",
            Some("h.io/team/a"),
        ),
        (&["*.io"], "h.io", "a", Some("*.io")),
        (&["*.io", "h.io"], "h.io", "a", Some("h.io")),
        (&["*.io"], "a.h.io", "a", None),
        (&["*.h.io:5000"], "a.h.io:5000", "a", Some("*.h.io:5000")),
        (&["*.h.io"], "a.h.io:5000", "a", None),
        (
            &["*.dkr.ecr.*.aws.com"],
            "1.dkr.ecr.eu.aws.com",
            "a",
            Some("*.dkr.ecr.*.aws.com"),
        ),
        (
            &["pre*mid*post.io"],
            "prexmidypost.io",
            "a",
            Some("pre*mid*post.io"),
        ),
        (&["pre*.io"], "other.io", "a", None),
        (&["*.io/team", "h.io"], "h.io", "team/a", Some("*.io/team")),
        (
            &["https://index.docker.io/v1/"],
            "index.docker.io",
            "library/a",
            Some("https://index.docker.io/v1/"),
        ),
        (
            &["docker.io"],
            "index.docker.io",
            "library/a",
            Some("docker.io"),
        ),
        (&["h.io"], "index.docker.io", "library/a", None),
        (&[], "h.io", "a", None),
    ] {
        let got = config(keys).find(registry, repository).unwrap();
        assert_eq!(
            got,
            taken.map(|key| password("u", key)),
            "{keys:?} {registry} {repository}"
        );
    }
}

#[test]
fn all_forms_of_entries_are_read() {
    let entry = |json: serde_json::Value| {
        let text =
            serde_json::json!({ "auths": { "h.io": json }, "HttpHeaders": {}, "psFormat": "x" });
        DockerConfig::parse(text.to_string().as_bytes())
            .map(|config| config.find("h.io", "a").unwrap())
    };
    for (json, expect) in [
        (
            json!({ "auth": auth("joe:p:w") }),
            Some(password("joe", "p:w")),
        ),
        (
            json!({ "auth": auth("joe:pw").trim_end_matches('=') }),
            Some(password("joe", "pw")),
        ),
        (
            json!({ "auth": auth("joe:pw\0\0") }),
            Some(password("joe", "pw")),
        ),
        (
            json!({ "username": "joe", "password": "pw" }),
            Some(password("joe", "pw")),
        ),
        (
            json!({ "username": "x", "password": "y", "auth": auth("joe:pw") }),
            Some(password("joe", "pw")),
        ),
        (
            json!({ "identitytoken": "t", "auth": auth("joe:pw") }),
            Some(Credential::Identity("t".into())),
        ),
        (
            json!({ "registrytoken": "t" }),
            Some(Credential::Token("t".into())),
        ),
        (json!({}), None),
        (json!({ "email": "joe@h.io" }), None),
    ] {
        assert_eq!(entry(json.clone()).unwrap(), expect, "{json}");
    }
    for json in [
        json!({ "auth": "!" }),
        json!({ "auth": auth("no colon") }),
        json!({ "auth": 1 }),
        json!("text"),
    ] {
        assert!(entry(json.clone()).is_err(), "{json}");
    }
}

#[test]
fn secrets_have_two_forms_r129() {
    let new = format!(r#"{{"auths":{{"h.io":{{"auth":"{}"}}}}}}"#, auth("joe:new"));
    let old = format!(r#"{{"h.io":{{"auth":"{}"}}}}"#, auth("joe:old"));
    for (keys, expect) in [
        (&[(".dockerconfigjson", &new)][..], Some("new")),
        (&[(".dockercfg", &old)], Some("old")),
        (
            &[(".dockercfg", &old), (".dockerconfigjson", &new)],
            Some("new"),
        ),
        (&[("config.json", &new)], None),
    ] {
        let get = |key: &str| {
            keys.iter()
                .find(|(name, _)| *name == key)
                .map(|(_, text)| text.as_bytes())
        };
        let got = DockerConfig::from_secret(get)
            .ok()
            .and_then(|config| config.find("h.io", "a").unwrap());
        assert_eq!(got, expect.map(|pw| password("joe", pw)));
    }
}

#[test]
fn errors_and_debug_hold_no_secret() {
    for text in [
        r#"{"auths":{"h.io":{"auth":"c2VjcmV0"}}}"#,
        r#"{"auths":{"h.io":{"auth":["secret"]}}}"#,
        r#"{"auths":"secret"}"#,
        "secret",
        r#"{"auths":{"h.io":{"password":"secret""#,
    ] {
        let error = DockerConfig::parse(text.as_bytes()).unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(
            !text.contains("secret") && !text.contains("c2VjcmV0"),
            "{text}"
        );
    }
    let config =
        DockerConfig::parse(br#"{"auths":{"h.io":{"username":"u","password":"secret"}}}"#).unwrap();
    let found = config.find("h.io", "a").unwrap();
    let text = format!("{config:?} {found:?}");
    assert!(text.contains("h.io") && !text.contains("secret"), "{text}");
    assert!(DockerConfig::parse(&vec![b' '; 2 << 20]).is_err());
}

#[test]
fn helpers_are_found_by_registry() {
    let config = |text: &str| DockerConfig::parse(text.as_bytes()).unwrap();
    let both = config(r#"{"credHelpers":{"h.io":"ecr"},"credsStore":"desktop"}"#);
    assert_eq!(both.helper("h.io"), Some(("ecr", "h.io".to_owned())));
    assert_eq!(
        both.helper("other.io"),
        Some(("desktop", "other.io".to_owned()))
    );
    assert_eq!(
        both.helper("index.docker.io"),
        Some(("desktop", "https://index.docker.io/v1/".to_owned()))
    );
    assert_eq!(config("{}").helper("h.io"), None);
}

proptest! {
    #[test]
    fn no_config_makes_it_panic(key in r"[a-z*./:é]{0,30}", registry in r"[a-z.:é]{0,20}", repository in "[a-z/é]{0,20}") {
        let found = config(&[&key]).find(&registry, &repository).unwrap();
        // What stands there as it is, is found.
        if !key.contains(['/', '*']) && !key.is_empty() {
            prop_assert!(config(&[&key]).find(&key, &repository).unwrap().is_some());
        }
        let _ = (found, DockerConfig::parse(key.as_bytes()));
    }
}

#[test]
fn null_is_as_good_as_nothing() {
    let nulls = r#"{"auth":null,"username":null,"password":null,"identitytoken":null,"registrytoken":null}"#;
    let all =
        format!(r#"{{"auths":{{"h":{nulls},"i":null}},"credHelpers":null,"credsStore":null}}"#);
    let good =
        r#"{"auths":{"h":{"auth":"am9lOnB3","identitytoken":null}},"credHelpers":{"i":null}}"#;
    for text in [all.as_str(), r#"{"auths":null}"#] {
        let config = DockerConfig::parse(text.as_bytes()).unwrap();
        assert_eq!(config.find("h", "app").unwrap(), None, "{text}");
    }
    let found = DockerConfig::parse(good.as_bytes()).unwrap();
    assert!(found.find("h", "app").unwrap().is_some());
    let old = DockerConfig::parse_old(br#"{"h":{"auth":"am9lOnB3"},"i":null}"#).unwrap();
    assert!(old.find("h", "app").unwrap().is_some());
    assert_eq!(old.find("i", "app").unwrap(), None);
}
