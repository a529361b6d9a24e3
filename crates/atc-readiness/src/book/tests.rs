use serde_json::json;

use super::*;
use crate::rule::{CONDITIONS, LABEL, LUA};

fn rules(sort: &str, data: &Value) -> Value {
    json!({ "metadata": { "labels": { LABEL: sort } }, "data": data })
}

fn source(book: &Book, namespace: &str, kind: &str) -> Option<String> {
    book.find(namespace, "x.dev", kind)
        .map(|found| found.source)
}

#[test]
fn which_rule_counts() {
    let mut book = Book::default();
    book.share(Some("atc".into()));
    let exact = rules(CONDITIONS, &json!({ "App.x.dev": "Ready" }));
    let any = rules(CONDITIONS, &json!({ "_.x.dev": "Ready" }));
    assert_eq!(book.put("atc", "exact", &exact), Ok(true));
    assert_eq!(book.put("team", "any", &any), Ok(true));
    assert_eq!(book.put("foreign", "exact", &exact), Ok(true));
    // The exact one wins; else the namespace's own.
    assert_eq!(source(&book, "team", "App").as_deref(), Some("atc/exact"));
    assert_eq!(source(&book, "team", "Other").as_deref(), Some("team/any"));
    // What stands in somebody else's namespace is nobody's business (W25).
    assert_eq!(source(&book, "lonely", "App").as_deref(), Some("atc/exact"));
    assert_eq!(source(&book, "lonely", "Other"), None);
    book.put("team", "b", &exact).unwrap();
    book.put("team", "a", &exact).unwrap();
    assert_eq!(source(&book, "team", "App").as_deref(), Some("team/a"));
    assert!(book.remove("team", "a") && !book.remove("team", "a"));
    assert_eq!(source(&book, "team", "App").as_deref(), Some("team/b"));
    book.share(None);
    assert_eq!(source(&book, "lonely", "App"), None);
}

#[test]
fn changes_are_told_from_echoes() {
    let mut book = Book::default();
    let one = rules(
        LUA,
        &json!({ "App.x.dev": "return function() return true end" }),
    );
    let two = rules(
        LUA,
        &json!({ "App.x.dev": "return function() return false end" }),
    );
    assert_eq!(book.put("n", "a", &one), Ok(true));
    let version = |book: &Book| book.find("n", "x.dev", "App").map(|found| found.version);
    let first = version(&book);
    assert_eq!(book.put("n", "a", &one), Ok(false));
    assert_eq!(version(&book), first);
    assert_eq!(book.put("n", "a", &two), Ok(true));
    assert_ne!(version(&book), first);
    // It lost its label.
    assert_eq!(book.put("n", "a", &json!({})), Ok(true));
    assert_eq!(version(&book), None);
    assert_eq!(book.put("n", "a", &json!({})), Ok(false));
}

#[test]
fn what_is_held_is_bounded() {
    let mut book = Book::default();
    let half = rules(LUA, &json!({ "A.x.dev": "-".repeat(NAMESPACE_MAX / 2) }));
    let more = rules(
        LUA,
        &json!({ "App.x.dev": "-".repeat(NAMESPACE_MAX / 2 + 1) }),
    );
    book.put("n", "a", &half).unwrap();
    let full = book.put("n", "b", &more).unwrap_err().to_string();
    assert!(full.contains("n/b") && full.contains("262144"), "{full}");
    assert_eq!(source(&book, "n", "App"), None);
    // Others have their own share, and its own page may grow.
    book.put("m", "b", &more).unwrap();
    book.put("n", "a", &more).unwrap();
    assert_eq!(source(&book, "n", "App").as_deref(), Some("n/a"));
}
