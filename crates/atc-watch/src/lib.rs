//! Who must be woken when a Kubernetes object changes, and which kinds must be watched for that.
//!
//! Start at [`WatchHub`]. It is told what each owner (a controller's unit of work) has read and applied, keeps one
//! metadata watch for each kind among that, and says which owner is due. It keeps no objects, knows no flights and
//! writes nothing; why an owner is due is words for logs, never something to decide by.
//!
//! - [`change`]: what is remembered of an object, and the rule by which one state is newer than another.
//! - [`dependency`]: what an owner depends on, in which [`Role`], and the [`Effect`] of a change.
//! - [`tracker`]: the tables, plain data.
//! - [`hub`]: the tables fed by watches.
//! - [`health`]: how the watches fare.
#![doc = ""]
#![doc = include_str!("../README.md")]

mod backoff;
pub mod change;
pub mod dependency;
mod fault;
pub mod health;
pub mod hub;
mod object;
mod pool;
mod selection;
pub mod tracker;
mod wakes;
mod watch;
mod wire;

pub use change::{Fingerprint, Latest, Seen};
pub use dependency::{
    Cause, Dependency, Effect, Resource, Role, Selection, SelectionDependency, Target, Wake,
};
pub use health::{Fault, FaultKind, WatchHealth, WatchState};
pub use hub::WatchHub;
pub use tracker::{Dependencies, Tracker};
