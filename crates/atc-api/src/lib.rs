//! The words of the Air Traffic Controller: custom resource types, references, conditions, names, and the port for look-ups.
//!
//! This crate does no IO: it knows neither tokio nor a Kubernetes client nor wasmtime. Start at [`airway`]:
//! an [`Airway`] says which flight (a WebAssembly program) makes the resources of a custom resource.
//!
//! - [`airway`], [`flight`]: the custom resources of group `yoke.cd`.
//! - [`condition`]: the `Ready` condition and its closed list of reasons.
//! - [`resource_ref`]: `namespace/Kind.group:name`, how an object is named everywhere here.
//! - [`names`]: every label, annotation, finalizer, field manager and environment variable.
//! - [`host`]: the state numbers of the guest ABI and the [`HostCluster`] port.

pub mod airway;
pub mod condition;
pub mod flight;
pub mod host;
pub mod names;
pub mod resource_ref;

pub use airway::{Airway, AirwayMode, AirwaySpec};
pub use flight::{ClusterFlight, Flight, FlightSpec};
pub use host::{HostCluster, HostFailure, State};
pub use resource_ref::{GroupKind, ResourceRef};
