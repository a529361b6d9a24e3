use proptest::prelude::*;

use super::*;

/// A module of a type section and a custom one, both with lengths padded as Go pads them.
pub(crate) fn module() -> Vec<u8> {
    let mut out = PREAMBLE.to_vec();
    out.extend_from_slice(b"\x01\x84\x80\x80\x80\x00\x01\x60\x00\x00");
    out.extend_from_slice(b"\x00\x87\x80\x80\x80\x00\x84\x00abcde");
    out
}

fn with(tail: &[u8]) -> Vec<u8> {
    [&PREAMBLE, tail].concat()
}

fn read(module: &[u8]) -> Result<Vec<(String, Vec<u8>)>, SectionError> {
    custom_sections(module)?
        .map(|section| {
            section.map(|section| {
                let name = String::from_utf8_lossy(section.name).into_owned();
                (name, section.data.to_vec())
            })
        })
        .collect()
}

#[test]
fn custom_sections_are_found_among_the_others() {
    let check = |tail: &[u8], expect: &[(&str, &[u8])]| {
        let found = read(&with(tail)).unwrap();
        let found: Vec<_> = found.iter().map(|(n, d)| (n.as_str(), &d[..])).collect();
        assert_eq!(found, expect, "{tail:?}");
    };
    check(b"", &[]);
    check(b"\x01\x04\x01\x60\x00\x00", &[]);
    check(b"\x00\x03\x01ax", &[("a", b"x")]);
    check(b"\x00\x01\x00", &[("", b"")]);
    check(
        b"\x00\x02\x01a\x01\x00\x00\x02\x01b",
        &[("a", b""), ("b", b"")],
    );
    check(b"\x00\x83\x80\x80\x80\x00\x01ax", &[("a", b"x")]);
    check(b"\x00\x02\x01\xff", &[("\u{fffd}", b"")]);
    assert_eq!(read(&module()).unwrap(), [("abcd".into(), b"e".to_vec())]);
}

#[test]
fn what_is_no_module_is_told() {
    let check = |bytes: &[u8], expect: SectionError| {
        assert_eq!(read(bytes).unwrap_err(), expect, "{bytes:?}");
    };
    check(b"", SectionError::NotAModule);
    check(b"text", SectionError::NotAModule);
    check(b"\0as", SectionError::NotAModule);
    check(b"\0asm", SectionError::Version);
    check(b"\0asm\x0d\0\x01\0", SectionError::Version);
    check(b"\x1f\x8b\x08", SectionError::Gzip);
}

#[test]
fn hostile_lengths_are_errors() {
    let cut = |at, wanted, left| SectionError::CutOff { at, wanted, left };
    let check = |tail: &[u8], expect: SectionError| {
        assert_eq!(read(&with(tail)).unwrap_err(), expect, "{tail:?}");
    };
    check(b"\x00", SectionError::Length { at: 9 });
    check(b"\x01\x80", SectionError::Length { at: 9 });
    check(
        b"\x01\x80\x80\x80\x80\x80\x00",
        SectionError::Length { at: 9 },
    );
    check(b"\x01\xff\xff\xff\xff\x1f", SectionError::Length { at: 9 });
    check(b"\x01\xff\xff\xff\xff\x0f", cut(9, u32::MAX, 0));
    check(b"\x01\x05abcd", cut(9, 5, 4));
    // The name must end within its section, though there are bytes behind it.
    check(b"\x00\x02\x02a\x01\x00", cut(10, 2, 1));
    check(b"\x00\x00\x01\x00", SectionError::Length { at: 10 });
    check(b"\x00\x01\x80\x00", SectionError::Length { at: 10 });
}

#[test]
fn after_an_error_nothing_comes() {
    let bytes = with(b"\x00\x05a");
    let mut sections = custom_sections(&bytes).unwrap();
    assert!(sections.next().unwrap().is_err());
    assert!(sections.next().is_none());
}

#[test]
fn bytes_of_others_stay() {
    let was = module();
    let mut now = was.clone();
    append(&mut now, "x", b"1").unwrap();
    append(&mut now, "y", &[7; 200]).unwrap();
    assert_eq!(now.strip_prefix(&was[..]).unwrap()[..5], *b"\x00\x03\x01x1");
    let without_x = without(&now, |section| section.name == b"x").unwrap();
    assert_eq!(read(&without_x).unwrap().len(), 2);
    assert_eq!(
        without(&without_x, |section| section.name == b"y").unwrap(),
        was
    );
    assert_eq!(without(&was, |_| false).unwrap(), was);
}

proptest! {
    #[test]
    fn no_bytes_panic(tail in prop::collection::vec(any::<u8>(), 0..64)) {
        let module = with(&tail);
        let _ = read(&module);
        let _ = read(&tail);
        let _ = without(&module, |section| section.name.is_empty());
    }

    #[test]
    fn what_is_appended_is_read_and_cut_out(
        sections in prop::collection::vec((".{0,9}", prop::collection::vec(any::<u8>(), 0..300)), 0..6),
        cut in ".{0,2}",
    ) {
        let mut module = module();
        for (name, data) in &sections {
            append(&mut module, name, data).unwrap();
        }
        let mut expect = vec![("abcd".to_owned(), b"e".to_vec())];
        expect.extend(sections);
        prop_assert_eq!(read(&module).unwrap(), expect.clone());
        expect.retain(|(name, _)| *name != cut);
        let rest = without(&module, |section| section.name == cut.as_bytes()).unwrap();
        prop_assert_eq!(read(&rest).unwrap(), expect);
    }
}
