//! Errors as users read them.

use anyhow::{Context as _, anyhow};
use atc_engine::EngineError;
use atc_engine::api::ResourceRef;

use super::{Hinted, hint, names, printable, resource, words};

#[test]
fn causes_stand_once() {
    let error = anyhow!("inner").context("outer");
    assert_eq!(words(&error).0, "outer: inner");
    let error = anyhow!("inner").context("outer: inner");
    assert_eq!(words(&error).0, "outer: inner");
}

#[test]
fn refused_objects_stand_one_a_line() {
    let refused = |failures: &[&str]| {
        let failures = failures
            .iter()
            .map(|failure| (*failure).to_owned())
            .collect();
        anyhow::Error::new(EngineError::Refused {
            step: "ownership",
            failures,
        })
    };
    let (line, items) = words(&refused(&["a is another's", "b is another's"]));
    assert_eq!(line, "ownership: 2 objects were refused");
    assert_eq!(items, ["a is another's", "b is another's"]);
    let (line, items) = words(&refused(&["a is another's"]));
    assert!(
        line.ends_with("a is another's") && items.is_empty(),
        "{line}"
    );
    let hints = hint::hints(&refused(&[
        "a is owned by b",
        "c is owned by d",
        "cannot read e: forbidden",
    ]));
    assert_eq!(hints.len(), 1);
    assert!(hints[0].contains("-force-ownership"), "{hints:?}");
    assert!(hint::hints(&refused(&["cannot read e: forbidden"])).is_empty());
}

#[test]
fn hints_come_with_their_error() {
    let error = Err::<(), _>(Hinted::new("no", "try yes"))
        .context("outer")
        .expect_err("error");
    assert_eq!(words(&error).0, "outer: no");
    assert_eq!(hint::hints(&error), ["try yes"]);
    assert!(hint::hints(&anyhow!("plain")).is_empty());
}

#[test]
fn nothing_steers_the_terminal() {
    assert_eq!(
        printable("a\x1b[31mb\r\nc\td\u{9b}"),
        "a\\u{1b}[31mb\\r\nc\td\\u{9b}"
    );
}

#[test]
fn many_names_are_summed_up() {
    let all: Vec<usize> = (1..=23).collect();
    assert_eq!(names(&all[..2]), "1, 2");
    assert!(names(&all[..20]).ends_with("19, 20"));
    assert!(names(&all).ends_with("19, 20, and 3 more"));
}

#[test]
fn a_resource_of_no_namespace_has_none_in_front() {
    let named = |namespace: &str, kind: &str| resource(&ResourceRef::new(namespace, "", kind, "a"));
    assert_eq!(named("n", "ConfigMap"), "n/ConfigMap:a");
    assert_eq!(named("", "Namespace"), "Namespace:a");
}
