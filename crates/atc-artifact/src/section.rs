//! Custom sections of a WebAssembly module by their exact bytes: read, cut out, appended. All other bytes stay as they
//! are, however they are encoded, so that digests and signatures of them keep holding. What the other sections mean is
//! not looked at.

use std::ops::Range;

/// Magic and version of a core module.
const PREAMBLE: [u8; 8] = *b"\0asm\x01\0\0\0";

/// The id of a custom section.
const CUSTOM: u8 = 0;

/// A custom section of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CustomSection<'a> {
    /// Its name; UTF-8 in every module that compiles.
    pub(crate) name: &'a [u8],
    pub(crate) data: &'a [u8],
    /// All its bytes in the module: id, size, name and data.
    pub(crate) range: Range<usize>,
}

/// Why the sections of a module cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SectionError {
    /// It does not begin as a module does.
    #[error("this is no WebAssembly module: it does not begin with the bytes '\\0asm'")]
    NotAModule,
    /// It is packed.
    #[error("this is no WebAssembly module but a gzip stream: unpack it first")]
    Gzip,
    /// A component, or a version that is not known.
    #[error("this is no WebAssembly module of version 1 (components cannot be used)")]
    Version,
    /// A length is not written as one.
    #[error("the module is damaged: the length at byte {at} cannot be read")]
    Length {
        /// Where.
        at: usize,
    },
    /// A section, or the name of one, is longer than what is left.
    #[error("the module is damaged: {wanted} bytes are announced at byte {at} and {left} are left")]
    CutOff {
        /// Where the length stands.
        at: usize,
        /// The length.
        wanted: u32,
        /// What there is.
        left: usize,
    },
    /// The new section cannot be written: a section has fewer than 2^32 bytes.
    #[error("a section of {len} bytes cannot be written: 4 GiB is the limit")]
    TooLong {
        /// Bytes of its name and data.
        len: usize,
    },
}

/// The custom sections of a module in their order. After an error it ends.
pub(crate) struct CustomSections<'a> {
    module: &'a [u8],
    at: usize,
}

/// Begins to read the custom sections of a module.
pub(crate) fn custom_sections(module: &[u8]) -> Result<CustomSections<'_>, SectionError> {
    match module {
        _ if module.starts_with(&PREAMBLE) => Ok(CustomSections {
            module,
            at: PREAMBLE.len(),
        }),
        [b'\0', b'a', b's', b'm', ..] => Err(SectionError::Version),
        [0x1f, 0x8b, ..] => Err(SectionError::Gzip),
        _ => Err(SectionError::NotAModule),
    }
}

impl<'a> CustomSections<'a> {
    /// The next section if it is a custom one, `None` if it is another one. Moves on in any case.
    fn section(&mut self) -> Result<Option<CustomSection<'a>>, SectionError> {
        let start = self.at;
        let id = self.module.get(start).copied();
        let body = content(self.module, start + 1, self.module.len())?;
        self.at = body.end;
        if id != Some(CUSTOM) {
            return Ok(None);
        }
        let name = content(self.module, body.start, body.end)?;
        let bytes = |range: Range<usize>| self.module.get(range).unwrap_or_default();
        Ok(Some(CustomSection {
            data: bytes(name.end..body.end),
            name: bytes(name),
            range: start..body.end,
        }))
    }
}

impl<'a> Iterator for CustomSections<'a> {
    type Item = Result<CustomSection<'a>, SectionError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.module.len() {
            match self.section() {
                Ok(None) => {}
                Ok(Some(section)) => return Some(Ok(section)),
                Err(error) => {
                    self.at = self.module.len();
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

/// The module without the custom sections that `cut` names.
pub(crate) fn without(
    module: &[u8],
    cut: impl Fn(&CustomSection<'_>) -> bool,
) -> Result<Vec<u8>, SectionError> {
    let mut out = Vec::with_capacity(module.len());
    let mut kept = 0;
    for section in custom_sections(module)? {
        let section = section?;
        if cut(&section) {
            out.extend_from_slice(module.get(kept..section.range.start).unwrap_or_default());
            kept = section.range.end;
        }
    }
    out.extend_from_slice(module.get(kept..).unwrap_or_default());
    Ok(out)
}

/// Puts a custom section at the end of a module.
pub(crate) fn append(module: &mut Vec<u8>, name: &str, data: &[u8]) -> Result<(), SectionError> {
    let mut head = Vec::with_capacity(name.len() + 5);
    write_length(&mut head, name.len())?;
    head.extend_from_slice(name.as_bytes());
    module.push(CUSTOM);
    let len = head.len().saturating_add(data.len());
    if let Err(error) = write_length(module, len) {
        module.pop();
        return Err(error);
    }
    module.extend_from_slice(&head);
    module.extend_from_slice(data);
    Ok(())
}

/// The bytes after the length that stands at `at`, as many as it says, which must end before `end`.
fn content(module: &[u8], at: usize, end: usize) -> Result<Range<usize>, SectionError> {
    let (len, start) = length(module, at, end)?;
    let left = end - start;
    match usize::try_from(len) {
        Ok(size) if size <= left => Ok(start..start + size),
        _ => Err(SectionError::CutOff {
            at,
            wanted: len,
            left,
        }),
    }
}

/// A length in LEB128, in at most five bytes (compilers pad), and where it ends; not beyond `end`.
fn length(module: &[u8], at: usize, end: usize) -> Result<(u32, usize), SectionError> {
    let mut value = 0_u32;
    let bytes = module.get(at..end).unwrap_or_default();
    for (nth, byte) in (0_u32..5).zip(bytes) {
        let bits = u32::from(byte & 0x7f);
        let shifted = bits << (7 * nth);
        if shifted >> (7 * nth) != bits {
            break;
        }
        value |= shifted;
        if byte & 0x80 == 0 {
            return Ok((value, at + nth as usize + 1));
        }
    }
    Err(SectionError::Length { at })
}

/// Writes a length in as few bytes as it takes.
fn write_length(out: &mut Vec<u8>, len: usize) -> Result<(), SectionError> {
    let mut rest = u32::try_from(len).map_err(|_| SectionError::TooLong { len })?;
    while rest > 0x7f {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push((rest & 0x7f) as u8);
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
