//! Guest memory: the only file that touches it. Packed buffers, strings, the state word, the guest's `malloc`.
//!
//! Every access is range-checked with checked arithmetic, and a fault is a value that ends the guest, never the host.

use std::ops::Range;

use wasmtime::{AsContext, Caller, Extern, Memory, TypedFunc};

use crate::host::Guest;

/// The bytes of one string argument. Names in a cluster have at most 253, an `apiVersion` 317; 64 KiB is generous, and
/// five of them are all that a call can make us copy.
const STRING_MAX: u32 = 64 << 10;
/// The bytes of one answer. What the cluster's store holds of one object is 1.5 MiB; more than 64 MiB is no answer.
const ANSWER_MAX: usize = 64 << 20;

const MEMORY: &str = "memory";
const MALLOC: &str = "malloc";

/// How a guest broke the ABI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AbiFault {
    /// There is no memory to read arguments from.
    #[error("the module exports no memory named \"memory\"")]
    NoMemory,
    /// An address and length that do not lie in the guest's memory.
    #[error(
        "{what} at address {address:#x} with length {length} is out of bounds of the guest's memory of {size} bytes"
    )]
    OutOfBounds {
        /// What should have been there.
        what: &'static str,
        /// As the guest gave it.
        address: u32,
        /// As the guest gave it.
        length: u32,
        /// The guest's memory, in bytes.
        size: usize,
    },
    /// A string that is too long to be meant.
    #[error("{what} has {length} bytes, over the limit of {STRING_MAX}")]
    StringTooLong {
        /// Which argument.
        what: &'static str,
        /// Its length in bytes.
        length: u32,
    },
    /// There is an answer and no way to hand it over.
    #[error("the module exports no function \"malloc\", which an answer of the host needs")]
    NoMalloc,
    /// `malloc` is there, but not as the ABI says.
    #[error(
        "the module's export \"malloc\" is {found} and not the function (i32) -> i64 that an answer of the host needs"
    )]
    MallocType {
        /// What it is.
        found: String,
    },
    /// `malloc` did not give what it was asked for.
    #[error(
        "\"malloc\" gave {length} bytes at address {address:#x} when asked for {wanted} bytes of memory"
    )]
    MallocShort {
        /// What the host asked for.
        wanted: u32,
        /// What came.
        address: u32,
        /// What came.
        length: u32,
    },
    /// A host function was called while the host waited for `malloc`: this would recurse without end.
    #[error("\"{function}\" was called from within \"malloc\"; nested host calls are not allowed")]
    CalledInMalloc {
        /// The host function.
        function: &'static str,
    },
    /// An answer that fits no guest.
    #[error("the host's answer has {length} bytes, over the limit of {ANSWER_MAX}")]
    AnswerTooLarge {
        /// Its length in bytes.
        length: usize,
    },
    /// `_start` is there, but not as WASI says.
    #[error(
        "the module's export \"_start\" is {found} and not a function without parameters and results"
    )]
    StartType {
        /// What it is.
        found: String,
    },
}

/// An address and a length in one number: the address in the high half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    pub(crate) address: u32,
    pub(crate) length: u32,
}

impl From<u64> for Packed {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the halves are what is wanted"
    )]
    fn from(packed: u64) -> Self {
        Self {
            address: (packed >> 32) as u32,
            length: packed as u32,
        }
    }
}

impl From<Packed> for u64 {
    fn from(packed: Packed) -> Self {
        Self::from(packed.address) << 32 | Self::from(packed.length)
    }
}

impl Packed {
    /// Where that is in a memory of `size` bytes.
    fn within(self, what: &'static str, size: usize) -> Result<Range<usize>, AbiFault> {
        let fault = AbiFault::OutOfBounds {
            what,
            address: self.address,
            length: self.length,
            size,
        };
        let (Ok(start), Ok(length)) = (usize::try_from(self.address), usize::try_from(self.length))
        else {
            return Err(fault);
        };
        match start.checked_add(length) {
            Some(end) if end <= size => Ok(start..end),
            _ => Err(fault),
        }
    }

    /// The bytes there; none for length 0, whatever the address.
    fn read(self, what: &'static str, memory: &[u8]) -> Result<Vec<u8>, AbiFault> {
        if self.length == 0 {
            return Ok(Vec::new());
        }
        if self.length > STRING_MAX {
            return Err(AbiFault::StringTooLong {
                what,
                length: self.length,
            });
        }
        let range = self.within(what, memory.len())?;
        Ok(memory.get(range).unwrap_or_default().to_vec())
    }
}

/// Where the guest wants the state: a `u32` that it has zeroed, and that is written only on error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatePointer(u32);

