//! Tables: the form in the cluster, which revision is which, what is pinned.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::*;
use crate::object::Object;

fn object(name: &str, data: &str) -> Object {
    let value = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "ns" }, "data": { "k": data } });
    Object::try_from(value).unwrap()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn revision(release: &str, created: &str, active: &str, secret: &str) -> Revision {
    let mut revision = Revision::new(release, "ns", Stages::default(), [0; 6], time(created));
    revision.head.active_at = time(active);
    secret.clone_into(&mut revision.head.secret);
    revision
}

#[test]
fn the_secret_of_a_revision() {
    let stages = Stages::new(vec![
        vec![object("a", "1")],
        vec![object("b", "2"), object("c", "3")],
    ]);
    let mut revision = Revision::new(
        "my.rel",
        "ns",
        stages.clone(),
        [0, 1, 0xab, 3, 4, 5],
        time("2026-01-02T03:04:05.6Z"),
    );
    revision.head.source_url = "file:///f.wasm".to_owned();
    revision.head.source_checksum = "abc".to_owned();
    let secret = revision.to_secret().unwrap();
    assert_eq!(secret.metadata.name.as_deref(), Some("yoke.0001ab030405"));
    assert_eq!(secret.metadata.namespace.as_deref(), Some("ns"));
    assert_eq!(secret.type_.as_deref(), Some("Opaque"));
    assert_eq!(
        json!(secret.metadata.labels),
        json!({ "internal.yoke/kind": "revision", "internal.yoke/release": release_label("my.rel") })
    );
    assert_eq!(
        json!(secret.metadata.annotations),
        json!({
            "internal.yoke/created-at": "2026-01-02T03:04:05.6Z", "internal.yoke/active-at": "2026-01-02T03:04:05.6Z",
            "internal.yoke/resources": "3", "internal.yoke/source-url": "file:///f.wasm",
            "internal.yoke/source-checksum": "abc", "internal.yoke/release-name": "my.rel",
        })
    );
    let data = &secret.data.as_ref().unwrap()["resources"].0;
    assert_eq!(data[..3], [0x1f, 0x8b, 8]);
    assert_eq!(secret.data.as_ref().unwrap().len(), 1);
    let back = Revision::from_secret(&secret).unwrap();
    assert_eq!(back, revision);
    assert_eq!(back.stages, stages);
}

#[test]
fn records() {
    let check = |bytes: &[u8], expect: Result<usize, &str>| match (unpack("yoke.x", bytes), expect)
    {
        (Ok(stages), Ok(count)) => assert_eq!(stages.count(), count),
        (Err(error), Err(words)) => {
            let message = format!("{error}");
            assert!(
                message.contains(words)
                    && message.contains("yoke.x")
                    && !message.contains("hunter2"),
                "{message}"
            );
        }
        (got, want) => panic!("{got:?} instead of {want:?}"),
    };
    check(b"null", Ok(0));
    check(b"[]", Ok(0));
    check(b"[[],null]", Ok(0));
    let one = r#"{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}}"#;
    check(format!("[[{one}],[{one},{one}]]").as_bytes(), Ok(3));
    let zipped = |text: &str| {
        let mut writer = GzEncoder::new(Vec::new(), Compression::default());
        writer.write_all(text.as_bytes()).unwrap();
        writer.finish().unwrap()
    };
    check(&zipped(&format!("[[{one}]]")), Ok(1));
    check(&zipped("null"), Ok(0));
    assert_eq!(zipped("null"), pack(&Stages::default()).unwrap());
    check(b"", Err("no JSON"));
    check(b"{}", Err("another JSON value"));
    check(br#"["text"]"#, Err("stage 1 is no list"));
    check(b"[{}]", Err("stage 1: it has no apiVersion"));
    // As before there were stages, and as typed programs print nothing.
    check(format!("[{one},{one},null]").as_bytes(), Ok(2));
    check(format!("[[{one},null],[null]]").as_bytes(), Ok(1));
    check(
        format!("[{one},[{one}]]").as_bytes(),
        Err("stage 1: it is a list"),
    );
    check(
        br#"[[{"kind":"Secret","metadata":{"name":"a"},"data":{"k":"hunter2"}}]]"#,
        Err("stage 1: it has no apiVersion"),
    );
    check(br#"[["hunter2"]]"#, Err("it is a text, not an object"));
    check(br#"[["hunter2]"#, Err("no JSON at line 1"));
    check(&zipped(one)[..30], Err("can't be unpacked"));
    // Members of a gzip file add up.
    check(
        &zipped(&" ".repeat(16 << 20)).repeat(9),
        Err("unpacks to more than"),
    );
}

#[test]
fn too_big_is_refused_r65() {
    // Bytes that do not pack: a multiplicative sequence.
    let mut state = 1_u32;
    let noise: String = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'0' + (state >> 24) as u8 % 64)
    })
    .take(12 * 120 * 1024)
    .collect();
    let revision = Revision::new(
        "r",
        "ns",
        Stages::new(vec![vec![object("a", &noise)]]),
        [0; 6],
        NEVER_ACTIVE,
    );
    let message = revision.to_secret().unwrap_err().to_string();
    assert!(
        message.contains("1048576") && message.contains("\"r\"") && message.contains("1 objects"),
        "{message}"
    );
}

