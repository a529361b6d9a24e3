use proptest::prelude::*;

use super::*;
use crate::section::tests::module;

fn text(content: &str) -> Schematic {
    Schematic::Static(content.as_bytes().to_vec())
}

fn command(words: &[&str]) -> Schematic {
    Schematic::Command(words.iter().map(ToString::to_string).collect())
}

fn with(sections: &[(&str, &str)]) -> Vec<u8> {
    let mut module = module();
    for (name, data) in sections {
        append(&mut module, name, data.as_bytes()).unwrap();
    }
    module
}

#[test]
fn what_is_set_stands_at_the_end() {
    let check = |name: &str, schematic: &Schematic, section: (&str, &str)| {
        let set = set_schematic(&module(), name, schematic).unwrap();
        assert_eq!(set, with(&[section]), "{name}");
        assert_eq!(super::schematic(&set, name).unwrap(), *schematic, "{name}");
    };
    check(
        "docs",
        &text("line one\n\0two"),
        ("yoke.schematics:docs", "line one\n\0two"),
    );
    check(
        "c",
        &command(&["a", "b \""]),
        ("yoke.schematics.cmd:c", r#"["a","b \""]"#),
    );
    check("none", &command(&[]), ("yoke.schematics.cmd:none", "[]"));
    check("a:b c/ü", &text("x"), ("yoke.schematics:a:b c/ü", "x"));
}

#[test]
fn set_replaces_both_kinds_of_that_name_only() {
    let was = with(&[
        ("yoke.schematics:a", "1"),
        ("others", "x"),
        ("yoke.schematics.cmd:a", "[]"),
        ("yoke.schematics:a", "2"),
        ("yoke.schematics:ab", "3"),
    ]);
    let now = set_schematic(&was, "a", &text("new")).unwrap();
    let rest = [
        ("others", "x"),
        ("yoke.schematics:ab", "3"),
        ("yoke.schematics:a", "new"),
    ];
    assert_eq!(now, with(&rest));
}

#[test]
fn names_are_listed_by_their_sections_names() {
    let module = with(&[
        ("yoke.schematics:z", "1"),
        ("yoke.schematics:docs", "1"),
        ("yoke.schematics.cmd:schema", "[]"),
        ("yoke.schematics:docs", "2"),
        ("yoke.schematic:no", ""),
        ("name", ""),
    ]);
    assert_eq!(schematic_names(&module).unwrap(), ["schema", "docs", "z"]);
    let error = schematic(&module, "gone").unwrap_err().to_string();
    assert!(
        error.contains("'gone'") && error.contains("schema, docs, z"),
        "{error}"
    );
    let error = schematic(&super::tests::module(), "gone")
        .unwrap_err()
        .to_string();
    assert!(error.contains("it has none"), "{error}");
}

#[test]
fn commands_are_lists_of_words() {
    let check = |text: &str, expect: &[&str]| {
        assert_eq!(parse_command(text.as_bytes()).unwrap(), expect, "{text}");
    };
    check(
        r#"["print","from the module"]"#,
        &["print", "from the module"],
    );
    check("[print, from the module]", &["print", "from the module"]);
    check(
        "- print\n- from the module\n",
        &["print", "from the module"],
    );
    check("[]", &[]);
    check(r#"["exit","3"]"#, &["exit", "3"]);
    for no in [
        "",
        " \n",
        r#"{"a":1}"#,
        "word",
        "[[a]]",
        "[{a: b}]",
        "[a",
        "\u{0}",
        "- a\nb",
    ] {
        let error = parse_command(no.as_bytes()).unwrap_err();
        assert!(
            matches!(error, SchematicError::NoCommand { .. }),
            "{no:?}: {error}"
        );
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
    assert!(parse_command(b"\xff").is_err());
    let long = format!("[{}]", "a,".repeat(MAX_COMMAND_WORDS + 1));
    assert!(matches!(
        parse_command(long.as_bytes()),
        Err(SchematicError::TooLong { .. })
    ));
}

#[test]
fn what_cannot_be_set_is_told() {
    let check = |name: &str, schematic: &Schematic, words: &str| {
        let error = set_schematic(&module(), name, schematic).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    };
    check("a", &text(""), "'a' is empty");
    check("", &text("x"), "needs a name");
    check(
        "a",
        &Schematic::Static(vec![0; MAX_SCHEMATIC_BYTES + 1]),
        "larger than",
    );
    assert!(set_schematic(b"text", "a", &text("x")).is_err());
}

#[test]
fn damaged_commands_are_named() {
    for data in ["", "{}", "[1]", "[\"a\"] x", "[null]"] {
        let error = schematic(&with(&[("yoke.schematics.cmd:c", data)]), "c").unwrap_err();
        assert!(
            error.to_string().contains("'c' of this module is damaged"),
            "{error}"
        );
    }
}

proptest! {
    #[test]
    fn what_is_set_is_read(name in ".{1,12}", data in prop::collection::vec(any::<u8>(), 1..99)) {
        let content = Schematic::Static(data);
        let set = set_schematic(&module(), &name, &content).unwrap();
        prop_assert!(set.starts_with(&module()));
        prop_assert_eq!(schematic(&set, &name).unwrap(), content);
        prop_assert_eq!(schematic_names(&set).unwrap(), [name]);
    }

    #[test]
    fn commands_survive(name in "[a-z]{1,5}", words in prop::collection::vec(".{0,9}", 0..5)) {
        let content = Schematic::Command(words);
        let set = set_schematic(&module(), &name, &content).unwrap();
        prop_assert_eq!(schematic(&set, &name).unwrap(), content);
    }

    #[test]
    fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = parse_command(&bytes);
        let module = [b"\0asm\x01\0\0\0", &bytes[..]].concat();
        let _ = schematic(&module, "");
        let _ = schematic_names(&module);
    }
}

#[test]
fn commands_of_hostile_modules_are_bounded() {
    let list = |count: usize| serde_json::to_string(&vec!["w"; count]).unwrap();
    let read =
        |data: &str| super::schematic(&with(&[("yoke.schematics.cmd:c", data)]), "c").map(|_| ());
    assert!(read(&list(MAX_COMMAND_WORDS)).is_ok());
    let error = read(&list(MAX_COMMAND_WORDS + 1)).unwrap_err();
    assert!(matches!(error, SchematicError::TooLong { .. }), "{error}");
    assert!(parse_command(list(MAX_COMMAND_WORDS).as_bytes()).is_ok());
    let error = parse_command(list(MAX_COMMAND_WORDS + 1).as_bytes()).unwrap_err();
    assert!(matches!(error, SchematicError::TooLong { .. }), "{error}");
    let padded = format!("[]{}", " ".repeat(MAX_SCHEMATIC_BYTES));
    let error = read(&padded).unwrap_err();
    assert!(matches!(error, SchematicError::TooLarge { .. }), "{error}");
}

#[test]
fn errors_name_a_few_schematics_only() {
    let names: Vec<String> = (0..100)
        .map(|n| format!("yoke.schematics:{n:03}{}", "ü".repeat(1000)))
        .collect();
    let sections: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
    let error = super::schematic(&with(&sections), "none").unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("000ü") && text.contains("019ü") && !text.contains("020ü"),
        "{text}"
    );
    assert!(text.ends_with("and 80 more") && text.len() < 6000, "{text}");
}
