//! Keep all instances of all Airways in their desired state, for ever.
//!
//! Watches, queue, admission webhooks and the life of an Airway, over `atc-engine`, which brings one instance at a time
//! to its desired state. Start at [`run`]. Events enter the house here and nowhere else; what an evaluation decides never
//! depends on why it was woken.
//!
//! This crate never sees a command line or wasmtime.

mod airway;
mod app;
pub mod bootstrap;
mod certificates;
mod control;
pub mod crd;
mod flights;
pub mod health;
mod held;
mod hooks;
mod instances;
mod kinds;
mod leftovers;
mod metrics;
mod modules;
mod overrides;
mod own_crds;
pub mod owner;
mod protect;
mod pull_secret;
mod readiness;
mod review;
mod webhook;
mod webhook_url;

use atc_engine::{objects, queue};

pub use app::{AppError, Settings, run};
pub use atc_engine::artifact::{AllowList, ModulePolicy, PolicyOptions};
pub use atc_engine::error::chain;
pub use atc_engine::release::cluster::{client, config, kubeconfig};
pub use certificates::CertificateError;
pub use tokio_util::sync::CancellationToken as StopToken;
pub use webhook::TlsFiles;
pub use webhook_url::{WebhookUrl, WebhookUrlError};
