//! The review of a Flight or ClusterFlight: that of who may have it act as its account comes first, then that of an instance.
//!
//! The API server asks all webhooks at once and tells whichever denial comes first. So it is asked here too who may, before
//! anything is run or tried as the account: what a module says of its failure may be what only the account may read.

use tokio::time::Instant;

use super::review::{Decision, Request};
use super::time::Time;
use super::{account, instance};
use crate::bootstrap::FLIGHT_TIMEOUT;
use crate::control::Control;
use crate::flights;

/// Whether it may be stored.
pub(super) async fn decide(control: &Control, request: &Request) -> Decision {
    let kind = request.object["kind"].as_str().unwrap_or_default();
    if !flights::is_kind(kind) {
        return Decision::invalid("the object to review is neither a Flight nor a ClusterFlight");
    }
    let time = Time::of(FLIGHT_TIMEOUT, Instant::now());
    let decision = account::decide(control, request).await;
    if decision != Decision::Allow {
        return decision;
    }
    if account::named(&request.object).is_some() && !account::is_asked_for(request) {
        // Whoever puts a label on it was not asked about, and what is run is what it was.
        return Decision::Allow;
    }
    instance::decide_within(control, kind, request, time).await
}
