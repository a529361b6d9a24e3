//! Whose a live object is: the marks that a release leaves on what it applies.

use std::fmt;

use atc_api::flight::owning_flight;
use atc_api::names;
use serde_json::Value;

/// A release, as the owner of objects. Printed `namespace/release`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The release's target namespace.
    pub namespace: String,
    /// Its name as its flight sees it, without the prefix of generic flights.
    pub release: String,
    /// Uid of the Flight or ClusterFlight that it belongs to; another release may have the same name.
    pub flight: Option<String>,
}

impl Owner {
    /// The owner with this target namespace and name.
    pub fn new(namespace: impl Into<String>, release: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            release: release.into(),
            flight: None,
        }
    }

    /// The same of a Flight or ClusterFlight with this uid.
    #[must_use]
    pub fn of_flight(mut self, uid: Option<&str>) -> Self {
        self.flight = uid.map(str::to_owned);
        self
    }

    /// Who owns this object: by its two annotations, else by the two labels of older releases of the existing tool.
    /// Nobody, unless both marks of a pair are there and not empty.
    pub fn of(object: &Value) -> Option<Self> {
        let marks = |of: &str, namespace: &str, release: &str| {
            let marks = object.get("metadata")?.get(of)?;
            let mark = |name| marks.get(name).and_then(Value::as_str).unwrap_or_default();
            Some(Self::new(mark(namespace), mark(release))).filter(Self::is_somebody)
        };
        let owner = marks(
            "annotations",
            names::ANNOTATION_NAMESPACE,
            names::ANNOTATION_RELEASE,
        )
        .or_else(|| {
            marks(
                "labels",
                names::LABEL_OLD_NAMESPACE,
                names::LABEL_OLD_RELEASE,
            )
        });
        owner.map(|owner| owner.of_flight(object.get("metadata").and_then(owning_flight)))
    }

    /// Both parts are there. An owner that lacks one is nobody, and nobody owns nothing.
    pub fn is_somebody(&self) -> bool {
        !self.namespace.is_empty() && !self.release.is_empty()
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.release)
    }
}

#[cfg(test)]
mod tests;
