//! Commands that work on a module: schematics, sign, verify, and takeoffs of proven modules only.

use std::path::PathBuf;

use crate::{Home, printer};

/// Keys made for tests, with which the modules of the artifact library's tests are signed.
fn key(name: &str) -> String {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../crates/atc-artifact/src/signature/golden"
    );
    format!("{folder}/{name}")
}

/// A custom section with a short name and short content.
fn custom(name: &str, data: &[u8]) -> Vec<u8> {
    let short = |len: usize| u8::try_from(len).expect("short");
    let head = [0, short(1 + name.len() + data.len()), short(name.len())];
    [&head, name.as_bytes(), data].concat()
}

fn read(path: &PathBuf) -> Vec<u8> {
    std::fs::read(path).expect("file")
}

#[test]
fn schematics_are_set_listed_and_got() {
    let home = Home::bare();
    let module = printer(b"[]", b"", "", 0);
    let file = home.put("m.wasm", &module);
    let meta = |words: &[&str], stdin: &[u8]| {
        home.yoke_with(&[&["schematics", "-wasm", "m.wasm"], words].concat(), stdin)
    };
    assert_eq!(meta(&["ls"], b"").ok(), "");
    let content = b"line one\n\xff\0two";
    meta(&["set", "docs"], content).ok();
    assert_eq!(
        read(&file),
        [module.clone(), custom("yoke.schematics:docs", content)].concat()
    );
    assert_eq!(meta(&["get", "docs"], b"").stdout(), content);
    meta(&["set", "abc"], b"x").ok();
    meta(&["set", "docs"], b"y").ok();
    assert_eq!(meta(&["ls"], b"").ok(), "abc\ndocs\n");
    let tail = [
        custom("yoke.schematics:abc", b"x"),
        custom("yoke.schematics:docs", b"y"),
    ]
    .concat();
    assert_eq!(read(&file), [module, tail].concat());
}

#[test]
fn a_command_is_run_and_its_failure_is_named() {
    let home = Home::bare();
    for (code, expect) in [(0, Ok("the schema")), (3, Err("exit_code(3): the reason"))] {
        home.put("m.wasm", printer(b"the schema", b"the reason\n", "", code));
        let meta = |words: &[&str], stdin: &str| {
            home.yoke_with(&[&["meta", "-wasm=m.wasm"], words].concat(), stdin)
        };
        meta(&["set", "-cmd", "schema"], "[-schema]").ok();
        let got = meta(&["get", "schema"], "");
        match expect {
            Ok(printed) => assert_eq!(got.ok(), printed),
            Err(words) => drop(got.failed(1, &["\"schema\"", words])),
        }
    }
}

#[test]
fn schematics_that_cannot_be() {
    let home = Home::bare();
    let was = printer(b"[]", b"", "", 0);
    let file = home.put("m.wasm", &was);
    home.put("text", "text");
    let meta = |module: &str, words: &[&str], stdin: &str, expect: &[&str]| {
        home.yoke_with(&[&["schematics", "-wasm", module], words].concat(), stdin)
            .failed(1, expect);
    };
    meta("m.wasm", &["set", "a"], "", &["'a' is empty"]);
    meta("m.wasm", &["set", "-cmd", "a"], "", &["list of words"]);
    meta(
        "m.wasm",
        &["set", "-cmd", "a"],
        "{a: 1}",
        &["list of words"],
    );
    meta("m.wasm", &["get", "gone"], "", &["'gone'"]);
    meta(
        "m.wasm",
        &["get"],
        "",
        &["name of the schematic is missing"],
    );
    meta("m.wasm", &["ls", "a"], "", &["too much"]);
    meta(
        "http://127.0.0.1:1/m.wasm",
        &["set", "a"],
        "x",
        &["no local file"],
    );
    meta("text", &["ls"], "", &["no WebAssembly module"]);
    meta("text", &["set", "a"], "x", &["no WebAssembly module"]);
    meta(
        "gone.wasm",
        &["set", "a"],
        "x",
        &["cannot read \"gone.wasm\""],
    );
    assert_eq!(read(&file), was);
    assert_eq!(read(&home.path().join("text")), b"text");
    home.yoke(&["schematics", "ls"]).failed(1, &["wasm"]);
}

