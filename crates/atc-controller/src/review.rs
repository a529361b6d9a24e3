//! What we ask the API server about users: who we are ourselves, and what others may do.

use std::time::Duration;

use atc_api::{Account, names};
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, UserInfo};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};

/// An answer may take so long; whoever asks asks again.
const TIMEOUT: Duration = Duration::from_secs(10);

/// An answer that a write waits for may take so long: the write itself is given up after 10 s.
const ACCESS_TIMEOUT: Duration = Duration::from_secs(3);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReviewError {
    /// The API server said no, or can't be reached.
    #[error("{0} failed")]
    Refused(&'static str, #[source] kube::Error),
    /// It said nothing.
    #[error("no answer to a {0} in time")]
    Silent(&'static str),
    /// It did not name us.
    #[error("the answer to a SelfSubjectReview names no user")]
    Nameless,
}

/// Our own user name by the API server's word.
pub(crate) async fn own_name(client: kube::Client) -> Result<String, ReviewError> {
    let api: Api<SelfSubjectReview> = Api::all(client);
    let (params, question) = (PostParams::default(), SelfSubjectReview::default());
    let what = "SelfSubjectReview";
    let review = tokio::time::timeout(TIMEOUT, api.create(&params, &question))
        .await
        .map_err(|_| ReviewError::Silent(what))?
        .map_err(|error| ReviewError::Refused(what, error))?;
    let user = review.status.and_then(|status| status.user_info);
    user.and_then(|user| user.username)
        .filter(|name| !name.is_empty())
        .ok_or(ReviewError::Nameless)
}

/// Whether a user may update an Airway.
pub(crate) async fn may_update_airway(
    client: kube::Client,
    user: &UserInfo,
    airway: &str,
) -> Result<bool, ReviewError> {
    let update = ResourceAttributes {
        group: Some(names::GROUP.into()),
        version: Some(names::VERSION.into()),
        resource: Some("airways".into()),
        verb: Some("update".into()),
        name: Some(airway.to_owned()),
        ..ResourceAttributes::default()
    };
    may(client, user, update).await
}

/// Whether a user may act as a service account.
pub(crate) async fn may_impersonate(
    client: kube::Client,
    user: &UserInfo,
    account: &Account,
) -> Result<bool, ReviewError> {
    let impersonate = ResourceAttributes {
        group: Some(String::new()),
        version: Some("v1".into()),
        resource: Some("serviceaccounts".into()),
        verb: Some("impersonate".into()),
        namespace: Some(account.namespace().to_owned()),
        name: Some(account.name().to_owned()),
        ..ResourceAttributes::default()
    };
    may(client, user, impersonate).await
}

/// Whether a user may do something: asked of the API server, which knows all of its authorizers.
async fn may(
    client: kube::Client,
    user: &UserInfo,
    what: ResourceAttributes,
) -> Result<bool, ReviewError> {
    let question = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: user.username.clone(),
            groups: user.groups.clone(),
            uid: user.uid.clone(),
            extra: user.extra.clone(),
            resource_attributes: Some(what),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let what = "SubjectAccessReview";
    let api: Api<SubjectAccessReview> = Api::all(client);
    let params = PostParams::default();
    let review = tokio::time::timeout(ACCESS_TIMEOUT, api.create(&params, &question))
        .await
        .map_err(|_| ReviewError::Silent(what))?
        .map_err(|error| ReviewError::Refused(what, error))?;
    Ok(review
        .status
        .is_some_and(|status| status.allowed && status.denied != Some(true)))
}
