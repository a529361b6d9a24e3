//! A reader of sections that shares no line with the one that is tested.

use std::ops::Range;

/// Magic and version.
pub(crate) const PREAMBLE: &[u8; 8] = b"\0asm\x01\0\0\0";

/// A section of a module.
pub(crate) struct Section<'a> {
    /// All its bytes.
    pub(crate) range: Range<usize>,
    /// Name and data of a custom one.
    pub(crate) custom: Option<(&'a [u8], &'a [u8])>,
}

/// All sections, or nothing if the bytes are no module.
pub(crate) fn read(module: &[u8]) -> Option<Vec<Section<'_>>> {
    let mut rest = module.strip_prefix(PREAMBLE)?;
    let mut sections = Vec::new();
    while let Some((id, after)) = rest.split_first() {
        let start = module.len() - rest.len();
        let (body, behind) = counted(after)?;
        let custom = match id {
            0 => Some(counted(body)?),
            _ => None,
        };
        sections.push(Section {
            range: start..module.len() - behind.len(),
            custom,
        });
        rest = behind;
    }
    Some(sections)
}

/// As many bytes as the number before them says, and what is left.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut value = 0_u64;
    for nth in 0..5 {
        let byte = *bytes.get(nth)?;
        value += u64::from(byte % 128) << (7 * nth);
        if byte < 128 {
            let len = usize::try_from(u32::try_from(value).ok()?).ok()?;
            return bytes[nth + 1..].split_at_checked(len);
        }
    }
    None
}

/// The module without the custom sections of these names, and a new one at its end.
pub(crate) fn replaced(
    module: &[u8],
    names: &[Vec<u8>],
    new: &[u8],
    data: &[u8],
) -> Option<Vec<u8>> {
    let mut out = PREAMBLE.to_vec();
    for section in read(module)? {
        let goes = section
            .custom
            .is_some_and(|(name, _)| names.iter().any(|other| other == name));
        if !goes {
            out.extend_from_slice(&module[section.range]);
        }
    }
    let mut body = number(new.len());
    body.extend_from_slice(new);
    body.extend_from_slice(data);
    out.push(0);
    out.extend(number(body.len()));
    out.extend(body);
    Some(out)
}

fn number(mut value: usize) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let low = value.to_le_bytes()[0] % 128;
        value /= 128;
        if value == 0 {
            out.push(low);
            return out;
        }
        out.push(low + 128);
    }
}
