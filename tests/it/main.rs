//! The tests on a real control plane: one binary, one control plane, a namespace for each test.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests; their helpers are not seen as such"
)]

mod examples;
mod kit;
