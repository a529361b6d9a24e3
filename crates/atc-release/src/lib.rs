//! Make a Kubernetes cluster hold exactly these resources, with history: parse, decorate, plan, apply, prune, judge readiness, keep revisions.
//!
//! It knows neither WebAssembly nor registries nor webhooks: objects come in as text or as values. Start at [`object`];
//! then, in the order of a takeoff, each step a value of its own until the cluster is touched:
//!
//! - [`desired`]: what a flight printed → [`Stages`](object::Stages), all of it or an error.
//! - [`decorate`]: marks, target namespace, owner references.
//! - [`ownership`]: whose is a live object, and may we take it.
//! - [`history`]: revisions and the Secrets that keep them; which is active, what is pinned.
//! - [`intent`]: what a takeoff under way may have made, and who is at it.
//! - [`plan`]: what to apply, prune and orphan.
//! - [`schema`]: objects whose kind comes with the same output.
//! - [`cluster`]: the only part that talks to a cluster, and performs all that.
//! - [`managed_fields`]: whose are the fields of a live object, and how they become ours.
//! - [`readiness`]: is a live object ready, and what does that rest on.
//! - [`drift`]: objects as text and as diffs.

pub mod cluster;
pub mod decorate;
pub mod desired;
pub mod drift;
pub mod history;
pub mod intent;
pub mod managed_fields;
pub mod object;
pub mod owned_fields;
pub mod ownership;
pub mod plan;
pub mod readiness;
pub mod schema;
