//! Whose is this live object, and may we take it.

use std::fmt;

use atc_api::flight::owning_flight;
use atc_api::names;
use serde_json::Value;

/// A release as the owner of objects. Printed `<namespace>/<release>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// Target namespace of the release.
    pub namespace: String,
    /// Its name, without a prefix.
    pub release: String,
    /// Uid of the Flight or ClusterFlight that it belongs to. One of the command line may have the same name and
    /// namespace and is another release.
    pub flight: Option<String>,
}

impl Owner {
    /// The release of this name in this namespace.
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
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.release)?;
        match &self.flight {
            Some(_) => f.write_str(" of a Flight"),
            None => Ok(()),
        }
    }
}

/// Why an object can't be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnershipError {
    /// Another release has it.
    #[error("\"{object}\" is owned by release \"{owner}\", not by \"{us}\"")]
    Other {
        /// Canonical name.
        object: String,
        /// Who has it.
        owner: Box<Owner>,
        /// Who wants it.
        us: Box<Owner>,
    },
    /// It exists, and no release has it.
    #[error("\"{object}\" exists already and is owned by no release, so \"{us}\" does not take it")]
    Nobody {
        /// Canonical name.
        object: String,
        /// Who wants it.
        us: Owner,
    },
}

/// The owner that an object's `metadata` names: both annotations, else both labels of old. One alone names nobody. A
/// Flight's is told from another of that name by the owner reference.
pub fn owner_of(metadata: &Value) -> Option<Owner> {
    let text = |map: &str, key: &str| metadata[map][key].as_str().filter(|text| !text.is_empty());
    let pair = |map: &str, namespace: &str, release: &str| {
        Some(Owner::new(text(map, namespace)?, text(map, release)?))
    };
    let named = pair(
        "annotations",
        names::ANNOTATION_NAMESPACE,
        names::ANNOTATION_RELEASE,
    )
    .or_else(|| {
        pair(
            "labels",
            names::LABEL_OLD_NAMESPACE,
            names::LABEL_OLD_RELEASE,
        )
    });
    named.map(|owner| owner.of_flight(owning_flight(metadata)))
}

/// Whether `us` may write an object.
///
/// `object` is its canonical name, for the message; `live` its `metadata` as it is in the cluster, `None` if it does not
/// exist. An existing object that nobody owns is somebody's, too: it is refused like another release's. `force` takes all.
pub fn may_take(
    object: &str,
    live: Option<&Value>,
    us: &Owner,
    force: bool,
) -> Result<(), OwnershipError> {
    let Some(live) = live.filter(|_| !force) else {
        return Ok(());
    };
    match owner_of(live) {
        Some(owner) if owner == *us => Ok(()),
        Some(owner) => Err(OwnershipError::Other {
            object: object.to_owned(),
            owner: Box::new(owner),
            us: Box::new(us.clone()),
        }),
        None => Err(OwnershipError::Nobody {
            object: object.to_owned(),
            us: us.clone(),
        }),
    }
}

/// Whether `us` may delete or orphan an object: only what is its own by now. Another owner, or none, is let be.
pub fn may_prune(live: &Value, us: &Owner) -> bool {
    owner_of(live).as_ref() == Some(us)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn new(namespace: &str, release: &str) -> Value {
        json!({ "annotations": {
            "instance.atc.yoke.cd/namespace": namespace, "instance.atc.yoke.cd/release": release,
        } })
    }

    fn old(namespace: &str, release: &str) -> Value {
        json!({ "labels": {
            "app.kubernetes.io/yoke-release-namespace": namespace, "app.kubernetes.io/yoke-release": release,
        } })
    }

    #[test]
    fn owners() {
        let check = |metadata: &Value, expect: Option<&str>| {
            assert_eq!(
                owner_of(metadata).map(|owner| owner.to_string()).as_deref(),
                expect,
                "{metadata}"
            );
        };
        check(&json!({}), None);
        check(&Value::Null, None);
        check(&new("n", "r"), Some("n/r"));
        check(&new("n", ""), None);
        check(&new("", "r"), None);
        check(&old("n", "r"), Some("n/r"));
        check(&old("n", ""), None);
        // The new form wins over the old one; half of the new one is none of it.
        let both = |new: &Value| json!({ "annotations": new["annotations"], "labels": old("o", "old")["labels"] });
        check(&both(&new("n", "r")), Some("n/r"));
        check(&both(&new("n", "")), Some("o/old"));
        check(
            &json!({ "annotations": { "instance.atc.yoke.cd/release": "r" } }),
            None,
        );
        check(
            &json!({ "annotations": { "instance.atc.yoke.cd/release": 1, "instance.atc.yoke.cd/namespace": 2 } }),
            None,
        );
        check(&json!({ "annotations": "r", "labels": [] }), None);
    }

    #[test]
    fn a_flights_is_not_that_of_a_release_with_its_name() {
        let of = |kind: &str, uid: &str| {
            let mut metadata = new("n", "r");
            metadata["ownerReferences"] = json!([
                { "apiVersion": "v1", "kind": "Flight", "uid": "foreign" },
                { "apiVersion": "yoke.cd/v1alpha1", "kind": kind, "uid": uid },
            ]);
            metadata
        };
        let plain = Owner::new("n", "r");
        let flight = plain.clone().of_flight(Some("u"));
        for kind in ["Flight", "ClusterFlight"] {
            assert!(may_prune(&of(kind, "u"), &flight) && !may_prune(&of(kind, "u"), &plain));
            assert!(!may_prune(&of(kind, "other"), &flight));
            let refused = may_take("o", Some(&of(kind, "u")), &plain, false).unwrap_err();
            assert!(
                refused
                    .to_string()
                    .contains("\"n/r of a Flight\", not by \"n/r\""),
                "{refused}"
            );
        }
        // An Airway's instance is none.
        assert!(may_prune(&of("Airway", "u"), &plain) && !may_prune(&of("Airway", "u"), &flight));
        assert!(!may_prune(&new("n", "r"), &flight));
    }

    #[test]
    fn taking() {
        let us = Owner::new("n", "r");
        let check = |live: Option<&Value>, force: bool, expect: Result<(), &str>| {
            let got = may_take("n/core/v1/configmap/a", live, &us, force)
                .map_err(|error| error.to_string());
            match expect {
                Ok(()) => assert_eq!(got, Ok(())),
                Err(words) => {
                    let message = got.unwrap_err();
                    assert!(
                        message.contains(words)
                            && message.contains("\"n/r\"")
                            && message.contains("n/core/v1/configmap/a"),
                        "{message}"
                    );
                }
            }
        };
        check(None, false, Ok(()));
        check(Some(&new("n", "r")), false, Ok(()));
        check(Some(&old("n", "r")), false, Ok(()));
        check(
            Some(&new("n", "other")),
            false,
            Err("owned by release \"n/other\""),
        );
        check(
            Some(&new("other", "r")),
            false,
            Err("owned by release \"other/r\""),
        );
        check(Some(&json!({})), false, Err("owned by no release"));
        for live in [new("n", "other"), json!({})] {
            check(Some(&live), true, Ok(()));
            assert!(!may_prune(&live, &us));
        }
        assert!(may_prune(&new("n", "r"), &us) && may_prune(&old("n", "r"), &us));
    }
}
