//! The names of an instance, and what of it the flight reads.

use atc_api::{GroupKind, ResourceRef};
use atc_release::cluster::Mapping;
use atc_release::ownership::Owner;
use serde_json::Value;

use super::{InstanceSettings, Subject};
use crate::error::EngineError;

/// The names of an instance.
pub(super) struct Identity<'a> {
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
    pub(super) uid: &'a str,
    pub(super) reference: ResourceRef,
    /// The release's name, as the flight and the marks of its objects have it.
    pub(super) release: String,
    /// The same as its record has it.
    pub(super) record: String,
    /// Where its record lives: its own namespace, `default` for cluster scope.
    pub(super) home: &'a str,
}

impl<'a> Identity<'a> {
    pub(super) fn of(object: &'a Value, settings: &InstanceSettings) -> Result<Self, EngineError> {
        let mapping = &settings.mapping;
        let text = |key: &'static str| object.pointer(key).and_then(Value::as_str);
        let name = text("/metadata/name").ok_or(EngineError::Incomplete("metadata.name"))?;
        let uid = text("/metadata/uid").ok_or(EngineError::Incomplete("metadata.uid"))?;
        let namespace = text("/metadata/namespace").unwrap_or_default();
        let reference = mapping.reference(namespace, name);
        let (release, record) = match &settings.subject {
            Subject::Instance { .. } => {
                let release = release_name(mapping, namespace, name);
                (release.clone(), release)
            }
            Subject::Flight { .. } => (name.to_owned(), reference.to_string()),
        };
        Ok(Self {
            name,
            namespace,
            uid,
            reference,
            release,
            record,
            home: home_of(namespace),
        })
    }
}

impl Identity<'_> {
    /// Whose the objects of the release are.
    pub(super) fn owner(&self, settings: &InstanceSettings) -> Owner {
        let uid = settings.subject.is_flight().then_some(self.uid);
        Owner::new(self.home, &self.release).of_flight(uid)
    }
}

/// The namespace of the record of an instance: its own, `default` for one of cluster scope, as in the existing tool.
pub fn home_of(namespace: &str) -> &str {
    if namespace.is_empty() {
        "default"
    } else {
        namespace
    }
}

/// The release of an instance: `<group>.<Kind>[.<namespace>].<name>`.
pub fn release_name(mapping: &Mapping, namespace: &str, name: &str) -> String {
    release_of(&ResourceRef::new(
        namespace,
        &mapping.group,
        &mapping.kind,
        name,
    ))
}

/// The same of the instance that a reference names.
pub(crate) fn release_of(instance: &ResourceRef) -> String {
    let GroupKind { group, kind } = &instance.group_kind;
    let (namespace, name) = (&instance.namespace, &instance.name);
    if namespace.is_empty() {
        format!("{group}.{kind}.{name}")
    } else {
        format!("{group}.{kind}.{namespace}.{name}")
    }
}

/// The flight's input: the object, or what is at the path; `null` where there is nothing.
pub(super) fn input(object: &Value, path: &[String]) -> Vec<u8> {
    let part = path.iter().try_fold(object, |value, key| value.get(key));
    serde_json::to_vec(part.unwrap_or(&Value::Null)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_input_is_the_object_or_a_part_of_it() {
        let object = json!({"spec": {"inner": {"n": 1}}});
        let check = |path: &[&str], expect: &str| {
            let path: Vec<String> = path.iter().map(|&key| key.to_owned()).collect();
            assert_eq!(
                String::from_utf8(input(&object, &path)).expect("text"),
                expect
            );
        };
        check(&[], r#"{"spec":{"inner":{"n":1}}}"#);
        check(&["spec", "inner"], r#"{"n":1}"#);
        check(&["spec", "missing", "deeper"], "null");
    }

    #[test]
    fn releases_are_named_as_by_the_existing_tool() {
        let mapping = Mapping {
            group: "x.dev".into(),
            version: "v1".into(),
            kind: "App".into(),
            plural: "apps".into(),
            namespaced: true,
        };
        assert_eq!(release_name(&mapping, "n", "a"), "x.dev.App.n.a");
        assert_eq!(release_name(&mapping, "", "a"), "x.dev.App.a");
    }
}
