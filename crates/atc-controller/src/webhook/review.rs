//! Admission reviews on the wire: the parts of a request that we decide by, and the answer.

use atc_api::names;
use atc_engine::kept::significant;
use atc_engine::release::cluster::Mapping;
use k8s_openapi::api::authentication::v1::UserInfo;
use serde::Deserialize;
use serde_json::{Value, json};

/// An `AdmissionReview` as the API server sends it.
#[derive(Debug, Deserialize)]
pub(crate) struct Review {
    /// What is asked.
    pub(crate) request: Request,
}

/// What is to be decided.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    /// Goes back with the answer.
    pub(crate) uid: String,
    /// `CREATE`, `UPDATE`, `DELETE`.
    pub(crate) operation: String,
    /// The object to be stored.
    #[serde(default)]
    pub(crate) object: Value,
    /// The stored object, null at creation.
    #[serde(default)]
    pub(crate) old_object: Value,
    /// Its namespace; empty for cluster scope.
    #[serde(default)]
    pub(crate) namespace: String,
    /// Its name; empty where the server is to make one.
    #[serde(default)]
    pub(crate) name: String,
    /// The resource of the rule that asked.
    #[serde(default)]
    pub(crate) resource: Resource,
    /// The resource that was written, in the version in which it was.
    #[serde(default, rename = "requestResource")]
    pub(crate) written: Resource,
    /// The part of it that is written: `status`, `scale`; empty for the object itself.
    #[serde(default)]
    pub(crate) sub_resource: String,
    /// The options of the write, `fieldManager` for one.
    #[serde(default)]
    pub(crate) options: Value,
    /// Whether nothing is to be stored.
    #[serde(default)]
    pub(crate) dry_run: Option<bool>,
    /// Who asks.
    #[serde(default)]
    pub(crate) user_info: UserInfo,
}

impl Request {
    /// Whether it is a dry run such as we make it ourselves as a service account, of an object that a Flight prints. Whoever
    /// imitates it is told less of what would become of his own dry run.
    pub(crate) fn is_tried_as_account(&self) -> bool {
        let user = self.user_info.username.as_deref().unwrap_or_default();
        self.dry_run == Some(true)
            && user.starts_with("system:serviceaccount:")
            && self.options["fieldManager"] == names::MANAGER_YOKE
    }
}

/// A resource as a request names it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Resource {
    /// Empty for core.
    pub(crate) group: String,
    /// `v1`.
    pub(crate) version: String,
    /// As in URLs.
    #[serde(rename = "resource")]
    pub(crate) plural: String,
}

impl Resource {
    /// Where one of its objects is read whose kind the request does not say, as that for a `scale`: the plural stands for it,
    /// in words only. What the object itself says of its kind is what counts.
    pub(crate) fn kindless(&self, namespaced: bool) -> Mapping {
        Mapping {
            group: self.group.clone(),
            version: self.version.clone(),
            kind: self.plural.clone(),
            plural: self.plural.clone(),
            namespaced,
        }
    }
}

/// Yes, or no with words for whoever asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Let it pass.
    Allow,
    /// Refuse it.
    Deny {
        /// HTTP code of the answer to the user: 422 for a bad object, 403 for a missing right, 503 to come back later.
        code: u16,
        /// What happened and what to do.
        message: String,
    },
}

impl Decision {
    /// The object is not acceptable.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Deny {
            code: 422,
            message: message.into(),
        }
    }

    /// Whoever asks may not do that.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::Deny {
            code: 403,
            message: message.into(),
        }
    }

    /// We can't tell now.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::Deny {
            code: 503,
            message: message.into(),
        }
    }

    /// The review to answer with.
    pub(crate) fn answer(&self, uid: &str) -> Value {
        let mut response = json!({"uid": uid, "allowed": matches!(self, Self::Allow)});
        if let Self::Deny { code, message } = self {
            let reason = match code {
                403 => "Forbidden",
                503 => "ServiceUnavailable",
                _ => "Invalid",
            };
            response["status"] =
                json!({"status": "Failure", "code": code, "reason": reason, "message": message});
        }
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
    }
}

/// Whether an update changes nothing that a flight or an Airway is judged by: all but status, finalizers, owners and what
/// only the server writes.
pub(crate) fn is_internal(old: &Value, new: &Value) -> bool {
    old.is_object() && significant(old) == significant(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_as_internal() {
        let old = json!({"metadata": {"name": "a", "resourceVersion": "1", "labels": {"x": "y"}}, "spec": {"n": 1}});
        let mut new = old.clone();
        new["metadata"]["finalizers"] = json!(["f"]);
        new["status"] = json!({"s": 1});
        assert!(is_internal(&old, &new));
        new["metadata"]["labels"]["x"] = json!("z");
        assert!(!is_internal(&old, &new));
        assert!(!is_internal(&Value::Null, &old), "a creation is none");
    }

    #[test]
    fn echoes_of_our_own_writes_say_the_same_in_the_same_order() {
        let first = json!({"metadata": {"name": "a", "uid": "u", "labels": {"x": "y"}, "creationTimestamp": "t"}, "spec": {"n": 1}});
        let echo = json!({"metadata": {"name": "a", "finalizers": ["f"], "ownerReferences": [{}], "uid": "u", "labels": {"x": "y"},
            "creationTimestamp": "t", "generation": 1}, "status": {"s": 1}, "spec": {"n": 1}});
        assert_eq!(
            significant(&first).to_string(),
            significant(&echo).to_string()
        );
    }

    #[test]
    fn which_dry_runs_are_like_those_of_a_flights_account() {
        let check = |user: &str, manager: &str, dry: Value, expect: bool| {
            let request: Request = serde_json::from_value(json!({
                "uid": "u", "operation": "CREATE", "dryRun": dry, "userInfo": { "username": user },
                "options": { "fieldManager": manager },
            }))
            .expect("a request");
            assert_eq!(
                request.is_tried_as_account(),
                expect,
                "{user} {manager} {dry}"
            );
        };
        let account = "system:serviceaccount:n:app";
        check(account, "yoke", json!(true), true);
        check(account, "yoke", json!(false), false);
        check(account, "yoke", Value::Null, false);
        check(account, "kubectl", json!(true), false);
        check("admin", "yoke", json!(true), false);
    }

    #[test]
    fn answers() {
        assert_eq!(
            Decision::Allow.answer("u")["response"],
            json!({"uid": "u", "allowed": true})
        );
        let denied = Decision::invalid("no").answer("u");
        assert_eq!(denied["response"]["status"]["message"], "no");
        assert_eq!(denied["response"]["allowed"], false);
    }
}
