//! The lock of a release: a Secret whose creation is the taking of it, as the existing tool has it. Opt-in.
//!
//! Ours says when its holder last renewed it, and counts for [`LOCK_LIFE`] after that. A lock of the existing tool says
//! nothing of the kind: left behind, it is removed by hand.

use std::time::Duration;

use atc_api::names;
use http::Method;
use jiff::Timestamp;
use serde_json::json;

use super::delete::Propagation;
use super::mapping::{encode, secrets};
use super::read::LiveMeta;
use super::request::{Call, JSON, MERGE_PATCH};
use super::{Cluster, ClusterError, ErrorKind};
use crate::history::{is_label_value, lock_name, release_label};

/// Tries to take a lock that is gone each time one looks who has it.
const MAX_TRIES: u32 = 3;
/// How long a lock counts that its holder does not renew. 5 min: two clocks are compared here, and machines whose clocks
/// differ by more have other troubles. Whoever is wrong about it still meets the claim of the release's intent.
pub const LOCK_LIFE: Duration = Duration::from_mins(5);
/// How often a holder renews its lock. 1 min: several may fail before the lock runs out.
pub const LOCK_RENEWAL: Duration = Duration::from_mins(1);

/// A lock that is held. It stays until [`Cluster::unlock`] is called: dropping it does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the lock stays in the cluster until it is unlocked"]
pub struct Lock {
    namespace: String,
    secret: String,
    uid: String,
}

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// In words for a person; empty for locks of the existing tool.
    pub who: String,
    /// When it was taken: RFC 3339.
    pub since: String,
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Somebody else has it.
    #[error("release \"{release}\" is locked by {} since {}", if holder.who.is_empty() { "another process" } else { &holder.who }, holder.since)]
    Held {
        /// The release.
        release: String,
        /// Who has the lock.
        holder: Holder,
    },
    /// The cluster would not.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl Cluster {
    /// Takes the lock of a release. `who` is told to whoever comes next. A lock that ran out is taken over.
    ///
    /// # Errors
    /// [`LockError::Held`] at once when it is taken: there is no waiting.
    pub async fn lock(&self, release: &str, namespace: &str, who: &str) -> Result<Lock, LockError> {
        let secret = lock_name(release);
        // The plain name, as the existing tool writes it; a name that no label can hold goes by its hash.
        let label = if is_label_value(release) {
            release.to_owned()
        } else {
            release_label(release)
        };
        // A try whose answer was lost finds its own lock: told by this.
        let mark = format!("{:016x}", rand::random::<u64>());
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {
                "name": secret, "namespace": namespace,
                "labels": { names::LABEL_KIND: names::KIND_LOCK, names::LABEL_RELEASE: label },
                "annotations": {
                    names::ANNOTATION_HOLDER: who, names::ANNOTATION_RELEASE_NAME: release, names::ANNOTATION_LOCK: mark,
                    names::ANNOTATION_RENEWED_AT: Timestamp::now().to_string(),
                },
            },
        });
        let query = format!("fieldManager={}", encode(&self.options().field_manager));
        let call = Call::collection("lock with", Method::POST, &secrets(), Some(namespace))?
            .query(&query)
            .body(JSON, &body);
        let mut tries = 1;
        loop {
            let error = match self.call(&call).await {
                Ok(answer) => return Ok(held(&LiveMeta::of(&answer.json(&call)?))),
                Err(error) => error,
            };
            if error.kind() != ErrorKind::AlreadyExists {
                return Err(error.into());
            }
            match self.metadata(&secrets(), namespace, &secret).await? {
                Some(live) if live.annotation(names::ANNOTATION_LOCK) == Some(&mark) => {
                    return Ok(held(&live));
                }
                Some(live) if tries < MAX_TRIES && has_run_out(&live, Timestamp::now()) => {
                    tries += 1;
                    let gone = self
                        .delete(
                            &secrets(),
                            namespace,
                            &secret,
                            live.uid(),
                            Some(live.resource_version()),
                            Propagation::Background,
                        )
                        .await;
                    // Renewed in this very moment: then it is looked at again.
                    if let Err(error) = gone
                        && error.kind() != ErrorKind::Stale
                    {
                        return Err(error.into());
                    }
                }
                Some(live) => {
                    return Err(LockError::Held {
                        release: release.to_owned(),
                        holder: holder(&live),
                    });
                }
                None if tries < MAX_TRIES => tries += 1,
                None => return Err(error.into()),
            }
        }
    }

    /// Says that the holder of a lock is still there. False when the lock is not there any more.
    pub async fn renew_lock(&self, lock: &Lock) -> Result<bool, ClusterError> {
        let patch = json!({ "metadata": {
            "uid": lock.uid,
            "annotations": { names::ANNOTATION_RENEWED_AT: Timestamp::now().to_string() },
        } });
        let query = format!("fieldManager={}", encode(&self.options().field_manager));
        let (namespace, secret) = (&lock.namespace, &lock.secret);
        let call = Call::object("renew", Method::PATCH, &secrets(), namespace, secret, "")?;
        match self
            .call(&call.query(&query).body(MERGE_PATCH, &patch))
            .await
        {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Stale) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Gives a lock back. One that was removed meanwhile is no error, and another's is left alone.
    pub async fn unlock(&self, lock: &Lock) -> Result<(), ClusterError> {
        let (namespace, secret) = (&lock.namespace, &lock.secret);
        self.delete(
            &secrets(),
            namespace,
            secret,
            &lock.uid,
            None,
            Propagation::Background,
        )
        .await?;
        Ok(())
    }

    /// Removes the lock of a release, whoever holds it. Returns who did; `None` when it was free.
    pub async fn break_lock(
        &self,
        release: &str,
        namespace: &str,
    ) -> Result<Option<Holder>, ClusterError> {
        let Some(live) = self
            .metadata(&secrets(), namespace, &lock_name(release))
            .await?
        else {
            return Ok(None);
        };
        self.unlock(&held(&live)).await?;
        Ok(Some(holder(&live)))
    }
}

