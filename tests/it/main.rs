//! The tests on a real control plane: one binary, one control plane, a namespace for each test.
#![expect(
    clippy::unwrap_used,
    reason = "tests; their helpers are not seen as such"
)]
#![allow(
    clippy::too_many_lines,
    clippy::needless_pass_by_value,
    reason = "a test reads as one story, and its helpers take what json! makes"
)]

mod accounts;
mod airway;
mod blackbox;
mod certificates;
mod cli;
mod cosign;
mod crds;
mod deadlines;
mod descent;
mod examples;
mod fields;
mod flights;
mod hooks;
mod instance;
mod interrupted;
mod killed;
mod kit;
mod kubeconfigs;
mod labels;
mod left;
mod letting_go;
mod many;
mod mayday;
mod memory;
mod modes;
mod modules;
mod odd;
mod operator;
mod outage;
mod output;
mod overrides;
mod plan;
mod policy;
mod printed;
mod protect;
mod prune;
mod readiness;
mod recalled;
mod registry;
mod rights;
mod rivals;
mod setbacks;
mod solo;
mod start;
mod status;
mod takeover;
mod terminal;
mod together;
mod tokens;
mod turbulence;
mod unfit;
mod versions;
mod waiting;
mod world;
mod writers;
