//! What a flight printed → the stages to apply, decorated, and the parent's own status.

use std::collections::HashSet;

use atc_api::ResourceRef;
use atc_release::decorate::{self, Decoration};
use atc_release::desired;
use atc_release::object::{Object, Stages};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::status;

/// Desired resources, ready to be applied.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Decorated stages, without the parent.
    pub stages: Stages,
    /// The status that the flight printed for its parent.
    pub parent_status: Option<Value>,
}

impl Prepared {
    /// The namespace of this name, if it is among the resources.
    pub fn namespace(&self, name: &str) -> Option<&Object> {
        let mut all = self.stages.objects();
        all.find(|object| {
            object.group().is_empty() && object.kind() == "Namespace" && object.name() == name
        })
    }

    /// Hash of these objects as they will be sent, in order.
    pub fn hash_of(&self, wanted: &HashSet<ResourceRef>) -> String {
        let mut hasher = Sha256::new();
        for object in self
            .stages
            .objects()
            .filter(|object| wanted.contains(&object.reference()))
        {
            hasher.update(object.hash());
        }
        hex::encode(hasher.finalize())
    }
}

/// Takes the parent out of what was printed, and its status out of that.
///
/// A parent may be printed without a status: then it is only kept out of the release. Whether what it has there can be a status
/// is not looked at.
pub fn take_parent(stages: &mut Stages, parent: &ResourceRef) -> Option<Value> {
    let found = stages.take(parent);
    found
        .into_iter()
        .map(|object| object.status().clone())
        .find(|status| !status.is_null())
}

/// The parent's status in the output of a flight that failed, if it can be read.
pub fn parent_status_of_failure(output: &[u8], parent: &ResourceRef) -> Option<Value> {
    let mut stages = desired::parse(output).ok()?;
    take_parent(&mut stages, parent).filter(|status| status::misfit(status).is_none())
}

impl Engine {
    /// Parses what a flight printed, takes the parent out and decorates the rest. All of it or an error.
    pub async fn prepare(
        &self,
        output: &[u8],
        parent: Option<&ResourceRef>,
        decoration: &Decoration,
    ) -> Result<Prepared, EngineError> {
        let mut stages = desired::parse(output).map_err(|source| EngineError::Output {
            source: Box::new(source),
        })?;
        let parent_status = parent.and_then(|parent| take_parent(&mut stages, parent));
        let scopes = self
            .cluster()
            .scopes(
                stages
                    .kinds()
                    .iter()
                    .map(|(api_version, kind)| (&**api_version, &**kind)),
            )
            .await
            .map_err(EngineError::cluster)?;
        let stages = decorate::decorate(stages, decoration, &scopes).map_err(|source| {
            EngineError::Decorate {
                source: Box::new(source),
            }
        })?;
        Ok(Prepared {
            stages,
            parent_status,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent() -> ResourceRef {
        ResourceRef::new("n", "x.dev", "App", "a")
    }

    #[test]
    fn the_parent_leaves_the_release_with_its_status() {
        let check = |output: &str, status: Option<&str>, left: usize| {
            let mut stages = desired::parse(output.as_bytes()).expect("parses");
            let taken = take_parent(&mut stages, &parent());
            assert_eq!(
                taken.map(|value| value.to_string()).as_deref(),
                status,
                "{output}"
            );
            assert_eq!(stages.count(), left, "{output}");
        };
        let child = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}"#;
        let me = |rest: &str| {
            format!(r#"{{"apiVersion":"x.dev/v1","kind":"App","metadata":{{"name":"a"{rest}"#)
        };
        check(&format!("[{child}]"), None, 1);
        check(
            &format!("[{child},{}]", me(r#","namespace":"n"},"status":{"m":1}}"#)),
            Some(r#"{"m":1}"#),
            1,
        );
        check(
            &format!("[{}]", me(r#"},"status":{"m":1}}"#)),
            Some(r#"{"m":1}"#),
            0,
        ); // no namespace: the parent's
        check(
            &format!("[{},{child}]", me(r#","namespace":"n"}}"#)),
            None,
            1,
        );
        check(
            &format!("[{}]", me(r#","namespace":"other"},"status":{"m":1}}"#)),
            None,
            1,
        );
        // What can't be one is for the status to say.
        check(
            &format!("[{}]", me(r#"},"status":"m"}"#)),
            Some(r#""m""#),
            0,
        );
        check(&format!("[{}]", me(r#"},"status":null}"#)), None, 0);
    }

    #[test]
    fn what_a_failed_flight_printed_of_its_parent_counts_if_it_can_be_read() {
        let status = parent_status_of_failure(
            br#"[{"apiVersion":"x.dev/v1","kind":"App","metadata":{"name":"a"},"status":{"m":1}}]"#,
            &parent(),
        );
        assert_eq!(status, Some(serde_json::json!({"m": 1})));
        assert_eq!(
            parent_status_of_failure(b"{\"apiVersion\"", &parent()),
            None
        );
        assert_eq!(parent_status_of_failure(b"", &parent()), None);
        assert_eq!(
            parent_status_of_failure(
                br#"[{"apiVersion":"x.dev/v1","kind":"App","metadata":{"name":"a"},"status":"m"}]"#,
                &parent(),
            ),
            None
        );
    }
}
