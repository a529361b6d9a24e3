//! Gives a flight its export `malloc`.
//!
//! The host asks the guest for memory through an export that must be called `malloc`, and takes one 32-bit integer to a
//! 64-bit one. The C library that the standard library of wasm32-wasip1 stands on has a symbol of that name and another
//! type, so no Rust function can be called so: the linker would find two. An export's name and a symbol's name are
//! different things in WebAssembly, but Rust has no way to tell them apart. An object file can, and it is small enough to
//! be written here: one function, exported as `malloc`, that calls `yoke_sdk_malloc`.
//!
//! The format is that of <https://github.com/WebAssembly/tool-conventions/blob/main/Linking.md>.

use std::path::PathBuf;
use std::{env, fs};

/// The symbol of the function written here; Rust code calls it so that the linker takes it in.
const ENTRY: &str = "yoke_sdk_malloc_entry";
/// The symbol of the Rust function that does the work.
const WORKER: &str = "yoke_sdk_malloc";

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |key: &str| env::var(key).unwrap_or_default();
    if target("CARGO_CFG_TARGET_ARCH") != "wasm32" || target("CARGO_CFG_TARGET_OS") != "wasi" {
        return Ok(());
    }
    let folder = PathBuf::from(target("OUT_DIR"));
    fs::write(folder.join("libyoke_sdk_malloc.a"), archive(&object()))?;
    println!("cargo::rustc-link-search=native={}", folder.display());
    println!("cargo::rustc-link-lib=static=yoke_sdk_malloc");
    Ok(())
}

fn object() -> Vec<u8> {
    const I32: u8 = 0x7f;
    const I64: u8 = 0x7e;
    // Function 0 is the import, function 1 is ours; both have type 0.
    let types = [1, 0x60, 1, I32, 1, I64];
    let imports = [&[1][..], &name("env"), &name(WORKER), &[0, 0]].concat();
    let functions = [1, 0];
    let exports = [&[1][..], &name("malloc"), &[0, 1]].concat();
    // No locals; local.get 0; call 0, its index five bytes long so that the linker can put in any; end.
    let body = [0, 0x20, 0, 0x10, 0x80, 0x80, 0x80, 0x80, 0, 0x0b];
    let code = [&[1, 10][..], &body].concat();

    // Symbol 0: ours, exported (0x20). Symbol 1: undefined (0x10), named by its import.
    let symbols = [&[2][..], &[0, 0x20, 1], &name(ENTRY), &[0, 0x10, 0]].concat();
    let linking = [&name("linking")[..], &[2], &section(8, &symbols)].concat();
    // In section 4 (code) one relocation: a function index (0) at byte 6 becomes that of symbol 1.
    let relocations = [&name("reloc.CODE")[..], &[4, 1, 0, 6, 1]].concat();

    [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, &types),
        section(2, &imports),
        section(3, &functions),
        section(7, &exports),
        section(10, &code),
        section(0, &linking),
        section(0, &relocations),
    ]
    .concat()
}

/// A section or subsection: its number, its length, its content. All lengths here are under 128, so one byte each.
fn section(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number, small(content.len())], content].concat()
}

fn name(text: &str) -> Vec<u8> {
    [&[small(text.len())], text.as_bytes()].concat()
}

fn small(length: usize) -> u8 {
    match u8::try_from(length) {
        Ok(byte) if byte < 0x80 => byte,
        _ => unreachable!("no part of this object is that long"),
    }
}

/// An archive with one member, in the format of `ar`.
fn archive(object: &[u8]) -> Vec<u8> {
    let header = format!(
        "{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
        "malloc.o/",
        0,
        0,
        0,
        "644",
        object.len()
    );
    let padding: &[u8] = if object.len().is_multiple_of(2) {
        b""
    } else {
        b"\n"
    };
    [b"!<arch>\n", header.as_bytes(), object, padding].concat()
}
