//! Which variable wins.

use super::*;

#[test]
fn the_release_is_the_part_after_the_last_slash() {
    for (variable, program, release) in [
        (Some("app"), Some("other"), "app"),
        (
            Some("default/Flight.yoke.cd:app"),
            None,
            "Flight.yoke.cd:app",
        ),
        (Some("a/b/app"), None, "app"),
        (Some(""), Some("a/app"), "app"),
        (None, Some("app"), "app"),
        (None, None, ""),
    ] {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        assert_eq!(
            release_of(owned(variable), owned(program)),
            release,
            "{variable:?} {program:?}"
        );
    }
}

#[test]
fn the_first_that_is_set_counts() {
    assert_eq!(
        first_set([
            None,
            Some(String::new()),
            Some("x".into()),
            Some("y".into())
        ]),
        "x"
    );
    assert_eq!(first_set([None]), "");
}
