//! The rules that need no server.

use super::redirect::keep_credentials_at_home;
use super::*;

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

#[test]
fn this_machine_is_recognised() {
    for (text, loopback) in [
        ("http://127.0.0.1:1/", true),
        ("http://127.9.9.9/", true),
        ("http://[::1]/", true),
        ("http://[::ffff:127.0.0.1]/", true),
        ("http://localhost/", true),
        ("http://LOCALHOST./", true),
        ("http://a.localhost:8080/", true),
        ("http://2130706433/", true),
        ("http://localhost.example.com/", false),
        ("http://notlocalhost/", false),
        ("http://10.0.0.1/", false),
        ("http://[fe80::1]/", false),
    ] {
        assert_eq!(is_loopback(&url(text)), loopback, "{text}");
    }
}

#[test]
fn credentials_stay_with_scheme_host_and_port() {
    for (from, to, kept) in [
        ("http://joe:pw@h/a", "http://h/b", "http://joe:pw@h/b"),
        ("http://joe:pw@h:80/a", "http://h/b", "http://joe:pw@h/b"),
        ("http://joe:pw@h/a", "http://H/b", "http://joe:pw@h/b"),
        ("http://joe:pw@h/a", "http://h:81/b", "http://h:81/b"),
        ("http://joe:pw@h/a", "https://h/b", "https://h/b"),
        ("http://joe:pw@h/a", "http://other/b", "http://other/b"),
        ("http://h/a", "http://planted:pw@other/b", "http://other/b"),
        ("http://h/a", "http://planted:pw@h/b", "http://h/b"),
    ] {
        let mut next = url(to);
        keep_credentials_at_home(&url(from), &mut next);
        assert_eq!(next.as_str(), kept, "{from} to {to}");
    }
}

#[test]
fn only_gzip_is_understood() {
    let check = |values: &[&str]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(CONTENT_ENCODING, HeaderValue::from_str(value).unwrap());
        }
        check_encoding(&headers, "http://h/m").is_ok()
    };
    assert!(
        check(&[])
            && check(&["gzip"])
            && check(&["x-gzip, GZIP"])
            && check(&["identity"])
            && check(&[""])
    );
    assert!(!check(&["br"]) && !check(&["gzip, zstd"]) && !check(&["gzip", "deflate"]));
}

#[test]
fn validators_are_bounded_and_sent_back() {
    let mut headers = HeaderMap::new();
    headers.insert(ETAG, HeaderValue::from_static("\"v1\""));
    headers.insert(
        LAST_MODIFIED,
        HeaderValue::from_str(&"x".repeat(2000)).unwrap(),
    );
    let known = validators(&headers);
    assert_eq!(
        known,
        Validators {
            etag: Some("\"v1\"".into()),
            last_modified: None
        }
    );
    let sent = request_headers(&known);
    assert_eq!(sent.get(IF_NONE_MATCH).unwrap(), "\"v1\"");
    assert!(sent.get(IF_MODIFIED_SINCE).is_none());
}

#[tokio::test]
async fn a_stalled_upload_ends() {
    let stall = Duration::from_millis(50);
    let upload = || Upload::new(Bytes::from_static(b"0123456789"), None);
    for (upload, moved, ends) in [
        (upload(), 4, true),
        (upload(), 10, true),
        (upload().patient(), 4, true),
        (upload().patient(), 10, false),
    ] {
        upload.moved.store(moved, Ordering::Relaxed);
        let late = tokio::time::sleep(stall * 8);
        let waited = while_it_moves(&upload, stall, "http://h/", late).await;
        assert_eq!(waited.is_err(), ends, "{moved} {}", upload.is_patient);
    }
}