fn held(live: &LiveMeta) -> Lock {
    Lock {
        namespace: live.namespace().to_owned(),
        secret: live.name().to_owned(),
        uid: live.uid().to_owned(),
    }
}

fn holder(live: &LiveMeta) -> Holder {
    let since = live.value()["creationTimestamp"]
        .as_str()
        .unwrap_or("an unknown time");
    Holder {
        who: live
            .annotation(names::ANNOTATION_HOLDER)
            .unwrap_or_default()
            .to_owned(),
        since: since.to_owned(),
    }
}

/// Whether a lock of ours was not renewed for so long that its holder must be gone.
fn has_run_out(live: &LiveMeta, now: Timestamp) -> bool {
    let renewed = live.annotation(names::ANNOTATION_RENEWED_AT);
    let renewed = renewed.and_then(|text| text.parse::<Timestamp>().ok());
    renewed.is_some_and(|renewed| {
        now.duration_since(renewed).unsigned_abs() > LOCK_LIFE && now > renewed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_of_ours_runs_out_and_one_of_the_existing_tool_does_not() {
        let check = |annotations: serde_json::Value, expect: bool| {
            let now: Timestamp = "2026-01-01T12:00:00Z".parse().expect("a time");
            let live = LiveMeta::of(&json!({ "metadata": { "annotations": annotations } }));
            assert_eq!(has_run_out(&live, now), expect, "{annotations}");
        };
        check(json!({}), false);
        check(
            json!({ "atc.yoke.cd/renewed-at": "2026-01-01T11:54:59Z" }),
            true,
        );
        check(
            json!({ "atc.yoke.cd/renewed-at": "2026-01-01T11:55:00Z" }),
            false,
        );
        // Written by a clock that is ahead of ours.
        check(
            json!({ "atc.yoke.cd/renewed-at": "2026-01-01T13:00:00Z" }),
            false,
        );
        check(json!({ "atc.yoke.cd/renewed-at": "soon" }), false);
    }
}
