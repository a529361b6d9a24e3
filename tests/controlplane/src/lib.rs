//! A real Kubernetes control plane as child processes: etcd, kube-apiserver and, where asked for,
//! kube-controller-manager, kube-scheduler and kwok, which plays the kubelet of a fake node.
//!
//! Nothing is downloaded as a binary: all programs are Go modules, pinned by the `go.mod` and `go.sum` files beside
//! this crate, built once into a cache folder of the user (see [`Programs`]). Start at [`ControlPlane::start`], or at
//! [`shared`] for the one that all tests of a process use.
//!
//! Guarantees: ports are free ones of this machine, keys are made anew each time, the user's kubeconfig is never read,
//! and the processes and their folder are gone when the control plane is dropped or the owning process ends, however
//! it ends.
//!
//! This crate knows no Kubernetes client, so that `cargo xtask` starts in seconds.

mod cache;
mod files;
mod fileserver;
mod gobuild;
mod keeper;
mod plane;
mod programs;
mod shared;
mod webhook;

pub use fileserver::FileServer;
pub use keeper::Process;
pub use plane::{Component, ControlPlane, Options};
pub use programs::Programs;
pub use shared::shared;
pub use webhook::AtcService;