impl StatePointer {
    const WHAT: &str = "the state";

    fn range(self, size: usize) -> Result<Range<usize>, AbiFault> {
        Packed {
            address: self.0,
            length: 4,
        }
        .within(Self::WHAT, size)
    }

    /// Writes the state, little endian.
    pub(crate) fn write(self, guest: &mut Caller<'_, Guest>, state: u32) -> Result<(), AbiFault> {
        let memory = memory(guest)?;
        let bytes = memory.data_mut(guest);
        let range = self.range(bytes.len())?;
        if let Some(word) = bytes.get_mut(range) {
            word.copy_from_slice(&state.to_le_bytes());
        }
        Ok(())
    }
}

/// All arguments of a host call, copied out of the guest before anything else happens.
pub(crate) fn arguments<const N: usize>(
    guest: &mut Caller<'_, Guest>,
    state: u32,
    strings: [(&'static str, u64); N],
) -> Result<(StatePointer, [Vec<u8>; N]), AbiFault> {
    let memory = memory(guest)?;
    let bytes = memory.data(guest.as_context());
    let state = StatePointer(state);
    state.range(bytes.len())?;
    let mut texts = [const { Vec::new() }; N];
    for (text, (what, packed)) in texts.iter_mut().zip(strings) {
        *text = Packed::from(packed).read(what, bytes)?;
    }
    Ok((state, texts))
}

/// Hands an answer over: asks the guest's `malloc` for room and writes it there. Nothing to say is 0, without asking.
///
/// # Errors
///
/// An [`AbiFault`], or whatever ended the guest inside `malloc`.
pub(crate) async fn give(guest: &mut Caller<'_, Guest>, answer: &[u8]) -> wasmtime::Result<u64> {
    if answer.is_empty() {
        return Ok(0);
    }
    let too_large = AbiFault::AnswerTooLarge {
        length: answer.len(),
    };
    let wanted = match u32::try_from(answer.len()) {
        Ok(wanted) if answer.len() <= ANSWER_MAX => wanted,
        _ => return Err(too_large.into()),
    };
    let malloc = malloc(guest)?;
    guest.data_mut().in_malloc = true;
    let given = malloc.call_async(&mut *guest, wanted).await;
    guest.data_mut().in_malloc = false;
    let given = Packed::from(given.map_err(|error| error.context(InMalloc))?);
    if given.address == 0 || given.length < wanted {
        let fault = AbiFault::MallocShort {
            wanted,
            address: given.address,
            length: given.length,
        };
        return Err(fault.into());
    }
    // The guest may have moved or grown everything meanwhile: the view of its memory is taken anew.
    let memory = memory(guest)?;
    let bytes = memory.data_mut(guest);
    let room = Packed {
        address: given.address,
        length: wanted,
    };
    let range = room.within("the block that malloc gave", bytes.len())?;
    if let Some(block) = bytes.get_mut(range) {
        block.copy_from_slice(answer);
    }
    Ok(room.into())
}

/// Marks an end that the guest came to while the host waited for room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InMalloc;

impl std::fmt::Display for InMalloc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("in the guest's malloc")
    }
}

fn memory(guest: &mut Caller<'_, Guest>) -> Result<Memory, AbiFault> {
    guest
        .get_export(MEMORY)
        .and_then(Extern::into_memory)
        .ok_or(AbiFault::NoMemory)
}

fn malloc(guest: &mut Caller<'_, Guest>) -> Result<TypedFunc<u32, u64>, AbiFault> {
    let export = guest.get_export(MALLOC).ok_or(AbiFault::NoMalloc)?;
    let found = describe(&export, guest.as_context());
    let function = export.into_func().ok_or_else(|| AbiFault::MallocType {
        found: found.clone(),
    })?;
    function
        .typed(guest)
        .map_err(|_| AbiFault::MallocType { found })
}

/// An export in words: `a global`, `a function (i64) -> i32`.
pub(crate) fn describe(export: &Extern, store: impl AsContext) -> String {
    match export {
        Extern::Func(function) => {
            let ty = function.ty(store);
            let list = |types: Vec<String>| types.join(", ");
            let parameters = list(ty.params().map(|ty| ty.to_string()).collect());
            let results = list(ty.results().map(|ty| ty.to_string()).collect());
            format!("a function ({parameters}) -> ({results})")
        }
        Extern::Global(_) => "a global".to_owned(),
        Extern::Table(_) => "a table".to_owned(),
        Extern::Memory(_) | Extern::SharedMemory(_) => "a memory".to_owned(),
        Extern::Tag(_) => "a tag".to_owned(),
    }
}

#[cfg(test)]
mod tests;
