//! The texts that the programs read: kubeconfigs, tokens, the audit policy.

use std::path::Path;

use serde_json::json;

/// User name of the atc: its calls, and only they, stand in the audit log.
pub(crate) const ATC_USER: &str = "system:serviceaccount:atc:atc-service-account";
/// Token of the administrator (`system:masters`).
pub(crate) const ADMIN_TOKEN: &str = "admin-token";
/// Token of [`ATC_USER`].
pub(crate) const ATC_TOKEN: &str = "atc-token";
/// Token of `user`, who may do what tests grant by RBAC.
pub(crate) const USER_TOKEN: &str = "user-token";

/// The apiserver's static token file. The atc is master here: what it may do is the matter of its own manifests.
pub(crate) fn tokens() -> String {
    format!(
        "{ADMIN_TOKEN},admin,admin,system:masters\n\
         {ATC_TOKEN},{ATC_USER},atc,\"system:masters,system:serviceaccounts,system:serviceaccounts:atc\"\n\
         {USER_TOKEN},user,user,\n"
    )
}

/// One line per finished call of the atc's user: verb, object, user agent, no bodies.
pub(crate) fn audit_policy() -> String {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{ "level": "Metadata", "users": [ATC_USER] }, { "level": "None" }],
    })
    .to_string()
}

/// A kubeconfig with one context. JSON is YAML.
pub(crate) fn kubeconfig(server: &str, ca: &Path, token: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "test", "cluster": { "server": server, "certificate-authority": ca } }],
        "users": [{ "name": "test", "user": { "token": token } }],
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test" } }],
        "current-context": "test",
    })
    .to_string()
}

/// The node that kwok plays.
pub(crate) fn node() -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": "fake", "annotations": { "kwok.x-k8s.io/node": "fake" } },
    })
    .to_string()
}
