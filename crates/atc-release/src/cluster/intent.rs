//! The intent of a release in the cluster: claimed, renewed, added to, and taken away again, each write only over the state
//! that was seen.

use atc_api::names;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::delete::Propagation;
use super::mapping::{encode, secrets};
use super::read::LiveMeta;
use super::request::{Call, JSON};
use super::{Cluster, ClusterError, ErrorKind, RevisionError};
use crate::history::{NEVER_ACTIVE, Revision};
use crate::intent::{Claim, Intent, StoredIntent, beat_name, intent_name};

/// What is tried, for messages.
const WRITE: &str = "write the intent of the release to";
/// Tries of a write that finds the intent changed and still ours: a renewal whose answer was lost.
const MAX_TRIES: u32 = 5;

impl Cluster {
    /// The intent of a release; `None` where there is none: nobody works on it and nobody was interrupted.
    ///
    /// # Errors
    /// Also one that is there and can't be read: then nobody knows what may be left.
    pub async fn intent(
        &self,
        release: &str,
        namespace: &str,
    ) -> Result<Option<StoredIntent>, RevisionError> {
        let found = self
            .get(&secrets(), namespace, &intent_name(release))
            .await?;
        Ok(found.as_ref().map(StoredIntent::from_secret).transpose()?)
    }

    /// The same as whoever waits for its holder sees it: with a renewal that stands beside it.
    pub async fn watched_intent(
        &self,
        release: &str,
        namespace: &str,
    ) -> Result<Option<StoredIntent>, RevisionError> {
        let mut found = self.intent(release, namespace).await?;
        let claim = found.as_mut().and_then(|found| found.intent.claim.as_mut());
        if let Some(claim) = claim {
            let beat = self
                .metadata(&secrets(), namespace, &beat_name(release))
                .await?;
            let its = |beat: &LiveMeta| {
                beat.annotation(names::ANNOTATION_LOCK) == Some(claim.token.as_str())
            };
            if let Some(beat) = beat.filter(its)
                && let Some(renewed_at) = beat.annotation(names::ANNOTATION_RENEWED_AT)
            {
                renewed_at.clone_into(&mut claim.renewed_at);
            }
        }
        Ok(found)
    }

    /// Writes an intent with a claim: over `found`, or, where there was none, as a new one. `None` when somebody was
    /// quicker.
    pub async fn claim_intent(
        &self,
        found: Option<&StoredIntent>,
        intent: &Intent,
    ) -> Result<Option<StoredIntent>, RevisionError> {
        let written = match found {
            None => self.post_intent(intent).await,
            Some(found) => self.overwrite_intent(found, intent).await,
        };
        let error = match written {
            Ok(stored) => return Ok(Some(stored)),
            Err(error) => error,
        };
        if !was_overtaken(&error, found.is_some()) {
            return Err(error);
        }
        // Perhaps by ourselves: a try whose answer was lost.
        let token = intent.claim.as_ref().map(|claim| claim.token.as_str());
        let live = self.intent(&intent.release, &intent.namespace).await?;
        Ok(live.filter(|live| token.is_some_and(|token| live.is_held_by(token))))
    }

    /// Writes `held` as it is now. False when the claim is not ours any more; then nothing is written.
    pub async fn write_intent(&self, held: &mut StoredIntent) -> Result<bool, RevisionError> {
        self.put_intent(held, Intent::clone).await
    }

    /// Writes the time at which the claim of `held` was renewed. False when the claim is not ours any more.
    ///
    /// Where the intent may not be changed, the time is written beside it, and it stays where it is: somebody who waits
    /// would take the release over in the moment between a deletion and a creation.
    pub async fn renew_intent(&self, held: &mut StoredIntent) -> Result<bool, RevisionError> {
        let token = token(held);
        let error = match self.put_over(held, &held.intent).await {
            Ok(stored) => {
                *held = stored;
                return Ok(true);
            }
            Err(error) => error,
        };
        if was_overtaken(&error, true) {
            // Where it is still ours, the next renewal finds it as it is now.
            let is_ours = self.is_still_held(held, &token).await?;
            return if is_ours { Err(error) } else { Ok(false) };
        }
        if !is_forbidden(&error) {
            return Err(error);
        }
        if !self.is_still_held(held, &token).await? {
            return Ok(false);
        }
        Box::pin(self.beat(held, &token)).await?;
        Ok(true)
    }

