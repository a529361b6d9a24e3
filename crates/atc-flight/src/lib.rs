//! Run one WebAssembly program on one input within bounds: the guest ABI, its limits, and a precompiled-module cache.
