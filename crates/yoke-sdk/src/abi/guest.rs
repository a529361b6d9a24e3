//! Calls the host, and gives it memory for its answers.
#![expect(
    unsafe_code,
    reason = "a foreign function interface: imports, an exported symbol, and no raw memory access"
)]

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::{Answer, address, pack};

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// See the host's documentation: the state is written only on failure; the answer is a packed buffer.
    fn k8s_lookup(state: *mut u32, name: u64, namespace: u64, kind: u64, api_version: u64) -> u64;
    /// As above.
    fn k8s_rest_mapping(state: *mut u32, api_version: u64, kind: u64) -> u64;
}

unsafe extern "C" {
    /// What the module exports as `malloc`: calls [`yoke_sdk_malloc`]. Written by the build script.
    safe fn yoke_sdk_malloc_entry(size: u32) -> u64;
}

/// Blocks that the host has asked for and that nobody has taken yet, by address.
static BLOCKS: Mutex<BTreeMap<u32, Vec<u8>>> = Mutex::new(BTreeMap::new());

pub(crate) fn lookup(name: &str, namespace: &str, kind: &str, api_version: &str) -> Answer {
    call(|state| {
        // SAFETY: the pointer is good for the whole call, and so are the strings that the packed addresses stand for; the
        // host reads those and writes only the state and blocks from `malloc`.
        unsafe {
            k8s_lookup(
                state,
                packed(name),
                packed(namespace),
                packed(kind),
                packed(api_version),
            )
        }
    })
}

pub(crate) fn rest_mapping(api_version: &str, kind: &str) -> Answer {
    call(|state| {
        // SAFETY: as above.
        unsafe { k8s_rest_mapping(state, packed(api_version), packed(kind)) }
    })
}

fn call(host: impl FnOnce(*mut u32) -> u64) -> Answer {
    // Gives nothing and does nothing, but makes the linker take the export in.
    yoke_sdk_malloc_entry(0);
    let mut state = 0;
    let buffer = host(&raw mut state);
    let body = BLOCKS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(&address(buffer));
    Answer {
        state,
        body: body.unwrap_or_default(),
    }
}

/// A string for the host. Pointers and lengths have 32 bits here.
fn packed(text: &str) -> u64 {
    if text.is_empty() {
        0
    } else {
        pack(
            text.as_ptr() as u32,
            u32::try_from(text.len()).unwrap_or(u32::MAX),
        )
    }
}

/// Memory for an answer of the host; 0 for nothing and when there is none left.
#[unsafe(no_mangle)]
extern "C" fn yoke_sdk_malloc(size: u32) -> u64 {
    let mut block = Vec::new();
    if size == 0 || block.try_reserve_exact(size as usize).is_err() {
        return 0;
    }
    block.resize(size as usize, 0);
    let address = block.as_mut_ptr() as u32;
    BLOCKS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(address, block);
    pack(address, size)
}
