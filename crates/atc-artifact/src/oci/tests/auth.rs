//! How a registry asks who we are, and what it is told.

use super::*;

const MINUTE: Duration = Duration::from_mins(1);

async fn with(auth: Auth) -> Registry {
    let registry = Registry::with(auth).await;
    registry.put("app:v1", &gzip(MODULE));
    registry
}

fn as_user(registry: &Registry, user: &str) -> Fetcher {
    fetcher(|options| options.credentials = login(&registry.host(), user))
}

#[tokio::test]
async fn every_challenge_is_answered_r121() {
    for (auth, user) in [
        (Auth::Open, None),
        (Auth::Bearer(None, MINUTE), None),
        (Auth::Bearer(None, MINUTE), Some("joe:pw")),
        (Auth::Bearer(Some("joe:pw"), MINUTE), Some("joe:pw")),
        (Auth::Basic("joe:pw"), Some("joe:pw")),
    ] {
        for field in ["token", "access_token"] {
            let registry = with(auth.clone()).await;
            registry.token_field(field);
            let fetcher = user.map_or_else(plain, |user| as_user(&registry, user));
            let artifact = get(&fetcher, &registry.oci("app:v1")).await.unwrap();
            assert_eq!(artifact.bytes, MODULE);
            for call in registry.calls("GET", "/token") {
                assert!(
                    call.path.contains("service=reg")
                        && call.path.contains("scope=repository%3Aapp%3Apull")
                );
            }
        }
    }
}

#[tokio::test]
async fn a_token_that_ends_meanwhile_is_renewed_r121() {
    let registry = with(Auth::Bearer(None, Duration::from_millis(300))).await;
    registry.fault("GET", "/blobs/", 1, Reply::Late(Duration::from_millis(400)));
    assert_eq!(
        get(&plain(), &registry.oci("app:v1")).await.unwrap().bytes,
        MODULE
    );
    assert_eq!(registry.calls("GET", "/token").len(), 2);
}

#[tokio::test]
async fn tokens_are_kept_while_they_hold() {
    let registry = with(Auth::Bearer(Some("joe:pw"), MINUTE)).await;
    let fetcher = fetcher(|options| {
        options.credentials = login(&registry.host(), "joe:pw");
        options.fresh_for = Duration::ZERO;
    });
    for _ in 0..3 {
        get(&fetcher, &registry.oci("app:v1")).await.unwrap();
    }
    assert_eq!(registry.calls("GET", "/token").len(), 1);
}

#[tokio::test]
async fn a_kept_token_that_is_refused_is_replaced() {
    let registry = with(Auth::Bearer(Some("joe:pw"), MINUTE)).await;
    let fetcher = fetcher(|options| {
        options.credentials = login(&registry.host(), "joe:pw");
        options.fresh_for = Duration::ZERO;
    });
    let location = at(&registry.oci("app:v1"));
    for round in 1..=3 {
        let got = fetcher.fetch_fresh(&location, None).await;
        assert!(got.is_ok(), "{:?}", got.map(|_| ()));
        assert_eq!(registry.calls("GET", "/token").len(), round);
        registry.revoke_tokens();
    }
}

#[tokio::test]
async fn token_services_may_answer_in_many_ways() {
    for answer in [
        json!({ "token": "t0", "expires_in": 60.5 }),
        json!({ "token": "t0", "expires_in": "60" }),
        json!({ "token": "t0", "expires_in": null }),
        json!({ "token": "t0", "expires_in": -1 }),
        json!({ "token": "t0", "expires_in": "soon" }),
        json!({ "token": null, "access_token": "t0", "expires_in": [1] }),
    ] {
        let registry = with(Auth::Bearer(None, MINUTE)).await;
        registry.good_token("t0");
        registry.fault(
            "GET",
            "/token",
            9,
            reply("200 OK", "", answer.to_string().as_bytes()),
        );
        let artifact = get(&plain(), &registry.oci("app:v1")).await;
        assert!(artifact.is_ok(), "{answer}: {:?}", artifact.map(|_| ()));
    }
}

#[tokio::test]
async fn identity_tokens_work_where_only_get_is_known() {
    for status in ["404 Not Found", "405 Method Not Allowed"] {
        let registry = with(Auth::Bearer(Some(":identity"), MINUTE)).await;
        registry.fault("POST", "/token", 9, reply(status, "", b""));
        let credentials =
            config(&json!({ "auths": { registry.host(): { "identitytoken": "identity" } } }));
        let fetcher = fetcher(|options| options.credentials = credentials);
        let artifact = get(&fetcher, &registry.oci("app:v1")).await.unwrap();
        assert_eq!(artifact.bytes, MODULE);
    }
}

