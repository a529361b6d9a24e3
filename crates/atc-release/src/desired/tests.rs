//! Tables: what is accepted and as what, what is refused and in which words, and what it may cost.

use serde_json::{Value, json};

use super::*;
use crate::object::Object;

mod hostile;
mod survival;

const A: &str =
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}"#;
const B: &str =
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":{"k":"v"}}"#;
const C: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}"#;
const YA: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n";
const YB: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\ndata:\n  k: v\n";

/// Names by stage, space between objects, `|` between stages; or the words of the error, after `!`.
fn check(output: &str, expect: &str) {
    check_bytes(output.as_bytes(), expect);
}

fn check_bytes(output: &[u8], expect: &str) {
    let shown = String::from_utf8_lossy(&output[..output.len().min(300)]);
    match (parse(output), expect.strip_prefix('!')) {
        (Ok(stages), None) => assert_eq!(names(&stages), expect, "{shown}"),
        (Err(error), Some(words)) => {
            let mut message = error.to_string();
            if let Some(source) = std::error::Error::source(&error) {
                let source = source.to_string();
                assert!(!message.contains(&source), "{message:?} says {source:?}");
                message = format!("{message}: {source}");
            }
            assert!(
                words.split('&').all(|words| message.contains(words.trim())),
                "{message:?} for {shown}"
            );
            assert!(
                !message.contains('\n') && message.len() < 1000,
                "{message:?}"
            );
        }
        (Ok(stages), Some(_)) => panic!(
            "accepted as {:?}, should be {expect}: {shown}",
            names(&stages)
        ),
        (Err(error), None) => panic!("{error}: {shown}"),
    }
}

fn names(stages: &Stages) -> String {
    let stage = |stage: &Vec<Object>| stage.iter().map(Object::name).collect::<Vec<_>>().join(" ");
    stages.iter().map(stage).collect::<Vec<_>>().join("|")
}

#[test]
fn forms() {
    check(A, "a");
    check(YA, "a");
    check(&format!("{YA}---\n{YB}"), "a b");
    check(&format!("---\n{YA}---\n{YB}---\n"), "a b");
    check(
        &format!("---\n---\n# nothing\n---\n{YA}...\n---\n\n---\n{YB}...\n"),
        "a b",
    );
    check(&format!("{A}\n---\n{B}\n"), "a b");
    check(&format!("{A}\n---\n{YB}"), "a b");
    check(&format!("{YA}---\n{B}"), "a b");
    check(&format!("--- {A}\n--- {B}"), "a b");
    check(&format!("---\t\n{YA}--- # two\n{YB}"), "a b");
    check(&format!("[{A},{B}]"), "a b");
    check(&format!("[{A},{B},]"), "a b");
    check(&format!("- {A}\n- {B}\n"), "a b");
    check(&format!("[[{A}],[{B}]]"), "a|b");
    check(&format!("- - {A}\n- - {B}\n  - {C}\n"), "a|b c");
    check(&format!("[[{A}],[],[{B}]]"), "a|b");
    check(&format!(" \n\t {A} \n"), "a");
    check(&format!("%YAML 1.2\n---\n{YA}"), "a");
    check(&format!("# comment\n{A}"), "a");
    check(&format!("{A} # comment"), "a");
    // Tabs are blanks in JSON, as Go's MarshalIndent prints them.
    check(
        "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"X\",\n\t\"metadata\": {\n\t\t\"name\": \"a\"\n\t}\n}\n---\n{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"X\",\n\t\"metadata\": {\"name\": \"b\"}\n}\n",
        "a b",
    );
    // Lists and lists of lists over several documents: all of them.
    check(&format!("[{A}]\n---\n[{B},{C}]\n"), "a b c");
    check(&format!("- {A}\n---\n{YB}"), "a b");
    check(&format!("[[{A}]]\n---\n[[{B}],[{C}]]\n"), "a|b|c");
    check(&format!("[]\n---\n{A}"), "a");
}

