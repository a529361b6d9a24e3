//! The review of who writes a Flight that acts as a service account: whoever decides what it does must be allowed to act as
//! that account.
//!
//! It stands apart from the review of the Flight, whose configuration goes when we go: this one stays, so that nobody can
//! take an account while no atc runs.

use atc_api::Account;
use atc_engine::error::chain;
use serde_json::Value;

use super::review::{Decision, Request};
use crate::control::Control;
use crate::review::may_impersonate;

/// The account that a Flight names.
pub(super) fn named(object: &Value) -> Option<&str> {
    let name = object["spec"]["serviceAccountName"].as_str();
    name.filter(|name| !name.is_empty())
}

/// Whether what is written decides what is done as an account: anything of the spec.
pub(super) fn is_asked_for(request: &Request) -> bool {
    named(&request.object).is_some() && request.old_object["spec"] != request.object["spec"]
}

/// Whether whoever writes a Flight may have it act as it says.
pub(super) async fn decide(control: &Control, request: &Request) -> Decision {
    let Some(name) = named(&request.object).filter(|_| is_asked_for(request)) else {
        return Decision::Allow;
    };
    let account = match Account::named(name, &request.namespace) {
        Ok(account) => account,
        Err(error) => return Decision::invalid(error.to_string()),
    };
    let client = control.engine.cluster().client().clone();
    let user = request.user_info.username.as_deref().unwrap_or_default();
    match may_impersonate(client, &request.user_info, &account).await {
        Ok(true) => Decision::Allow,
        Ok(false) => Decision::forbidden(format!(
            "user \"{user}\" may not have it act as service account \"{account}\": it takes the right to impersonate \
             serviceaccounts \"{}\" in namespace \"{}\"",
            account.name(),
            account.namespace()
        )),
        Err(error) => Decision::unavailable(format!(
            "can't tell whether user \"{user}\" may act as service account \"{account}\": {}",
            chain(&error)
        )),
    }
}
