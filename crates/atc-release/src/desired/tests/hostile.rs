//! What hostile input costs, and what messages tell.

use std::time::{Duration, Instant};

use super::*;

#[test]
fn hostile_input_is_cheap() {
    let started = Instant::now();
    check(&"[".repeat(10_000), "!nested more than 120 deep");
    check(
        &format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)),
        "!nested more than 120 deep",
    );
    check(&"- ".repeat(10_000), "!document 1 can't be read");
    check(&"{\"a\":".repeat(100_000), "!nested more than 120 deep");
    check(&"{a: ".repeat(10_000), "!document 1 can't be read");
    check(
        &bomb("metadata: {name: a}"),
        "!document 1 can't be read: its aliases expand to more than 50000 values",
    );
    check(
        &format!("{}---\n", bomb("metadata: {name: a}")).repeat(50),
        "!document 1 can't be read",
    );
    // Neither document is beyond the bound, both together are.
    let half = format!("[{}1]", "1,".repeat(MAX_VALUES / 2));
    check(&half, "!element 1: it is a number");
    check(
        &format!("{half}\n---\n{half}"),
        "!document 2 can't be read: the output has more than 1000000 values",
    );
    check(
        &"---\na\n".repeat(MAX_DOCUMENTS + 1),
        "!more than 100000 documents",
    );
    assert!(
        started.elapsed() < Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 3 }),
        "{:?}",
        started.elapsed()
    );
}

fn bomb(metadata: &str) -> String {
    let first = "x0: &x0 [lol,lol,lol,lol,lol,lol,lol,lol,lol]\n";
    let rest: String = (1..9)
        .map(|i| {
            format!(
                "x{i}: &x{i} [{}]\n",
                vec![format!("*x{}", i - 1); 9].join(",")
            )
        })
        .collect::<Vec<_>>()
        .concat();
    format!("apiVersion: v1\nkind: ConfigMap\n{metadata}\n{first}{rest}data: {{}}\n")
}

#[test]
fn many_and_large_are_fine() {
    let many: String = (0..2000)
        .map(|n| format!("---\napiVersion: v1\nkind: X\nmetadata:\n  name: n{n}\n"))
        .collect::<Vec<_>>()
        .concat();
    assert_eq!(parse(many.as_bytes()).unwrap().count(), 2000);
    let large = format!(
        r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"a"}},"data":{{"k":"{}"}}}}"#,
        "x".repeat(5 << 20)
    );
    assert_eq!(
        parse(format!("{large}\n---\n{B}").as_bytes())
            .unwrap()
            .count(),
        2
    );
    // One name, used often, is no bomb.
    let used = format!(
        "apiVersion: v1\nkind: X\nmetadata: {{name: a}}\nl: &l {{a: b}}\nall:\n{}",
        "- *l\n".repeat(3000)
    );
    check(&used, "a");
}

#[test]
fn messages_hold_no_values() {
    for output in [
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"k":"hunter2","k":"hunter2"}}"#,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"k":"hunter2"}"#,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{},"stringData":{"k":"hunter2"}}"#,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"k":"hunter2""}}"#,
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  k: hunter2\n  k: hunter2\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  k: hunter2\n j: hunter2\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  k: \"hunter2\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata:\n  k: !!binary hunter2!\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata:\n  k: hunter2: hunter2\n",
        "hunter2",
        "[hunter2]",
    ] {
        let error = parse(output.as_bytes()).unwrap_err();
        assert!(
            !format!("{error} {error:?}").contains("hunter2"),
            "{error:?}"
        );
    }
    let stages = parse(br#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"k":"hunter2"}}"#).unwrap();
    assert!(!format!("{stages:?}").contains("hunter2"));
}

#[test]
fn long_lines_of_flow_yaml() {
    let long = "x y: z, ".repeat(2000);
    let object = format!(
        r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"a"}},"data":{{"k":"{long}","l":[{}1],}},}}"#,
        "{\"a\": 1}, ".repeat(500)
    );
    check(&object, "a");
    check(&format!("[{object},]"), "a");
    check(&format!("- {object}\n"), "a");
    check(
        &format!("--- {object}\n---\n- [{object}]\n").replace("- [", "["),
        "a",
    );
    let plain = format!(
        "apiVersion: v1\nkind: X\nmetadata: {{name: a}}\nplain: {}\nquoted: '{long}'\nfolded: >\n  {long}\n",
        "word ".repeat(2000)
    );
    check(&plain, "a");
}