#[test]
fn nothing_must_be_said_r55_p02() {
    check("[]", "");
    check("[[],[]]", "");
    check(" [ ] \n", "");
    check("--- []\n", "");
    check(r#"{"apiVersion":"v1","kind":"List","items":[]}"#, "");
    check("", "!is empty & []");
    check(" \n\n", "!is blank");
    check("\u{feff}", "!is blank");
    check("# nothing\n", "!only comments");
    check("---\n...\n", "!only comments and separators");
    check("null", "!is null");
    check("--- ~\n---\nnull\n", "!is null");
    check("{}", "!document 1 (line 1) is an empty object");
    check(
        &format!("{YA}---\n{{}}\n"),
        "!document 2 (line 7) is an empty object",
    );
}

#[test]
fn refused() {
    check("hello", "!document 1 (line 1) is a text & list of lists");
    check("42", "!is a number");
    check("true", "!is a boolean");
    check(
        "[1]",
        "!document 1 (line 1), element 1: it is a number, not an object",
    );
    check(
        &format!("[{A},null]"),
        "!element 2: it is null, not an object",
    );
    check(
        &format!("[[{A}],[{B},null]]"),
        "!stage 2, element 2: it is null",
    );
    check(
        &format!("[{A},[{B}]]"),
        "!element 2: it is a list, not an object",
    );
    check(&format!("[[{A}],{B}]"), "!stage 2 mixes");
    check(&format!("[[[{A}]]]"), "!stage 1, element 1: it is a list");
    check(&format!("[[{A}]]\n---\n{B}"), "!document 2 (line 2) mixes");
    check(&format!("{A}\n---\n[[{B}]]"), "!document 2 (line 2) mixes");
    check(
        r#"{"apiVersion":"v1","metadata":{"name":"x"}}"#,
        "!it has no kind & \"x\"",
    );
    check(
        r#"{"kind":"ConfigMap","metadata":{"name":"x"}}"#,
        "!it has no apiVersion & ConfigMap",
    );
    check(
        r#"{"apiVersion":"v1","kind":"ConfigMap"}"#,
        "!it has no metadata.name & (ConfigMap)",
    );
    check(
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}"#,
        "!it has no metadata.name",
    );
    check(
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":""}}"#,
        "!it has no metadata.name",
    );
    check(
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":[]}"#,
        "!metadata is a list, not a map",
    );
    check(
        r#"{"apiVersion":"v1","kind":"Job","metadata":{"generateName":"x-"}}"#,
        "!generateName can't be used",
    );
    check(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 5}",
        "!metadata.name is a number, not a text",
    );
    check(
        "apiVersion: 1\nkind: ConfigMap\nmetadata: {name: a}",
        "!apiVersion is a number, not a text",
    );
    check(
        "apiVersion: v1\nkind: X\nmetadata: {name: a, namespace: yes}",
        "!metadata.namespace is a boolean, not a text",
    );
    check(
        "apiVersion: v1\nkind: X\nmetadata: {name: a, labels: [x]}",
        "!metadata.labels is a list, not a map",
    );
    for name in ["../x", "a/b", "..", ".", "a%2f", "a?x", "a b", "a\\nb", "é"] {
        check(
            &format!(r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"{name}"}}}}"#),
            "!metadata.name & is not possible",
        );
        check(
            &format!(
                r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"a","namespace":"{name}"}}}}"#
            ),
            "!metadata.namespace & is not possible",
        );
    }
    for api_version in ["a/b/c", "/v1", "v1/", "..", "v1?x", "a b/v1"] {
        check(
            &format!(r#"{{"apiVersion":"{api_version}","kind":"X","metadata":{{"name":"a"}}}}"#),
            "!apiVersion & is not possible",
        );
    }
    // Every document counts, also behind a good one (W17).
    check(
        &format!("{YA}---\napiVersion: v1\nmetadata:\n  name: b\n---\n{YB}"),
        "!document 2 (line 7): it has no kind & \"b\"",
    );
}

