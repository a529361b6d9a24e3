//! Tables: what is read, how it prints, what it promises.

use super::*;

fn parse(text: &str) -> Location {
    text.parse()
        .unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

#[test]
fn forms_are_told_apart() {
    for (text, path) in [
        ("m.wasm", "m.wasm"),
        ("./dir/m.wasm.gz", "./dir/m.wasm.gz"),
        ("/abs/m.wasm", "/abs/m.wasm"),
        ("odd:name.wasm", "odd:name.wasm"),
        ("-1://m.wasm", "-1://m.wasm"),
        ("file:///abs/m.wasm", "/abs/m.wasm"),
        ("FILE:///abs/m.wasm", "/abs/m.wasm"),
        ("file://localhost/abs/m.wasm", "/abs/m.wasm"),
        ("file://m.wasm", "m.wasm"),
        ("file://localhost.wasm", "localhost.wasm"),
        ("file:///with%20space%2", "/with space%2"),
        ("file:///%ff", "/%ff"),
        ("file:///äöü%41", "/äöüA"),
    ] {
        assert_eq!(parse(text), Location::File(path.into()), "{text}");
    }
    for text in ["http://h/m.wasm", "https://h:8443/m.wasm?x=1", "HTTPS://H/"] {
        assert!(matches!(parse(text), Location::Http(_)), "{text}");
    }
    assert!(matches!(parse("OCI://h:5000/a/b:v1"), Location::Oci(_)));
}

#[test]
fn what_is_no_location_says_why() {
    for (text, words) in [
        ("", "is empty"),
        ("file://", "is empty"),
        ("oci://", "is empty"),
        (
            "ftp://127.0.0.1/m.wasm",
            "unknown scheme 'ftp' in 'ftp://127.0.0.1/m.wasm'",
        ),
        ("s3://bucket/m.wasm", "unknown scheme 's3'"),
        (
            "https:/h/m.wasm",
            "'https:/h/m.wasm' is not a URL: its scheme ends with '://'",
        ),
        ("http:h", "ends with '://'"),
        (" HTTPS:\\\\joe:secret@h", "'HTTPS:***@h' is not a URL"),
        (
            "https:/b/m?X-Amz-Signature=secret&x=y",
            "'https:/b/m?X-Amz-Signature=***&x=y' is not a URL",
        ),
        (
            "http:joe:secret@h/m?token=secret",
            "'http:***@h/m?token=***' is not a URL",
        ),
        ("http://", "'http://' is not a URL"),
        ("http://h:99999/m", "'http://h:99999/m' is not a URL"),
        ("https://[::1/m", "is not a URL"),
        ("oci://h:5000/", "'oci://h:5000/' names no artifact"),
    ] {
        let error = text.parse::<Location>().unwrap_err();
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
}

#[test]
fn what_gives_access_is_never_shown() {
    for (text, shown) in [
        ("https://joe:secret@h/m.wasm", "https://***@h/m.wasm"),
        ("https:///joe:secret@h/m.wasm", "https:///***@h/m.wasm"),
        ("https://\\/joe:secret@h/m", "https://\\/***@h/m"),
        ("https://secret@h/m.wasm", "https://***@h/m.wasm"),
        ("https://a:secret@b:secret@h/m.wasm", "https://***@h/m.wasm"),
        ("http://joe:secret@h", "http://***@h"),
        ("http://h/a@b?to=c@d#e@f", "http://h/a@b?to=c@d#e@f"),
        (
            "http://h/m?version=1&Token=secret&x=y",
            "http://h/m?version=1&Token=***&x=y",
        ),
        (
            "http://h/m?X-Amz-Signature=secret#top",
            "http://h/m?X-Amz-Signature=***#top",
        ),
    ] {
        let location = parse(text);
        assert_eq!(location.to_string(), shown);
        assert_eq!(location.canonical(), shown);
        assert!(!format!("{location:?}").contains("secret"));
    }
    for text in [
        "ftp://joe:secret@h/m",
        "http://joe:sec/ret@h/m",
        "oci://joe:secret@h/a:v1",
        "oci://joe:sec/ret@h/a:v1",
        "http://joe:secret@h:99999/m?token=secret",
        "ftp://h/m?token=sec@ret",
        "https:/h/m?token=sec@ret",
    ] {
        let error = text.parse::<Location>().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("ret"), "{error:?}");
    }
}

/// A URL parser overlooks spaces in front and line breaks within: so such a text is a URL here, too, and no path whose error
/// would show the password.
#[test]
fn what_a_url_parser_overlooks_hides_no_password() {
    for text in [
        " https://joe:secret@h/m.wasm",
        "\0\u{7}https://joe:secret@h/m.wasm",
        "ht\ntps://joe:secret@h/m.wasm",
        "https:/\t/joe:sec\nret@h/m.wasm\n",
    ] {
        let location = parse(text);
        assert!(matches!(location, Location::Http(_)), "{text:?}");
        assert_eq!(location.to_string(), "https://***@h/m.wasm", "{text:?}");
    }
    let odd = " a file\tof mine.wasm";
    assert_eq!(parse(odd), Location::File(odd.into()));
}

#[test]
fn canonical_is_what_releases_record() {
    for (text, canonical) in [
        ("/a/b.wasm", "file:///a/b.wasm"),
        ("/a/./c/../b.wasm", "file:///a/b.wasm"),
        ("./b.wasm", "file://b.wasm"),
        ("a//b.wasm", "file://a/b.wasm"),
        ("../b.wasm", "file://../b.wasm"),
        ("../../a/../b.wasm", "file://../../b.wasm"),
        ("/../b.wasm", "file:///b.wasm"),
        ("a/..", "file://."),
        ("file:///a/../b.wasm", "file:///b.wasm"),
        (
            "http://Host:80/a/../b.wasm?x=1&y",
            "http://Host:80/a/../b.wasm?x=1&y",
        ),
        ("oci://ghcr.io/a/b", "oci://ghcr.io/a/b"),
    ] {
        let location = parse(text);
        assert_eq!(location.canonical(), canonical, "{text}");
        assert_eq!(
            parse(&location.canonical()).canonical(),
            canonical,
            "{text} again"
        );
    }
}

#[test]
fn checksums_are_inferred_from_names() {
    let sum = "ab".repeat(32);
    let upper = sum.to_uppercase();
    for (form, inferred) in [
        ("http://h/sha256_{}", true),
        ("http://h/sha256_{}.wasm", true),
        ("http://h/sha256_{}.wasm.gz", true),
        ("https://h/mod_sha256_{}", true),
        ("https://h/mod_sha256_{}.wasm", true),
        ("https://h/v1/sha256_{}.wasm?x=1#y", true),
        ("/tmp/sha256_{}.wasm", true),
        ("mod_sha256_{}.wasm.gz", true),
        ("file:///tmp/mod_sha256_{}", true),
        ("oci://h/r:sha256_{}", true),
        ("oci://h:5000/r:sha256_{}@sha256:{}", true),
        ("http://h/sha256/{}", false),
        ("http://h/sha256/{}.wasm", false),
        ("http://h/sha1_sha1.wasm", false),
        ("http://h/{}.wasm", false),
        ("http://h/sha256_{}/m.wasm", false),
        ("http://h/mod.sha256_{}", false),
        ("http://h/modsha256_{}", false),
        ("http://h/m.wasm?sha256_{}", false),
        ("http://h/", false),
        ("oci://h/r:v1.2.3", false),
        ("oci://h/r:my_sha256_{}", false),
        ("oci://h/r", false),
        ("sha256_{}/m.wasm", false),
    ] {
        for given in [&sum, &upper] {
            let location = parse(&form.replace("{}", given));
            assert_eq!(
                location.inferred_checksum(),
                inferred.then(|| sum.clone()),
                "{form}"
            );
        }
    }
    // A sum that was cut short never fits, rather than not being looked at; words are no sums.
    assert_eq!(
        parse("sha256_abc.wasm").inferred_checksum().as_deref(),
        Some("abc")
    );
    for name in [
        "my_sha256_tool.wasm",
        "sha256_.wasm",
        "http://h/x_sha256_.wasm",
    ] {
        assert_eq!(parse(name).inferred_checksum(), None, "{name}");
    }
}

#[test]
fn versions_pin_and_words_do_not() {
    for (text, pinnable) in [
        ("http://h/m.wasm", true),
        ("https://h/latest.wasm", true),
        ("m.wasm", false),
        ("file:///m.wasm", false),
        ("oci://h/r", false),
        ("oci://h:5000/r", false),
        ("oci://r:1.2", true),
        ("oci://h/r:latest", false),
        ("oci://h/r:stable", false),
        ("oci://h/r:1", true),
        ("oci://h/r:v1", true),
        ("oci://h/r:1.2", true),
        ("oci://h:5000/a/r:v1.2.3", true),
        ("oci://h/r:1.2.3-pre.1+b", true),
        ("oci://h/r:v1-rc", true),
        ("oci://h/r:1.2.3.4", false),
        ("oci://h/r:01", false),
        ("oci://h/r:v", false),
        ("oci://h/r:1.-", false),
        ("oci://h/r:1-", false),
        ("oci://h/r:sha256_ab", false),
    ] {
        assert_eq!(parse(text).is_pinnable(), pinnable, "{text}");
    }
}

#[test]
fn only_words_as_tags_move() {
    let sum = "ab".repeat(32);
    for (text, moving) in [
        ("oci://h/r", true),
        ("oci://h/r:latest", true),
        ("oci://h/r:stable", true),
        ("oci://h/r:v1", false),
        (&format!("oci://h/r:sha256_{sum}"), false),
        (&format!("oci://h/r:latest@sha256:{sum}"), false),
        ("http://h/latest.wasm", false),
        ("latest.wasm", false),
    ] {
        assert_eq!(parse(text).is_moving(), moving, "{text}");
    }
}

#[test]
fn no_text_panics() {
    for text in [
        "://",
        "a://",
        "http://%",
        "file://%",
        "oci://:",
        "oci://@",
        "oci:///:",
        "http://h/%zz",
        "\0",
        "é://x",
    ] {
        if let Ok(location) = text.parse::<Location>() {
            let _ = (
                location.canonical(),
                location.inferred_checksum(),
                location.is_pinnable(),
                location.to_string(),
            );
        }
    }
}
