use std::collections::BTreeMap;

use serde_json::json;

use super::*;

#[test]
fn what_is_reached_without_the_proxy_of_the_environment() {
    let check = |server: &str, no_proxy: &str, expect: bool| {
        let server: Uri = server.parse().unwrap();
        assert_eq!(
            is_direct(&server, no_proxy),
            expect,
            "{server} {no_proxy:?}"
        );
    };
    // This machine, whatever is said.
    for server in [
        "https://localhost:6443",
        "https://LocalHost",
        "https://127.0.0.1:6443",
        "http://127.8.9.10",
        "https://[::1]:6443",
        "https://[::ffff:127.0.0.1]",
    ] {
        check(server, "", true);
    }
    for server in [
        "https://10.0.0.1:6443",
        "https://[fd00::1]:6443",
        "https://localhost.example.com",
        "https://api.example.com",
    ] {
        check(server, "", false);
        check(server, " , ,:443,[]", false);
        check(server, "*", true);
        check(server, "other, *", true);
    }
    // Names: with what is below them, or that alone.
    let api = "https://api.example.com";
    for (no_proxy, expect) in [
        ("api.example.com", true),
        ("API.Example.COM", true),
        ("example.com", true),
        ("com", true),
        (".example.com", true),
        ("*.example.com", true),
        ("x, example.com", true),
        ("example.com:443", true),
        ("example.com:", true),
        ("*.example.com:443", true),
        ("example.com:6443", false),
        ("example.com:https", false),
        ("ample.com", false),
        ("pi.example.com", false),
        (".api.example.com", false),
        ("*.api.example.com", false),
        ("example", false),
        ("10.0.0.0/8", false),
        ("api.example.com.evil", false),
    ] {
        check(api, no_proxy, expect);
    }
    check("https://example.com", ".example.com", false);
    check("https://example.com", "*.example.com", false);
    check("https://api.example.com:6443", "example.com:6443", true);
    check("http://api.example.com", "example.com:80", true);
    // Addresses and networks.
    for (no_proxy, expect) in [
        ("10.1.2.3", true),
        ("10.1.2.3:6443", true),
        ("10.1.2.3:443", false),
        ("10.0.0.0/8", true),
        ("10.9.9.9/8", true),
        ("10.1.2.4", false),
        ("10.1.2.0/30", true),
        ("10.1.2.4/30", false),
        ("::ffff:10.1.2.3", true),
        ("fd00::/8", false),
        ("3", false),
        (".3", false),
        ("2.3", false),
        ("*", true),
    ] {
        check("https://10.1.2.3:6443", no_proxy, expect);
    }
    for (no_proxy, expect) in [
        ("fd00::1", true),
        ("FD00:0::1", true),
        ("[fd00::1]", true),
        ("[fd00::1]:6443", true),
        ("[fd00::1]:443", false),
        ("fd00::/8", true),
        ("fd00::2", false),
        ("0.0.0.0/0", false),
    ] {
        check("https://[fd00::1]:6443", no_proxy, expect);
    }
}

#[test]
fn whose_proxy_it_is() {
    let check = |server: &str, named: Option<&str>, said: &[(&str, &str)], expect: Option<&str>| {
        let said: BTreeMap<&str, &str> = said.iter().copied().collect();
        let variable = |name: &str| said.get(name).map(|text| (*text).to_owned());
        let proxy = choose(&server.parse().unwrap(), named, variable).unwrap();
        let expect: Option<Uri> = expect.map(|expect| expect.parse().unwrap());
        assert_eq!(proxy, expect, "{server} {named:?} {said:?}");
    };
    let (far, near) = ("https://api.example.com:6443", "https://127.0.0.1:6443");
    let (one, two) = ("http://one.corp:3128", "http://two.corp:3128");
    check(far, None, &[], None);
    check(far, None, &[("HTTPS_PROXY", one)], Some(one));
    check(far, None, &[("https_proxy", one)], Some(one));
    check(
        far,
        None,
        &[("HTTPS_PROXY", ""), ("https_proxy", one)],
        Some(one),
    );
    check(
        far,
        None,
        &[("HTTPS_PROXY", one), ("https_proxy", two)],
        Some(one),
    );
    check(far, None, &[("HTTP_PROXY", one)], None);
    check(
        "http://api.example.com",
        None,
        &[("HTTP_PROXY", one), ("HTTPS_PROXY", two)],
        Some(one),
    );
    check(far, None, &[("HTTPS_PROXY", "one.corp:3128")], Some(one));
    check(near, None, &[("HTTPS_PROXY", one)], None);
    let beside = |no_proxy| [("HTTPS_PROXY", one), ("NO_PROXY", no_proxy)];
    check(far, None, &beside("example.com"), None);
    // The address of the proxy is no matter.
    check(far, None, &beside("one.corp,.corp"), Some(one));
    check(
        far,
        None,
        &[("HTTPS_PROXY", one), ("no_proxy", "example.com")],
        None,
    );
    // What the kubeconfig names is meant for this very server.
    check(far, Some(two), &beside("example.com,.corp"), Some(two));
    check(near, Some(two), &beside("*"), Some(two));
    let broken = choose(&far.parse().unwrap(), Some("http://a b"), |_| None);
    assert!(broken.is_err());
}

#[test]
fn the_proxy_of_a_context() {
    let kubeconfig: Kubeconfig = serde_json::from_value(json!({
        "current-context": "by-one",
        "contexts": [
            { "name": "by-one", "context": { "cluster": "one", "user": "u" } },
            { "name": "by-none", "context": { "cluster": "none" } },
            { "name": "by-empty", "context": { "cluster": "empty" } },
            { "name": "by-nothing", "context": { "cluster": "gone" } },
        ],
        "clusters": [
            { "name": "none", "cluster": { "server": "https://a" } },
            { "name": "empty", "cluster": { "server": "https://a", "proxy-url": "" } },
            { "name": "one", "cluster": { "server": "https://a", "proxy-url": "http://p:1" } },
        ],
    }))
    .unwrap();
    for (context, expect) in [
        (None, Some("http://p:1")),
        (Some("by-one"), Some("http://p:1")),
        (Some("by-none"), None),
        (Some("by-empty"), None),
        (Some("by-nothing"), None),
        (Some("gone"), None),
    ] {
        assert_eq!(
            named(&kubeconfig, context).as_deref(),
            expect,
            "{context:?}"
        );
    }
    assert_eq!(named(&Kubeconfig::default(), None), None);
}
