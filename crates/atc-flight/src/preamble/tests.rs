use super::check_code;
use crate::FlightErrorKind;
use crate::testkit::assemble;

fn check(wasm: &[u8], words: &[&str]) {
    let error = super::check(wasm, |module, name| (module, name) == ("host", "known")).unwrap_err();
    assert_eq!(error.kind(), FlightErrorKind::Module);
    for word in words {
        assert!(
            error.to_string().contains(word),
            "\"{word}\" is missing in: {error}"
        );
    }
}

#[test]
fn what_is_no_module_is_told_apart_r137() {
    check(b"", &["empty"]);
    check(b"\x7fELF\x02\x01\x01", &["ELF"]);
    check(b" \n<!doctype html><html>", &["HTML"]);
    check(
        b"(module (func (export \"_start\")))",
        &["WebAssembly text"],
    );
    check(b"\x1f\x8b\x08", &["gzip"]);
    check(b"hello", &["magic number"]);
    check(b"\0as", &["magic number"]);
    check(b"\0asm", &["unexpected end"]);
    check(b"\0asm\x02\0\0\0", &["version"]);
    check(b"\0asm\x0d\0\x01\0", &["component", "wasm32-wasip1"]);
    check(
        b"\0asm\x01\0\0\0\x01\xff\xff\xff\xff\x0f",
        &["unexpected end"],
    );
}

#[test]
fn every_missing_import_is_named_r137() {
    let wasm = assemble(
        r#"(module (import "host" "known" (func)) (import "env" "one" (func)) (import "host" "two" (func))
        (import "env" "memory" (memory 1)) (import "env" "one" (global i32)))"#,
    );
    check(
        &wasm,
        &["what no host offers: \"env.memory\", \"env.one\", \"host.two\""],
    );
    let many = (0..200).fold(String::new(), |text, n| {
        text + &format!(r#"(import "gojs" "f{n}" (func))"#)
    });
    check(
        &assemble(&format!("(module {many})")),
        &["and 150 more", "GOOS=wasip1"],
    );
    check(
        &assemble(&format!(
            r#"(module (import "a\n\u{{1b}}b" "{}" (func)))"#,
            "x".repeat(5000)
        )),
        &[r"a\n\u{1b}b", "x…"],
    );
}

#[test]
fn what_is_known_passes() {
    let wasm = assemble(r#"(module (import "host" "known" (func)) (func unreachable))"#);
    assert!(super::check(&wasm, |module, name| (module, name) == ("host", "known")).is_ok());
}

#[test]
fn loops_nest_so_deep_and_no_deeper() {
    let nested = |depth: usize, beside: usize| {
        let loops = format!("{}{}", "(loop ".repeat(depth), ")".repeat(depth));
        let blocks = format!("{}{}", "(block ".repeat(5000), ")".repeat(5000));
        assemble(&format!(
            "(module (func) (func {blocks} {}))",
            loops.repeat(beside)
        ))
    };
    assert!(check_code(&nested(256, 3)).is_ok());
    let error = check_code(&nested(257, 1)).unwrap_err().to_string();
    assert!(
        error.contains("function 1") && error.contains("nested loops"),
        "{error}"
    );
}
