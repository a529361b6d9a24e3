#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

mod abi;
mod cache;
mod compile;
mod duration;
mod engine;
mod error;
mod figures;
mod heap;
mod host;
mod invocation;
mod limits;
mod loaded;
mod module;
mod output;
mod preamble;
mod runtime;
mod task;
#[cfg(test)]
mod testkit;
mod ticker;

pub use abi::AbiFault;
pub use cache::{CompiledFile, CompiledFiles};
pub use error::{FlightError, FlightErrorKind, TrapReport};
pub use figures::RuntimeFigures;
pub use host::NoCluster;
pub use invocation::{Invocation, Outcome, StderrListener, StderrSink};
pub use limits::{Bound, Bounds};
pub use module::Module;
pub use runtime::{Compiler, ModuleDigest, Runtime, RuntimeOptions};
