//! What we ask the API server about users: who we are ourselves.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Api, PostParams};

/// An answer may take so long; whoever asks asks again.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReviewError {
    /// The API server said no, or can't be reached.
    #[error("SelfSubjectReview failed")]
    Refused(#[source] kube::Error),
    /// It said nothing.
    #[error("no answer to a SelfSubjectReview within {} s", TIMEOUT.as_secs())]
    Silent,
    /// It did not name us.
    #[error("the answer to a SelfSubjectReview names no user")]
    Nameless,
}

/// Our own user name by the API server's word.
pub(crate) async fn own_name(client: kube::Client) -> Result<String, ReviewError> {
    let api: Api<SelfSubjectReview> = Api::all(client);
    let (params, question) = (PostParams::default(), SelfSubjectReview::default());
    let review = tokio::time::timeout(TIMEOUT, api.create(&params, &question))
        .await
        .map_err(|_| ReviewError::Silent)?
        .map_err(ReviewError::Refused)?;
    let user = review.status.and_then(|status| status.user_info);
    user.and_then(|user| user.username)
        .filter(|name| !name.is_empty())
        .ok_or(ReviewError::Nameless)
}
