//! What we ask the API server about users: who we are ourselves.

use atc_engine::disposition::backoff;
use atc_engine::error::chain;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Api, PostParams};
use tokio_util::sync::CancellationToken;

/// Tries before we go on without knowing.
const TRIES: u32 = 5;

/// Our own user name by the API server's word; empty when it can't be had, so that all our writes are reviewed.
pub(crate) async fn own_name(client: kube::Client, stop: &CancellationToken) -> String {
    let api: Api<SelfSubjectReview> = Api::all(client);
    for attempt in 1..=TRIES {
        match api
            .create(&PostParams::default(), &SelfSubjectReview::default())
            .await
        {
            Ok(review) => {
                let user = review.status.and_then(|status| status.user_info);
                return user.and_then(|user| user.username).unwrap_or_default();
            }
            Err(error) => tracing::warn!(
                error = chain(&error),
                "can't ask the API server who we are"
            ),
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(backoff(attempt, rand::random())) => {}
        }
    }
    String::new()
}
