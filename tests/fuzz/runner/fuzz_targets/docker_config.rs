//! `docker_config` under cargo-fuzz.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| atc_fuzz::docker_config(data));