#[tokio::test]
async fn identity_tokens_and_registry_tokens_work() {
    let registry = with(Auth::Bearer(Some("joe:pw"), MINUTE)).await;
    let host = registry.host();
    let entry = |entry: serde_json::Value| {
        let credentials = config(&json!({ "auths": { host.clone(): entry } }));
        fetcher(|options| options.credentials = credentials)
    };
    let identity = entry(json!({ "identitytoken": "identity" }));
    assert_eq!(
        get(&identity, &registry.oci("app:v1")).await.unwrap().bytes,
        MODULE
    );
    assert_eq!(registry.calls("POST", "/token").len(), 1);
    let token = entry(json!({ "registrytoken": "t0" }));
    assert_eq!(
        get(&token, &registry.oci("app:v1")).await.unwrap().bytes,
        MODULE
    );
    let wrong = entry(json!({ "registrytoken": "none" }));
    fails(&wrong, &registry.oci("app:v1"), "are refused").await;
}

#[tokio::test]
async fn who_has_no_or_wrong_credentials_is_told_so() {
    for (auth, words) in [
        (
            Auth::Basic("joe:pw"),
            "there are no credentials for '127.0.0.1:",
        ),
        (
            Auth::Bearer(Some("joe:pw"), MINUTE),
            "gives no token without credentials",
        ),
    ] {
        let registry = with(auth).await;
        let url = registry.oci("app:v1");
        let error = fails(&plain(), &url, words).await;
        assert!(chain(&error).contains("401") && error.kind() == ErrorKind::Refused);
        let error = fails(&as_user(&registry, "joe:secret"), &url, "refuse").await;
        let text = format!("{} {error:?}", chain(&error));
        assert!(text.contains("401") && !text.contains("secret"), "{text}");
        let sent = registry.calls("GET", "/").len();
        assert!(sent < 10, "{sent} requests");
    }
}

#[tokio::test]
async fn who_is_asked_for_ever_gives_up() {
    let registry = with(Auth::Bearer(None, MINUTE)).await;
    let url = registry.oci("app:v1");
    let host = registry.host();
    for challenge in [
        format!(r#"Bearer realm="http://{host}/token",service="reg""#),
        format!(
            r#"Bearer realm="http://{host}/token",service="reg",scope="repository:other:pull""#
        ),
        r#"Basic realm="x""#.to_owned(),
        "Negotiate".to_owned(),
        String::new(),
    ] {
        registry.mend();
        registry.forget_calls();
        let headers = format!("WWW-Authenticate: {challenge}\r\n");
        registry.fault(
            "GET",
            "/manifests/",
            1 << 20,
            reply("401 Unauthorized", &headers, b""),
        );
        let error = fails(&as_user(&registry, "joe:pw"), &url, "unauthorized").await;
        assert_eq!(error.kind(), ErrorKind::Refused);
        let (asked, tokens) = (
            registry.calls("GET", "/manifests/").len(),
            registry.calls("GET", "/token").len(),
        );
        assert!(
            asked <= 3 && tokens <= 2,
            "{challenge}: {asked} requests, {tokens} tokens"
        );
    }
}

#[tokio::test]
async fn odd_token_services_are_refused() {
    let registry = with(Auth::Bearer(None, MINUTE)).await;
    let url = registry.oci("app:v1");
    for (reply, words) in [
        (reply("200 OK", "", b"{}"), "holds no token"),
        (reply("200 OK", "", br#"{"token":""}"#), "holds no token"),
        (
            reply("200 OK", "", br#"{"token":"a\nb"}"#),
            "holds no token",
        ),
        (reply("200 OK", "", b"<html>"), "holds no token"),
        (reply("404 Not Found", "", b"no"), "status 404"),
        (
            reply("302 Found", "Location: /token\r\n", b""),
            "too many redirects",
        ),
        (Reply::Endless(Vec::new()), "larger than"),
    ] {
        registry.mend();
        registry.fault("GET", "/token", 1 << 20, reply);
        let error = get(&plain(), &url).await.map(|_| ()).unwrap_err();
        assert!(chain(&error).contains(words), "{words}: {}", chain(&error));
    }
    registry.mend();
    for realm in ["ftp://h/token", "/token", "not a url"] {
        let headers = format!("WWW-Authenticate: Bearer realm=\"{realm}\"\r\n");
        registry.fault(
            "GET",
            "/manifests/",
            1,
            reply("401 Unauthorized", &headers, b""),
        );
        fails(&plain(), &url, "token service").await;
    }
}

#[tokio::test]
async fn a_pull_secret_is_exchanged_while_it_is_used_r129() {
    let registry = with(Auth::Basic("joe:one")).await;
    let Credentials::Secret(secret) = login(&registry.host(), "joe:one") else {
        panic!("a Secret")
    };
    let fetcher = fetcher(|options| {
        options.credentials = Credentials::Secret(secret.clone());
        options.fresh_for = Duration::ZERO;
    });
    let url = registry.oci("app:v1");
    assert!(get(&fetcher, &url).await.is_ok());
    registry.auth(Auth::Basic("joe:two"));
    fails(&fetcher, &url, "are refused").await;
    let Credentials::Secret(next) = login(&registry.host(), "joe:two") else {
        panic!("a Secret")
    };
    secret.set(DockerConfig::clone(&next.get().unwrap()));
    assert!(get(&fetcher, &url).await.is_ok());
    secret.clear();
    let text = chain(&fails(&fetcher, &url, "there are no credentials").await);
    assert!(text.contains("pull Secret"), "{text}");
}
