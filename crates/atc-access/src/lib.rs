//! May this flight read that, and what has it read?
//!
//! - [`matcher`]: resource access matchers, `namespace/Kind.group:name`.
//! - [`owner`]: whose a live object is.
//! - [`policy`]: [`AccessPolicy::decide`], the one function that says yes or no.
//! - [`ledger`]: what a run has read, for whoever wakes it when that changes.
//! - [`arguments`]: what a guest may ask for at all.
//! - [`reader`]: the port through which the cluster is read.
//! - [`guard`]: the order of deciding and reading, which is the security rule. [`host`]: the host functions on top.
//!
//! This crate does no IO of its own and knows no Kubernetes client, no wasmtime and no tokio: it reads through
//! [`ClusterReader`].
//!
//! # What a flight learns about objects that it may not read
//!
//! That they exist: a look-up of a foreign object is refused as forbidden (state 5), of an absent one answered with not
//! found (state 3), as the existing tool does and its flights expect. Whoever must not learn even names gets no cluster
//! access.

pub mod arguments;
pub mod guard;
pub mod host;
pub mod ledger;
pub mod matcher;
pub mod owner;
pub mod policy;
pub mod reader;

pub use guard::{Guard, GuardError};
pub use host::GuardedHost;
pub use ledger::{Observed, Read, ReadKind, ReadLedger};
pub use matcher::{Matcher, Matchers};
pub use owner::Owner;
pub use policy::{Access, AccessPolicy, Denial, Live};
pub use reader::{ClusterReader, Mapping, ReadFailure};
