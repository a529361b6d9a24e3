//! What must hold of every input that comes from outside. Each target takes any bytes; what does not hold is a panic.
//!
//! `cargo xtask fuzz` makes inputs up with cargo-fuzz; the test of this package tries those in `corpus/` in every test run.
//! Where there is a second way to the same answer, it is compared with that one: Go for globs, a reader of sections of our
//! own for modules.

#![expect(
    clippy::missing_panics_doc,
    reason = "all of it is about what holds or panics"
)]

mod glob;
mod keys;
mod module;
mod output;
mod place;
mod registry;
mod sections;

pub use glob::{PATH_MATCH, glob};
pub use keys::{cosign, public_key};
pub use module::{schematics, signature};
pub use output::output;
pub use place::location;
pub use registry::{challenge, docker_config, manifest};

/// A target: its name, which is that of the folder of its inputs, and what is called with an input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 10] = [
    ("challenge", challenge),
    ("cosign", cosign),
    ("docker_config", docker_config),
    ("glob", glob),
    ("location", location),
    ("manifest", manifest),
    ("output", output),
    ("public_key", public_key),
    ("schematics", schematics),
    ("signature", signature),
];

/// The part before the first byte of this value, and the part after it.
fn split(data: &[u8], at: u8) -> (&[u8], &[u8]) {
    match data.iter().position(|byte| *byte == at) {
        Some(place) => (&data[..place], &data[place + 1..]),
        None => (data, &[]),
    }
}