#[test]
fn heads() {
    let check = |labels: serde_json::Value,
                 annotations: serde_json::Value,
                 expect: Result<(&str, bool), &str>| {
        let metadata = json!({
            "name": "yoke.1", "namespace": "ns", "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels, "annotations": annotations,
        });
        match (
            Head::from_metadata(&serde_json::from_value(metadata).unwrap()),
            expect,
        ) {
            (Ok(head), Ok((release, old_form))) => {
                assert_eq!((head.release.as_str(), head.old_form), (release, old_form));
                assert_eq!(
                    (head.uid.as_deref(), head.resource_version.as_deref()),
                    (Some("u"), Some("7"))
                );
            }
            (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
            (got, want) => panic!("{got:?} instead of {want:?}"),
        }
    };
    let kind = |release: &str| json!({ "internal.yoke/kind": "revision", "internal.yoke/release": release });
    let name = |release: &str| json!({ "internal.yoke/release-name": release });
    check(kind(&release_label("a")), name("a"), Ok(("a", false)));
    check(kind("a"), name("a"), Ok(("a", true)));
    check(kind("a"), json!({}), Ok(("a", true)));
    check(kind("a"), json!(null), Ok(("a", true)));
    check(
        json!({ "internal.yoke/kind": "lock", "internal.yoke/release": "a" }),
        json!({}),
        Err("internal.yoke/kind is \"lock\""),
    );
    check(
        json!({ "internal.yoke/kind": "revision" }),
        json!({}),
        Err("internal.yoke/release is absent"),
    );
    check(json!(null), json!(null), Err("internal.yoke/kind"));
    check(
        kind("a"),
        json!({ "internal.yoke/created-at": "yesterday" }),
        Err("\"yesterday\" is no RFC 3339 time"),
    );
    check(
        kind("a"),
        json!({ "internal.yoke/created-at": "2026-01-01T00:00:00.000000001+02:00" }),
        Ok(("a", true)),
    );
}

#[test]
fn labels_of_any_name() {
    for name in ["r", &"x".repeat(63), "dots.in.the.name"] {
        assert!(
            selector(name).ends_with(&format!(",{name})")),
            "{}",
            selector(name)
        );
    }
    // What can't be a label value can't have been one.
    for name in [
        &"x".repeat(64),
        "ns/Flight.yoke.cd:x",
        "-a",
        "a.",
        "",
        "a,b",
        "é",
    ] {
        assert!(
            selector(name).ends_with(&format!("in ({})", release_label(name))),
            "{}",
            selector(name)
        );
    }
    assert_eq!(
        selector("r"),
        "internal.yoke/kind=revision,internal.yoke/release in (4dc7c9ec434ed06502767136789763ec11d2c4b7,r)"
    );
    assert_ne!(
        release_label(&"x".repeat(64)),
        release_label(&("x".repeat(63) + "y"))
    );
    assert_eq!(
        lock_name("r"),
        "yoke.4dc7c9ec434ed06502767136789763ec11d2c4b7"
    );
}

#[test]
fn which_is_which() {
    let all = [
        revision("r", "2026-01-01T00:00:00.5Z", "2026-01-03T00:00:00Z", "one"),
        revision(
            "r",
            "2026-01-01T00:00:00.50000001Z",
            "2026-01-01T00:00:00.50000001Z",
            "two",
        ),
        revision("r", "2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z", "three"),
        revision(
            "r",
            "2025-01-02T00:00:00Z",
            "1970-01-01T00:00:00Z",
            "unfinished",
        ),
    ];
    let secrets = |revisions: Vec<&Revision>| {
        revisions
            .iter()
            .map(|revision| revision.head.secret.clone())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(active(&all).unwrap().head.secret, "one");
    assert_eq!(secrets(numbered(&all)), "unfinished one two three");
    assert_eq!((number(&all, "two"), number(&all, "none")), (Some(3), None));
    assert_eq!(active(&all[3..]), None);
    assert_eq!(active::<Revision>(&[]), None);
    let check =
        |cap: i64, expect: &str| assert_eq!(secrets(beyond_cap(&all, cap)), expect, "{cap}");
    check(0, "");
    check(-1, "");
    check(i64::MAX, "");
    check(4, "");
    check(3, "unfinished");
    check(2, "unfinished two");
    check(1, "unfinished two three");
}

#[test]
fn pinnable_sources() {
    for url in [
        "http://x/m.wasm",
        "https://x/m.wasm",
        "oci://r/m:1",
        "oci://r/m:v1",
        "oci://r/m:1.2",
        "oci://r/m:1.2.3",
        "oci://r:5000/m:v1.2.3",
        "oci://r/m:1.2.3-pre+b",
        "oci://r/m:1-rc.1",
        "s3://x/m",
    ] {
        assert!(is_pinnable(url), "{url}");
    }
    for url in [
        "",
        "m.wasm",
        "file:///m.wasm",
        "oci://r/m",
        "oci://r:5000/m",
        "oci://r/m:latest",
        "oci://r/m:stable",
        "oci://r/m:v",
        "oci://r/m:1.2.3.4",
        "oci://r/m:1..2",
        "oci://r/m:sha256_abc",
        "oci://r/m@sha256:abc",
        "oci://r/m:1-",
    ] {
        assert!(!is_pinnable(url), "{url}");
    }
}

#[test]
fn pins() {
    let made_of = |url: &str, checksum: &str| {
        let mut revision = revision("r", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "s");
        (revision.head.source_url, revision.head.source_checksum) =
            (url.to_owned(), checksum.to_owned());
        revision
    };
    let history = [
        made_of("http://x/m", "old"),
        made_of("file:///m", "old"),
        made_of("http://x/n", ""),
    ];
    assert!(check_pin("http://x/m", "old", &history).is_ok());
    assert!(check_pin("http://x/other", "new", &history).is_ok());
    assert!(check_pin("file:///m", "new", &history).is_ok());
    assert!(check_pin("http://x/n", "new", &history).is_ok());
    let message = check_pin("http://x/m", "new", &history)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("http://x/m") && message.contains("is new") && message.contains("of old"),
        "{message}"
    );
}
