//! The tests on a real control plane: one binary, one control plane, a namespace for each test.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests; their helpers are not seen as such"
)]

mod airway;
mod cli;
mod examples;
mod instance;
mod killed;
mod kit;
mod modes;
mod outage;
mod output;
mod prune;
mod solo;
mod world;
