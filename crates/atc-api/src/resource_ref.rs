//! `namespace/Kind.group:name`: how an object is named in matchers, marks, inventories and messages.
//!
//! The version is no part of it: an object that moves from `v1beta1` to `v1` stays the same object.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A kind without its version. The core group is the empty string.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupKind {
    /// `apps`; empty for core.
    pub group: String,
    /// `Deployment`.
    pub kind: String,
}

impl GroupKind {
    /// A kind of a group.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            kind: kind.into(),
        }
    }

    /// The kind of an object that says `apiVersion` and `kind`; `apps/v1` is of group `apps`, `v1` of core.
    pub fn of(api_version: &str, kind: &str) -> Self {
        Self::new(
            api_version.rsplit_once('/').map_or("", |(group, _)| group),
            kind,
        )
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

/// One object of the cluster, by group, kind, namespace and name.
///
/// Printed `default/Deployment.apps:web`, `default/Secret:db` (core has no group), `/Namespace:x` (cluster scope has no
/// namespace, but its slash).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ResourceRef {
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Group and kind.
    pub group_kind: GroupKind,
    /// `metadata.name`.
    pub name: String,
}

impl ResourceRef {
    /// A reference from its four parts.
    pub fn new(
        namespace: impl Into<String>,
        group: impl Into<String>,
        kind: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            group_kind: GroupKind::new(group, kind),
            name: name.into(),
        }
    }
}

impl fmt::Display for ResourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:{}", self.namespace, self.group_kind, self.name)
    }
}

impl From<ResourceRef> for String {
    fn from(value: ResourceRef) -> Self {
        value.to_string()
    }
}

impl TryFrom<String> for ResourceRef {
    type Error = ParseResourceRefError;

    fn try_from(value: String) -> Result<Self, Self::Error> {
        value.parse()
    }
}

/// Why a text is no reference to an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no resource reference: {why}; write it as namespace/Kind.group:name")]
pub struct ParseResourceRefError {
    text: String,
    why: &'static str,
}

impl FromStr for ResourceRef {
    type Err = ParseResourceRefError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |why| ParseResourceRefError {
            text: text.to_owned(),
            why,
        };
        let (namespace, rest) = text.split_once('/').unwrap_or(("", text));
        let (group_kind, name) = rest.split_once(':').ok_or_else(|| fail("it has no name"))?;
        let (kind, group) = group_kind.split_once('.').unwrap_or((group_kind, ""));
        if kind.is_empty() {
            return Err(fail("it has no kind"));
        }
        if name.is_empty() {
            return Err(fail("its name is empty"));
        }
        Ok(Self::new(namespace, group, kind, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<ResourceRef, &str>) {
        match (text.parse::<ResourceRef>(), expect) {
            (Ok(got), Ok(want)) => {
                assert_eq!(got, want);
                assert_eq!(
                    got.to_string().trim_start_matches('/'),
                    text.trim_start_matches('/')
                );
            }
            (Err(got), Err(want)) => assert!(got.to_string().contains(want), "{got}"),
            (got, want) => panic!("{text}: {got:?} instead of {want:?}"),
        }
    }

    #[test]
    fn parses_and_prints() {
        check(
            "default/Deployment.apps:web",
            Ok(ResourceRef::new("default", "apps", "Deployment", "web")),
        );
        check(
            "default/Secret:db",
            Ok(ResourceRef::new("default", "", "Secret", "db")),
        );
        check(
            "/Namespace:x",
            Ok(ResourceRef::new("", "", "Namespace", "x")),
        );
        check(
            "/App.a.b.dev:n.with.dots",
            Ok(ResourceRef::new("", "a.b.dev", "App", "n.with.dots")),
        );
        check(
            "a/ClusterRole.rbac.authorization.k8s.io:system:admin",
            Ok(ResourceRef::new(
                "a",
                "rbac.authorization.k8s.io",
                "ClusterRole",
                "system:admin",
            )),
        );
        check("a/B", Err("no name"));
        check("a/:n", Err("no kind"));
        check("a/B:", Err("name is empty"));
    }
}
