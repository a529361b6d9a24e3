//! Registries that may speak plain http: what is taken for one, and what is told to it.

use super::*;

/// What a TLS server says, Go's for example, when it is spoken with in plain http.
const NOT_TLS: &str = "Client sent an HTTP request to an HTTPS server.";

async fn with(auth: Auth) -> Registry {
    let registry = Registry::with(auth).await;
    registry.put("app:v1", &gzip(MODULE));
    registry
}

fn as_joe(registry: &Registry) -> Fetcher {
    fetcher(|options| {
        options.credentials = login(&registry.host(), "joe:pw");
        options.fresh_for = Duration::ZERO;
        options.tries = 1;
    })
}

#[tokio::test]
async fn no_credentials_follow_a_timeout_of_tls() {
    for auth in [
        Auth::Basic("joe:pw"),
        Auth::Bearer(Some("joe:pw"), Duration::from_mins(1)),
    ] {
        let registry = with(auth).await;
        let (fetcher, url) = (as_joe(&registry), registry.oci("app:v1"));
        registry.silent_tls(true);
        fails(&fetcher, &url, "40").await;
        let sent = registry.calls("", "");
        assert!(sent.iter().all(|call| call.authorization.is_none()));
        registry.silent_tls(false);
        let artifact = get(&fetcher, &url).await.unwrap();
        assert_eq!(artifact.bytes, MODULE, "the timeout is not remembered");
    }
}

#[tokio::test]
async fn an_open_registry_without_tls_is_used_after_a_timeout() {
    let registry = with(Auth::Open).await;
    registry.silent_tls(true);
    let artifact = get(&as_joe(&registry), &registry.oci("app:v1")).await;
    assert_eq!(artifact.unwrap().bytes, MODULE);
}

#[tokio::test]
async fn who_does_not_greet_as_a_registry_is_not_spoken_with_in_plain_http() {
    for (answer, is_registry) in [
        (reply("200 OK", "", b""), true),
        (reply("200 OK", "", b"{}"), true),
        (
            reply(
                "404 Not Found",
                "Docker-Distribution-Api-Version: registry/2.0\r\n",
                b"words",
            ),
            true,
        ),
        (reply("400 Bad Request", "", NOT_TLS.as_bytes()), false),
        (reply("200 OK", "", b"<html></html>"), false),
        (reply("404 Not Found", "", b"page not found"), false),
        (reply("503 Busy", "", b""), false),
        (reply("302 Found", "Location: ftp://h/\r\n", b""), false),
    ] {
        let registry = with(Auth::Open).await;
        let shown = match &answer {
            Reply::Whole(status, _, body) => format!("{status} {}", String::from_utf8_lossy(body)),
            _ => String::new(),
        };
        registry.fault("GET", "/v2/", 1, answer);
        let result = get(&as_joe(&registry), &registry.oci("app:v1")).await;
        assert_eq!(result.is_ok(), is_registry, "{shown}");
        let asked = registry.calls("GET", "/manifests/").len();
        assert_eq!(asked > 0, is_registry, "{shown}");
    }
}
