#![doc = include_str!("../README.md")]
//!
//! This crate never sees an HTTP server or a command line. The [`Engine`] is called, and answers; who calls it when is
//! [`queue`]'s, and what goes round for ever is the [`Operator`], or the atc.

pub mod children;
pub mod clock;
pub mod convert;
mod descent;
pub mod disposition;
mod drift;
mod engine;
pub mod error;
pub mod evaluate;
mod hold;
mod host;
pub mod instance;
#[doc(hidden)]
pub mod kept;
mod mayday;
pub mod memory;
#[doc(hidden)]
pub mod objects;
pub mod observer;
pub mod operator;
pub mod prepare;
pub mod queue;
pub mod readiness;
mod recall;
pub mod release;
pub mod status;
mod strays;
mod takeoff;

pub use atc_access as access;
pub use atc_api as api;
pub use atc_artifact as artifact;
pub use atc_flight as flight;
pub use atc_watch as watch;
#[doc(no_inline)]
pub use kube;

pub use descent::{DescentReport, DescentRequest};
pub use disposition::Disposition;
pub use drift::{DriftReport, Drifted, RepairReport, Repaired};
pub use engine::{Engine, EngineOptions, STAGE_WAIT};
pub use error::{EngineError, ErrorKind};
pub use evaluate::{Evaluated, LoadedFlight, Run};
pub use hold::{HOLD_WAIT, HoldRequest};
pub use instance::{InstanceReport, InstanceRequest};
pub use mayday::{MaydayReport, MaydayRequest};
pub use memory::Memory;
pub use observer::{InstanceObserver, NoObserver, Observer, Progress, Watched};
pub use operator::Operator;
pub use readiness::CustomReadiness;
pub use recall::Recalled;
pub use takeoff::{DryRun, Report, TakeoffRequest, Unjudged};
