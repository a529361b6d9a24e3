//! Who is woken: the process itself, an Airway or one of its instances. The key of the queue and of the watches.

use std::fmt;
use std::sync::Arc;

use atc_api::ResourceRef;

use crate::queue::Keyed;

/// The lane of all Airways: few, and never held up by instances.
pub const AIRWAYS: &str = "airways.yoke.cd";

/// A key of the queue and of the watches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The process, for the webhook configurations that stand as long as it runs.
    Process,
    /// An Airway, by name.
    Airway(Arc<str>),
    /// An instance of an Airway's kind.
    Instance {
        /// The Airway's name.
        airway: Arc<str>,
        /// The instance.
        target: ResourceRef,
    },
}

impl Keyed for Owner {
    fn lane(&self) -> &str {
        match self {
            Self::Process | Self::Airway(_) => AIRWAYS,
            Self::Instance { airway, .. } => airway,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process => f.write_str("atc"),
            Self::Airway(name) => write!(f, "/Airway.yoke.cd:{name}"),
            Self::Instance { target, .. } => target.fmt(f),
        }
    }
}