#[test]
fn values_one_after_another() {
    check(&format!("{A}{B}"), "!document 1 can't be read & line 1");
    check(&format!("{A}\n{B}\n"), "!document 1 can't be read & line 2");
    check(&format!("{A}}}}}"), "!document 1 can't be read");
    check(&format!("{A}\n{YB}"), "!document 1 can't be read");
    check(&format!("{YA}{B}"), "!document 1 can't be read");
    check(
        &format!("{YA}...\n{YB}"),
        "!document 1 can't be read & line 8",
    );
    check(&format!("{A}]"), "!document 1 can't be read");
    check(&format!("{A},{B}"), "!document 1 can't be read");
    check(&format!("[{A},{}", &B[..40]), "!document 1 can't be read");
    check(&A[..A.len() - 1], "!document 1 can't be read");
    check(
        &format!("{YA}---\n{YB}  x: [\n"),
        "!document 2 can't be read",
    );
    check(
        &format!("{YA}---\nkind: a: b\n"),
        "!document 2 can't be read & line 8",
    );
}

#[test]
fn kinds_of_lists_r77() {
    check(
        &format!(r#"{{"apiVersion":"v1","kind":"List","items":[{A},{B}]}}"#),
        "a b",
    );
    check(
        &format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMapList","metadata":{{"resourceVersion":""}},"items":[{A},{B}]}}"#
        ),
        "a b",
    );
    check(
        r#"{"apiVersion":"v1","kind":"ConfigMapList","items":[{"metadata":{"name":"a"}}]}"#,
        "a",
    );
    check(
        r#"{"apiVersion":"v1","kind":"List","items":[{"metadata":{"name":"a"}}]}"#,
        "!item 1: it has no apiVersion",
    );
    check(
        r#"{"apiVersion":"v1","kind":"ConfigMapList","items":null}"#,
        "",
    );
    check(
        &format!(r#"[[{C}],[{{"apiVersion":"v1","kind":"List","items":[{A}]}},{B}]]"#),
        "c|a b",
    );
    check(
        &format!(
            r#"{{"apiVersion":"v1","kind":"List","items":[{{"apiVersion":"v1","kind":"List","items":[{A}]}},{B}]}}"#
        ),
        "a b",
    );
    check(
        &format!(r#"{{"apiVersion":"v1","kind":"List","items":[{A},null]}}"#),
        "!item 2: it is null",
    );
    check(
        &format!(
            "{A}\n---\n{}",
            r#"{"apiVersion":"v1","kind":"List","items":[3]}"#
        ),
        "!document 2 (line 2), item 1: it is a number",
    );
    // An object whose kind happens to end so.
    check(
        r#"{"apiVersion":"x.dev/v1","kind":"AllowList","metadata":{"name":"a"},"items":[1]}"#,
        "a",
    );
    check(
        r#"{"apiVersion":"x.dev/v1","kind":"AllowList","metadata":{"name":"a"}}"#,
        "a",
    );
}

#[test]
fn foundations_first() {
    let namespace = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}"#;
    let crd = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"d"}}"#;
    let other = r#"{"apiVersion":"x.dev/v1","kind":"Namespace","metadata":{"name":"o"}}"#;
    check(&format!("[{A},{crd},{B},{namespace}]"), "d n|a b");
    check(&format!("[[{A}],[{B},{namespace}],[{crd}]]"), "a|n|b|d");
    check(&format!("[{other},{namespace}]"), "n|o");
    check(namespace, "n");
}

#[test]
fn the_same_object_twice() {
    let other = A.replace("\"v\"}", "\"w\"}");
    check(
        &format!("[{A},{B},{other}]"),
        "!\"_/core/v1/configmap/a\" occurs twice & element 1 & element 3",
    );
    check(
        &format!("[[{A}],[{other}]]"),
        "!occurs twice & stage 1 & stage 2",
    );
    check(
        &format!("{YA}---\n{}", YA.replace("k: v", "k: w")),
        "!occurs twice: document 1 (line 1), and document 2 (line 7)",
    );
    // Where both say the same, the first is enough.
    check(&format!("[{A},{B},{A}]"), "a b");
    check(&format!("[[{A}],[{B},{A}],[{A}],[{C}]]"), "a|b|c");
    check(&format!("{YA}---\n{YA}"), "a");
    let made = A.replace(
        "\"name\":\"a\"",
        "\"creationTimestamp\":null,\"name\":\"a\"",
    );
    check(&format!("[{A},{made}]"), "a");
    let status = |m: u8| A.replace("\"data\"", &format!("\"status\":{{\"m\":{m}}},\"data\""));
    check(&format!("[{},{}]", status(1), status(1)), "a");
    check(&format!("[{},{}]", status(1), status(2)), "!occurs twice");
    // Its version is no part of an object's identity, its namespace is.
    let hpa = |v: &str| {
        format!(
            r#"{{"apiVersion":"autoscaling/{v}","kind":"HorizontalPodAutoscaler","metadata":{{"name":"h"}}}}"#
        )
    };
    check(&format!("[{},{}]", hpa("v1"), hpa("v2")), "!occurs twice");
    check(
        &format!(
            "[{A},{}]",
            A.replace("\"name\":\"a\"", "\"name\":\"a\",\"namespace\":\"n\"")
        ),
        "a a",
    );
    check(
        &format!("[{A},{}]", A.replace("ConfigMap", "Secret")),
        "a a",
    );
}

