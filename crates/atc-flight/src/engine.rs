//! How wasmtime is set up: which WebAssembly a flight may be written in, how deep it may call, and what a compile gives.

use wasmtime::{Config, Engine, Strategy, WasmBacktraceDetails, WasmFeatures};

use crate::runtime::Compiler;

/// What today's compilers emit for `wasip1`, and what the existing tool's engine accepts: WebAssembly 2.0 with constant
/// expressions extended. Threads, 64-bit memory, several memories, garbage collection and exceptions are refused: the
/// ABI has no use for them, and each is a surface of its own.
const FEATURES: WasmFeatures = WasmFeatures::MUTABLE_GLOBAL
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::SIMD)
    .union(WasmFeatures::FLOATS)
    .union(WasmFeatures::EXTENDED_CONST);

/// Bytes of native stack that a guest may use: some 80,000 small frames. Go's own goroutine stacks lie in its memory,
/// but its calls nest here as well, and 10,000 of them must fit.
const GUEST_STACK: usize = 4 << 20;
/// Bytes of native stack above the guest's for the host functions it calls last.
const HOST_STACK: usize = 2 << 20;

/// The engine of a [`Runtime`](crate::Runtime).
pub(crate) fn new(compiler: Compiler) -> wasmtime::Result<Engine> {
    match compiler {
        Compiler::Fast => Engine::new(&config()),
        // Winch knows some processors only (with AVX, on x86-64): elsewhere the same compiler as ever, in a hurry.
        Compiler::Quick if cfg!(target_arch = "x86_64") => {
            Engine::new(config().strategy(Strategy::Winch)).or_else(|_| hurried())
        }
        Compiler::Quick => hurried(),
    }
}

fn hurried() -> wasmtime::Result<Engine> {
    Engine::new(config().cranelift_opt_level(wasmtime::OptLevel::None))
}

fn config() -> Config {
    let mut config = Config::new();
    config
        .wasm_features(WasmFeatures::all(), false)
        .wasm_features(FEATURES, true)
        .epoch_interruption(true)
        .max_wasm_stack(GUEST_STACK)
        .async_stack_size(GUEST_STACK + HOST_STACK)
        // Names of functions, never source lines: those would be read from the guest's own debug sections, and an
        // environment variable of ours would switch them on.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        // Both serve debuggers and offsets in traces only, and are a quarter of a compiled module.
        .generate_address_map(false)
        .native_unwind_info(false);
    config
}
