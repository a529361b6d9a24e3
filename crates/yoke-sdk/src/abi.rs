//! The guest's side of the ABI: host functions, states, packed buffers.

#[cfg(all(target_arch = "wasm32", target_os = "wasi"))]
mod guest;
#[cfg(not(all(target_arch = "wasm32", target_os = "wasi")))]
mod outside;

#[cfg(all(target_arch = "wasm32", target_os = "wasi"))]
pub(crate) use guest::{lookup, rest_mapping};
#[cfg(not(all(target_arch = "wasm32", target_os = "wasi")))]
pub(crate) use outside::{lookup, rest_mapping};

/// What a host function gave back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// 0 for success, see [`State`].
    pub(crate) state: u32,
    /// The answer, or words about why there is none.
    pub(crate) body: Vec<u8>,
}

/// The host's states. A number that is not listed is treated as [`State::Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ok,
    FeatureNotGranted,
    Error,
    NotFound,
    Unauthenticated,
    Forbidden,
    /// Not a state of the host: there is none.
    OutsideHost,
}

/// The number that stands for [`State::OutsideHost`]; no host gives it.
pub(crate) const OUTSIDE: u32 = u32::MAX;

impl From<u32> for State {
    fn from(number: u32) -> Self {
        match number {
            0 => Self::Ok,
            1 => Self::FeatureNotGranted,
            3 => Self::NotFound,
            4 => Self::Unauthenticated,
            5 => Self::Forbidden,
            OUTSIDE => Self::OutsideHost,
            _ => Self::Error,
        }
    }
}

/// A buffer as the ABI passes it: the address in the high 32 bits, the length in the low ones.
#[cfg_attr(
    not(any(test, target_arch = "wasm32")),
    expect(dead_code, reason = "only a guest has buffers")
)]
pub(crate) const fn pack(address: u32, length: u32) -> u64 {
    ((address as u64) << 32) | length as u64
}

/// The address of a packed buffer.
#[cfg_attr(
    not(any(test, target_arch = "wasm32")),
    expect(dead_code, reason = "only a guest has buffers")
)]
pub(crate) const fn address(buffer: u64) -> u32 {
    (buffer >> 32) as u32
}

#[cfg(test)]
mod tests;
