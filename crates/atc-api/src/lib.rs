//! The words of the Air Traffic Controller: custom resource types, references, conditions, names, and the port for look-ups.
//!
//! This crate does no IO: it knows neither tokio nor a Kubernetes client nor wasmtime. Start at [`airway`]:
//! an [`Airway`] says which flight (a WebAssembly program) makes the resources of a custom resource.
//!
//! - [`airway`], [`flight`]: the custom resources of group `yoke.cd`; [`account`]: who a Flight's release acts as.
//! - [`template`]: the CRD inside an Airway; [`duration`], [`settings`]: what spans and numbers in a spec mean.
//! - [`condition`]: the `Ready` condition and its closed list of reasons.
//! - [`resource_ref`]: `namespace/Kind.group:name`, how an object is named everywhere here.
//! - [`names`]: every label, annotation, finalizer, field manager and environment variable.
//! - [`host`]: the state numbers of the guest ABI and the [`HostCluster`] port.

pub mod account;
pub mod airway;
pub mod condition;
pub mod duration;
pub mod flight;
pub mod host;
pub mod names;
pub mod resource_ref;
pub mod settings;
pub mod template;

pub use account::{Account, AccountError};
pub use airway::{Airway, AirwayMode, AirwaySpec, AirwayStatus, PruneOptions, WasmUrls, crds};
pub use condition::{Condition, ConditionStatus, ReadyReason};
pub use duration::GoDuration;
pub use flight::{ClusterFlight, Flight, FlightSpec, FlightStatus, InventoryEntry};
pub use host::{BoxFuture, HostCluster, HostFailure, LookupRequest, RestMappingRequest, State};
pub use resource_ref::{GroupKind, ResourceRef};
pub use template::{Template, TemplateVersion};