    /// Writes the time of a renewal beside an intent. It goes with the intent.
    async fn beat(&self, held: &StoredIntent, token: &str) -> Result<(), ClusterError> {
        let Intent {
            release, namespace, ..
        } = &held.intent;
        let name = beat_name(release);
        let renewed_at = held.intent.claim.as_ref().map(|claim| &claim.renewed_at);
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {
                "name": name, "namespace": namespace,
                "labels": { names::LABEL_OUR_KIND: names::KIND_BEAT },
                "annotations": {
                    names::ANNOTATION_INTENT_OF: release, names::ANNOTATION_LOCK: token,
                    names::ANNOTATION_RENEWED_AT: renewed_at,
                },
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Secret", "name": intent_name(release), "uid": held.uid,
                }],
            },
        });
        if let Some(before) = self.metadata(&secrets(), namespace, &name).await? {
            self.delete(
                &secrets(),
                namespace,
                &name,
                before.uid(),
                None,
                Propagation::Background,
            )
            .await?;
        }
        let query = format!("fieldManager={}", encode(&self.options().field_manager));
        let call = Call::collection(WRITE, Method::POST, &secrets(), Some(namespace))?;
        match self.call(&call.query(&query).body(JSON, &body)).await {
            // Our own, whose answer was lost.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            made => made.map(drop),
        }
    }

    /// Gives the claim back and keeps the inventory. One that is not ours any more is left alone.
    pub async fn free_intent(&self, held: &mut StoredIntent) -> Result<(), RevisionError> {
        let free = |intent: &Intent| Intent {
            claim: None,
            ..intent.clone()
        };
        self.put_intent(held, free).await.map(drop)
    }

    async fn put_intent(
        &self,
        held: &mut StoredIntent,
        next: impl Fn(&Intent) -> Intent,
    ) -> Result<bool, RevisionError> {
        let mut tries = 1;
        let token = token(held);
        loop {
            let next = next(&held.intent);
            match self.overwrite_intent(held, &next).await {
                Ok(stored) => {
                    *held = stored;
                    return Ok(true);
                }
                Err(error) if was_overtaken(&error, true) && tries < MAX_TRIES => {
                    tries += 1;
                    if !self.is_still_held(held, &token).await? {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn post_intent(&self, intent: &Intent) -> Result<StoredIntent, RevisionError> {
        let call = self.intent_call(Method::POST, intent, &json!(intent.to_secret()?))?;
        let answer = self.call(&call).await?;
        Ok(StoredIntent::from_secret(&answer.json(&call)?)?)
    }

    /// Writes an intent over the one that was seen.
    async fn overwrite_intent(
        &self,
        found: &StoredIntent,
        next: &Intent,
    ) -> Result<StoredIntent, RevisionError> {
        match self.put_over(found, next).await {
            Err(error) if is_forbidden(&error) => {
                Box::pin(self.exchange_intent(found, next, error)).await
            }
            written => written,
        }
    }

    async fn put_over(
        &self,
        found: &StoredIntent,
        next: &Intent,
    ) -> Result<StoredIntent, RevisionError> {
        let next = StoredIntent {
            intent: next.clone(),
            ..found.clone()
        };
        let call = self.intent_call(Method::PUT, &next.intent, &json!(next.to_secret()?))?;
        let answer = self.call(&call).await?;
        Ok(StoredIntent::from_secret(&answer.json(&call)?)?)
    }

    /// Puts an intent in the place of the one that was seen by a deletion and a creation, for whoever may not change Secrets:
    /// the existing tool creates and deletes them only.
    ///
    /// What the one that goes names is recorded meanwhile, as a revision that never became active.
    async fn exchange_intent(
        &self,
        found: &StoredIntent,
        next: &Intent,
        refused: RevisionError,
    ) -> Result<StoredIntent, RevisionError> {
        let (release, namespace) = (&next.release, &next.namespace);
        let name = intent_name(release);
        // That a Secret may not be changed is said before it is looked whether it is as it was seen.
        let as_seen = |live: &StoredIntent| {
            live.uid == found.uid && live.resource_version == found.resource_version
        };
        let live = self.intent(release, namespace).await?;
        let Some(live) = live.filter(as_seen) else {
            let object = secrets().named(namespace, &name);
            return Err(ClusterError::Appeared { object }.into());
        };
        if !self.may_delete_secret(namespace, &name).await? {
            return Err(refused);
        }
        let inventory = live.intent.inventory;
        let aside = if inventory.is_empty() {
            None
        } else {
            let mut revision = Revision::new(
                release,
                namespace,
                inventory,
                rand::random(),
                Timestamp::now(),
            );
            revision.head.active_at = NEVER_ACTIVE;
            Some(self.create_revision(&revision).await?)
        };
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
            "preconditions": { "uid": found.uid, "resourceVersion": found.resource_version },
        });
        let call = Call::object(WRITE, Method::DELETE, &secrets(), namespace, &name, "")?;
        if let Err(error) = self.call(&call.body(JSON, &options)).await {
            // It is there still, with all that it names.
            if let Some(aside) = aside.filter(|_| error.kind() == ErrorKind::Stale) {
                self.delete_revision(&aside).await?;
            }
            return Err(error.into());
        }
        let stored = self.post_intent(next).await?;
        if let Some(aside) = aside {
            self.delete_revision(&aside).await?;
        }
        Ok(stored)
    }

    /// Takes the intent away: the release is settled. One that is not ours any more is left alone.
    pub async fn drop_intent(&self, held: &mut StoredIntent) -> Result<(), RevisionError> {
        let token = token(held);
        for _ in 0..MAX_TRIES {
            let Intent {
                release, namespace, ..
            } = &held.intent;
            let deleted = self
                .delete(
                    &secrets(),
                    namespace,
                    &intent_name(release),
                    &held.uid,
                    Some(&held.resource_version),
                    Propagation::Background,
                )
                .await;
            match deleted {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Stale => {
                    if !self.is_still_held(held, &token).await? {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Ends the claim on a release, whoever has it, and keeps the inventory. Returns whose it was.
    pub async fn break_claim(
        &self,
        release: &str,
        namespace: &str,
    ) -> Result<Option<Claim>, RevisionError> {
        let Some(mut found) = self.intent(release, namespace).await? else {
            return Ok(None);
        };
        let claim = found.intent.claim.clone();
        if claim.is_some() {
            self.free_intent(&mut found).await?;
        }
        Ok(claim)
    }

    /// Reads what became of an intent that another write met; takes over its version where the claim is still ours.
    async fn is_still_held(
        &self,
        held: &mut StoredIntent,
        token: &str,
    ) -> Result<bool, RevisionError> {
        let Intent {
            release, namespace, ..
        } = &held.intent;
        match self.intent(release, namespace).await? {
            Some(live) if live.is_held_by(token) => {
                held.uid = live.uid;
                held.resource_version = live.resource_version;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn intent_call(
        &self,
        method: Method,
        intent: &Intent,
        secret: &Value,
    ) -> Result<Call, ClusterError> {
        let (namespace, name) = (&intent.namespace, intent_name(&intent.release));
        let query = format!("fieldManager={}", encode(&self.options().field_manager));
        let call = if method == Method::POST {
            Call::collection(WRITE, method, &secrets(), Some(namespace))?
        } else {
            Call::object(WRITE, method, &secrets(), namespace, &name, "")?
        };
        Ok(call.query(&query).body(JSON, secret))
    }
}

fn token(held: &StoredIntent) -> String {
    let claim = held.intent.claim.as_ref();
    claim.map(|claim| claim.token.clone()).unwrap_or_default()
}

fn is_forbidden(error: &RevisionError) -> bool {
    matches!(error, RevisionError::Cluster(error) if error.kind() == ErrorKind::Forbidden)
}

/// Whether another write came between. A Secret that is gone counts, a namespace that is gone does not.
fn was_overtaken(error: &RevisionError, existed: bool) -> bool {
    let RevisionError::Cluster(error) = error else {
        return false;
    };
    match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::Stale => true,
        ErrorKind::NotFound => {
            existed
                && error
                    .refusal()
                    .and_then(|refusal| refusal.missing_namespace())
                    .is_none()
        }
        _ => false,
    }
}