#[test]
fn keys_that_occur_twice() {
    check(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: one}\ndata: {other: two}\n",
        "!data & line 5",
    );
    check(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: one\n  k: two\n",
        "!k & line 6",
    );
    check(
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"one"},"data":{"o":"two"}}"#,
        "!the key \"data\" occurs twice at line 1",
    );
    check(
        r#"[[{"apiVersion":"v1","kind":"X","metadata":{"name":"a"},"d":[{"k":1,"k":1}]}]]"#,
        "!the key \"k\" occurs twice",
    );
    // Merged keys may be overridden: that is what they are for.
    let merged = "apiVersion: v1\nkind: X\nmetadata:\n  name: a\n  labels: &l {one: two}\n  annotations:\n    <<: *l\n    one: own\n    three: four\ndata: *l\n";
    let stages = parse(merged.as_bytes()).unwrap();
    let object = stages.objects().next().unwrap();
    assert_eq!(
        object.metadata()["annotations"],
        json!({ "one": "own", "three": "four" })
    );
    assert_eq!(object.value()["data"], json!({ "one": "two" }));
}

/// A value as JSON and as YAML, and what it becomes.
fn check_value(text: &str, expect: &Value) {
    for output in [
        format!(r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"a"}},"n":{text}}}"#),
        format!("apiVersion: v1\nkind: X\nmetadata: {{name: a}}\nn: {text}\n"),
    ] {
        let stages = parse(output.as_bytes()).unwrap_or_else(|error| panic!("{error}: {output}"));
        let object = stages.objects().next().unwrap();
        assert_eq!(&object.value()["n"], expect, "{output}");
        // And on into the record and back.
        let packed = crate::history::pack(&stages).unwrap();
        assert_eq!(
            crate::history::unpack("s", &packed).unwrap(),
            stages,
            "{output}"
        );
    }
}