#[test]
fn signed_verified_and_signed_again() {
    let home = Home::bare();
    let module = printer(b"[]", b"", "", 0);
    let file = home.put("m.wasm", &module);
    for name in ["rsa2048", "p256", "ed25519"] {
        let (private, public) = (key(&format!("{name}.pem")), key(&format!("{name}.pub.pem")));
        home.put("m.wasm", &module);
        let verify = |key: &str, file: &str| home.yoke(&["verify", "-key", key, file]);
        verify(&public, "m.wasm").failed(1, &["m.wasm", "unsigned"]);
        home.yoke(&["sign", "-key", &private, "-o", "s.wasm", "m.wasm"])
            .ok();
        assert_eq!(read(&file), module);
        verify(&public, "s.wasm").ok();
        verify(&private, "s.wasm").ok();
        verify(&key("p384.pub.pem"), "s.wasm").failed(1, &["fingerprint"]);
        let once = read(&home.path().join("s.wasm"));
        home.yoke(&["sign", "-key", &private, "s.wasm"])
            .failed(1, &["already signed", "hint: -f"]);
        assert_eq!(read(&home.path().join("s.wasm")), once);
        home.yoke(&["sign", "-f", "-key", &private, "s.wasm"]).ok();
        verify(&public, "s.wasm").ok();
        home.put("forged.wasm", [once, custom("added", b"later")].concat());
        verify(&public, "forged.wasm").failed(1, &["invalid signature"]);
    }
    // What is set afterwards is not under the signature.
    let said = home.yoke_with(&["schematics", "-wasm", "s.wasm", "set", "docs"], "x");
    said.ok();
    assert!(
        said.stderr()
            .contains("signature of \"s.wasm\" does not hold"),
        "{}",
        said.stderr()
    );
}

#[test]
fn keys_that_are_none() {
    let home = Home::bare();
    home.put("m.wasm", printer(b"[]", b"", "", 0));
    home.put("text.pem", "text");
    std::fs::create_dir(home.path().join("empty")).expect("folder");
    let check = |words: &[&str], expect: &[&str]| {
        let stderr = home.yoke(words).failed(1, expect);
        assert!(!stderr.contains("BEGIN"), "{stderr}");
    };
    check(
        &["sign", "-key", "text.pem", "m.wasm"],
        &["text.pem", "no PEM block"],
    );
    check(
        &["sign", "-key", &key("p256.pub.pem"), "m.wasm"],
        &["needs the private key"],
    );
    check(&["sign", "-key", "gone.pem", "m.wasm"], &["gone.pem"]);
    check(
        &["verify", "-key", "empty", "m.wasm"],
        &["no key in folder \"empty\""],
    );
    check(
        &["verify", "-key", "text.pem", "m.wasm"],
        &["text.pem", "no PEM block"],
    );
    check(&["verify", "m.wasm"], &["key"]);
}

/// A link stays one, and so do the permissions of the file that it leads to.
#[cfg(unix)]
#[test]
fn a_file_is_replaced_as_it_was() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let home = Home::bare();
    let file = home.put("real/m.wasm", printer(b"[]", b"", "", 0));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o751)).expect("mode");
    symlink("real/m.wasm", home.path().join("m.wasm")).expect("link");
    home.yoke(&["sign", "-key", &key("p256.pem"), "m.wasm"])
        .ok();
    let link = std::fs::symlink_metadata(home.path().join("m.wasm")).expect("link");
    assert!(link.is_symlink());
    let mode = std::fs::metadata(&file).expect("file").permissions().mode();
    assert_eq!(mode & 0o777, 0o751);
    home.yoke(&["verify", "-key", &key("p256.pub.pem"), "real/m.wasm"])
        .ok();
}

#[test]
fn a_takeoff_runs_only_what_is_proven() {
    let home = Home::bare();
    home.put("bare.wasm", printer(b"[]", b"ran\n", "", 0));
    home.put(
        "keys/a/right.pem",
        std::fs::read(key("ed25519.pub.pem")).expect("key"),
    );
    home.put("keys/notes.txt", "no key");
    home.yoke(&[
        "sign",
        "-key",
        &key("ed25519.pem"),
        "-o",
        "signed.wasm",
        "bare.wasm",
    ])
    .ok();
    let takeoff =
        |key: &str, file: &str| home.yoke(&["takeoff", "-stdout", "-verify", key, "r", file]);
    assert_eq!(takeoff("keys", "signed.wasm").ok(), "[]");
    for (key, file, words) in [
        ("keys", "bare.wasm", "unsigned"),
        (&key("p256.pub.pem"), "signed.wasm", "fingerprint"),
        ("gone", "signed.wasm", "\"gone\""),
    ] {
        let stderr = takeoff(key, file).failed(1, &[words]);
        assert!(!stderr.contains("ran"), "{stderr}");
    }
}
