//! Where objects of a kind live in the API: the mapping of a kind to its URL, and paths that no name can break out of.

use atc_api::ResourceRef;
use kube::core::ApiResource;

use crate::object::canonical;

/// A kind as the API server serves it: enough to build the URL of any of its objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// `apps`; empty for core.
    pub group: String,
    /// `v1`.
    pub version: String,
    /// `Deployment`.
    pub kind: String,
    /// `deployments`: the name of the resource in URLs.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Mapping {
    /// `apps/v1`; `v1` for core.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The same in the words of kube's own `Api` and watchers.
    pub fn api_resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.clone(),
            version: self.version.clone(),
            api_version: self.api_version(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
        }
    }

    /// The reference to an object of this kind; the namespace is dropped for cluster-scoped kinds.
    pub fn reference(&self, namespace: &str, name: &str) -> ResourceRef {
        ResourceRef::new(
            if self.namespaced { namespace } else { "" },
            &self.group,
            &self.kind,
            name,
        )
    }

    /// Whether objects of this kind are Secrets, whose content stays out of every text.
    pub(super) fn is_secret(&self) -> bool {
        self.group.is_empty() && self.kind == "Secret"
    }

    /// How an object of this kind is named in messages: `default/apps/v1/deployment/web`, see
    /// [`canonical`].
    pub fn named(&self, namespace: &str, name: &str) -> String {
        canonical(&self.reference(namespace, name), &self.version)
    }

    /// URL path of the collection: of one namespace, or of all when there is none.
    pub(super) fn collection(&self, namespace: Option<&str>) -> Result<String, PathError> {
        let mut path = group_version_path(&self.group, &self.version)?;
        if let Some(namespace) = namespace.filter(|_| self.namespaced) {
            path.push_str("/namespaces/");
            path.push_str(&segment("namespace", namespace)?);
        }
        path.push('/');
        path.push_str(&segment("resource", &self.plural)?);
        Ok(path)
    }

    /// URL path of one object.
    pub(super) fn object(&self, namespace: &str, name: &str) -> Result<String, PathError> {
        let mut path = self.collection(Some(namespace))?;
        path.push('/');
        path.push_str(&segment("name", name)?);
        Ok(path)
    }
}

/// The mapping of Secrets.
pub fn secrets() -> Mapping {
    of_core("Secret", "secrets")
}

/// The mapping of ConfigMaps.
pub fn configmaps() -> Mapping {
    of_core("ConfigMap", "configmaps")
}

fn of_core(kind: &str, plural: &str) -> Mapping {
    Mapping {
        group: String::new(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
    }
}

/// URL path of a group-version's discovery document.
pub(super) fn group_version_path(group: &str, version: &str) -> Result<String, PathError> {
    let version = segment("version", version)?;
    if group.is_empty() {
        Ok(format!("/api/{version}"))
    } else {
        Ok(format!("/apis/{}/{version}", segment("group", group)?))
    }
}

/// A text that can be no part of a URL of the API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{part} {text:?} is empty, or is \".\" or \"..\", or holds \"/\", \"%\" or a control character"
)]
pub(super) struct PathError {
    part: &'static str,
    text: String,
}

/// One path segment, percent-encoded.
///
/// The API server decodes before it routes, so an encoded slash would still change the resource: what Kubernetes
/// refuses as a path segment (`/`, `%`, `.`, `..`) is refused here too, before any request.
pub(super) fn segment(part: &'static str, text: &str) -> Result<String, PathError> {
    let bad = |c: char| matches!(c, '/' | '%') || c.is_control();
    if text.is_empty() || text == "." || text == ".." || text.contains(bad) {
        return Err(PathError {
            part,
            text: text.chars().take(253).collect(),
        });
    }
    Ok(encode(text))
}

/// Percent-encodes everything but unreserved characters and `:`.
pub(super) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                out.push(char::from(byte));
            }
            _ => {
                const HEX: &[u8; 16] = b"0123456789ABCDEF";
                out.push('%');
                out.push(char::from(HEX[usize::from(byte >> 4)]));
                out.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(group: &str, kind: &str, plural: &str, namespaced: bool) -> Mapping {
        Mapping {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced,
        }
    }

    #[test]
    fn paths() {
        let secret = secrets();
        let role = mapping(
            "rbac.authorization.k8s.io",
            "ClusterRole",
            "clusterroles",
            false,
        );
        assert_eq!(
            secret.object("default", "db").as_deref(),
            Ok("/api/v1/namespaces/default/secrets/db")
        );
        assert_eq!(
            role.object("ignored", "system:a b").as_deref(),
            Ok("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:a%20b")
        );
        assert_eq!(secret.collection(None).as_deref(), Ok("/api/v1/secrets"));
        assert_eq!(
            configmaps().object("default", "c").as_deref(),
            Ok("/api/v1/namespaces/default/configmaps/c")
        );
        for bad in ["", ".", "..", "a/b", "../x", "a%2Fb", "a\nb", "a\0"] {
            assert!(secret.object("default", bad).is_err(), "{bad:?}");
            assert!(secret.object(bad, "x").is_err(), "{bad:?}");
        }
        assert_eq!(
            secret.object("default", "a?watch=1#x").as_deref(),
            Ok("/api/v1/namespaces/default/secrets/a%3Fwatch%3D1%23x")
        );
    }

    #[test]
    fn names() {
        assert_eq!(
            mapping("apps", "Deployment", "deployments", true).named("d", "web"),
            "d/apps/v1/deployment/web"
        );
        assert_eq!(
            mapping("", "Namespace", "namespaces", false).named("d", "x"),
            "_/core/v1/namespace/x"
        );
    }
}