#[test]
fn numbers() {
    check_value("9123456789012345678", &json!(9_123_456_789_012_345_678_u64));
    check_value("-9223372036854775808", &json!(i64::MIN));
    check_value("18446744073709551615", &json!(u64::MAX));
    check_value("1000000", &json!(1_000_000));
    check_value("20161216", &json!(20_161_216));
    check_value("0.1", &json!(0.1));
    check_value("-0.5e-3", &json!(-0.0005));
    // As kubectl: a whole float is an integer.
    check_value("1e3", &json!(1000));
    check_value("1.0", &json!(1));
    check_value("-0", &json!(0));
    check_value("-0.0", &json!(0));
    check_value("1e20", &json!(1e20));
    for number in [
        "18446744073709551616",
        "-9223372036854775809",
        "18446744073709551616000",
        "1e400",
        "-1e400",
    ] {
        for text in [
            format!(
                r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"a"}},"s":"1, \" 18446744073709551616","n":[1,{number}]}}"#
            ),
            format!("apiVersion: v1\nkind: X\nmetadata: {{name: a}}\nn: {number}\n"),
        ] {
            check(&text, "!document 1 can't be read & line");
        }
    }
    check(
        "apiVersion: v1\nkind: X\nmetadata: {name: a}\nbig: 1e30\nn:\n- 18446744073709551616\n",
        "!an integer does not fit 64 bits at line 6, column 3",
    );
    check(
        "{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{\"name\":\"a\"},\"big\":1e30,\n\"n\": 18446744073709551616}",
        "!an integer does not fit 64 bits at line 2, column 6",
    );
    for text in [".inf", "-.inf", ".nan", "[.NaN]"] {
        check(
            &format!("apiVersion: v1\nkind: X\nmetadata: {{name: a}}\nn: {text}\n"),
            "!document 1 can't be read & line 4",
        );
    }
    check(
        r#"{"apiVersion":"v1","kind":"X","metadata":{"name":"a"},"n":NaN}"#,
        "a",
    );
    let yaml = |text: &str| {
        let output = format!("apiVersion: v1\nkind: X\nmetadata: {{name: a}}\nn: {text}\n");
        parse(output.as_bytes())
            .unwrap()
            .objects()
            .next()
            .unwrap()
            .value()["n"]
            .clone()
    };
    for (text, expect) in [
        ("0755", json!(493)),
        ("0o755", json!(493)),
        ("0x1F", json!(31)),
        ("1_000", json!(1000)),
        ("yes", json!(true)),
        ("off", json!(false)),
        ("y", json!(true)),
        ("n", json!(false)),
        ("!!str yes", json!("yes")),
        ("null", json!(null)),
        ("", json!(null)),
        ("=", json!("=")),
        ("1e3", json!(1000)),
        ("0x1F", json!(31)),
        ("-0755", json!(-493)),
        ("08", json!(8)),
        ("1__0", json!("1__0")),
        ("1:20", json!("1:20")),
        ("+1", json!(1)),
        (".5", json!(0.5)),
        ("1.", json!(1)),
        ("'a'", json!("a")),
        ("\"0755\"", json!("0755")),
        ("~", json!(null)),
        ("2001-01-01", json!("2001-01-01")),
        ("12:30", json!("12:30")),
        ("!!binary aGk=", json!("hi")),
        ("!custom x", json!("x")),
        ("v1.0", json!("v1.0")),
        ("1.2.3", json!("1.2.3")),
    ] {
        assert_eq!(yaml(text), expect, "{text}");
    }
}

#[test]
fn separators_inside_texts() {
    let text = "---\na: 1\n---\nb: 2\n...\n-----BEGIN X-----\nabc=\n-----END X-----\n";
    let indented = text
        .lines()
        .map(|line| format!("    {line}\n"))
        .collect::<Vec<_>>()
        .concat();
    let yaml = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  f: |\n{indented}  q: \"x\\n---\\ny\"\n"
    );
    let stages = parse(yaml.as_bytes()).unwrap();
    assert_eq!(
        stages.objects().next().unwrap().value()["data"],
        json!({ "f": text, "q": "x\n---\ny" })
    );
    let json = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "f": text, "surrogates": "\u{1f600}" } });
    for output in [
        json.to_string(),
        serde_json::to_string_pretty(&json).unwrap(),
        json.to_string().replace('\u{1f600}', "\\ud83d\\ude00"),
    ] {
        assert_eq!(
            parse(output.as_bytes())
                .unwrap()
                .objects()
                .next()
                .unwrap()
                .value(),
            &json
        );
    }
    // A marker needs a blank or the line's end behind it.
    check(
        "apiVersion: v1\nkind: X\nmetadata: {name: a}\n---x: 1\n",
        "a",
    );
}

#[test]
fn line_ends_and_odd_bytes() {
    let crlf = format!("{YA}---\n{YB}").replace('\n', "\r\n");
    check(&crlf, "a b");
    assert_eq!(
        parse(crlf.as_bytes()).unwrap(),
        parse(format!("{YA}---\n{YB}").as_bytes()).unwrap()
    );
    check(&format!("\u{feff}{YA}"), "a");
    check(&format!("\u{feff}{A}"), "a");
    check(&format!("\u{feff}---\n{YA}"), "a");
    check(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: a\n",
        "!document 1 can't be read & line 4",
    );
    check(&format!("{YA}\0"), "!a NUL byte at line 7, column 1");
    check_bytes(
        b"apiVersion: v1\nkind: \xff\n",
        "!no UTF-8 at line 2, column 7",
    );
    check(
        "apiVersion: v1\nkind: X\nmetadata:\n\u{a0}\u{a0}name: a\n",
        "!line",
    );
    check(&format!("{YA}\u{1}"), "!document 1 can't be read");
}
