//! The test kit: what a test on a real control plane needs.
//!
//! A test begins with [`Cluster::shared`] (one control plane for all tests of the process) and a [`TempNamespace`];
//! it creates things through [`Cluster::api`], waits with [`eventually`], and looks at the state of the world, or, by
//! [`AuditLog`], at how many calls the atc made. [`Atc`] and [`Yoke`] run the real binaries, [`guest`] gives the
//! modules of the example flights and of `tests/guests`, [`Proxy`] stands between a program and the apiserver and does
//! what bad networks do.

mod airway;
mod api;
mod atc;
mod audit;
mod binaries;
mod cluster;
mod eventually;
mod guests;
mod proxy;
mod registry;
mod yoke;

pub use airway::AirwayBuilder;
pub use api::{Api, Failure, condition, is_ready};
pub use atc::Atc;
pub use audit::{AuditLog, Call};
pub use binaries::{binary, example};
pub use cluster::{Cluster, TempNamespace};
pub use controlplane::FileServer;
pub use eventually::{eventually, never};
pub use guests::guest;
pub use proxy::{Fault, Proxy};
pub use registry::{DockerRegistry, RegistryOptions};
pub use yoke::{Yoke, YokeOutput, YokeRun};
