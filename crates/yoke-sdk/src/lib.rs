//! Write a flight in Rust: read the input, look things up, print resources.
//!
//! A flight is a program for `wasm32-wasip1` that gets a custom resource on stdin and prints the resources that shall
//! exist because of it. It runs again whenever something it has looked up changes, so it is written as if it ran once: what
//! is there, what follows from it.
//!
//! ```no_run
//! use std::process::ExitCode;
//! use yoke_sdk::{Object, Output, Result, json};
//!
//! #[derive(serde::Deserialize)]
//! struct Spec {
//!     greeting: String,
//! }
//!
//! fn main() -> ExitCode {
//!     yoke_sdk::run(flight)
//! }
//!
//! fn flight(greeter: &Object<Spec>) -> Result<Output> {
//!     let mut output = Output::new();
//!     output.push(json!({
//!         "apiVersion": "v1",
//!         "kind": "ConfigMap",
//!         "metadata": { "name": greeter.metadata.name },
//!         "data": { "greeting": greeter.spec.greeting },
//!     }))?;
//!     output.push(greeter.with_status(json!({ "msg": "greeted" })))?;
//!     Ok(output)
//! }
//! ```
//!
//! Look-ups: [`lookup`] by type, [`lookup_as`] by words. What the host tells a flight about itself: [`release`],
//! [`namespace`], [`version`]. Whoever wants to do without [`run`] has [`input`] and [`print()`].
//!
//! Outside WebAssembly everything compiles and everything but the look-ups works, so a flight's logic can be tested with
//! `cargo test`; look-ups give [`LookupError::OutsideHost`].

mod abi;
mod environment;
mod input;
mod lookup;
mod object;
mod output;
mod run;

pub use environment::{namespace, release, version};
pub use input::{InputError, input, input_bytes, parse_input};
pub use lookup::{LookupError, Mapping, Resource, lookup, lookup_as, rest_mapping};
pub use object::{Metadata, Object};
pub use output::{Output, OutputError, print};
pub use run::{Error, Result, run};

#[doc(no_inline)]
pub use serde_json::{Value, json};
