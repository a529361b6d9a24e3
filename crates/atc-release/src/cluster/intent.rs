//! The intent of a release in the cluster: claimed, renewed, added to, and taken away again, each write only over the state
//! that was seen.

use http::Method;
use serde_json::{Value, json};

use super::delete::Propagation;
use super::mapping::{encode, secrets};
use super::request::{Call, JSON};
use super::{Cluster, ClusterError, ErrorKind, RevisionError};
use crate::intent::{Claim, Intent, StoredIntent, intent_name};

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

    /// Writes an intent with a claim: over `found`, or, where there was none, as a new one. `None` when somebody was
    /// quicker.
    pub async fn claim_intent(
        &self,
        found: Option<&StoredIntent>,
        intent: &Intent,
    ) -> Result<Option<StoredIntent>, RevisionError> {
        let call = match found {
            None => self.intent_call(Method::POST, intent, &json!(intent.to_secret()?))?,
            Some(found) => {
                let next = StoredIntent {
                    intent: intent.clone(),
                    ..found.clone()
                };
                self.intent_call(Method::PUT, intent, &json!(next.to_secret()?))?
            }
        };
        let error = match self.call(&call).await {
            Ok(answer) => return Ok(Some(StoredIntent::from_secret(&answer.json(&call)?)?)),
            Err(error) => error,
        };
        if !was_overtaken(&error, found.is_some()) {
            return Err(error.into());
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
            let next = StoredIntent {
                intent: next(&held.intent),
                ..held.clone()
            };
            let call = self.intent_call(Method::PUT, &next.intent, &json!(next.to_secret()?))?;
            match self.call(&call).await {
                Ok(answer) => {
                    *held = StoredIntent::from_secret(&answer.json(&call)?)?;
                    return Ok(true);
                }
                Err(error) if was_overtaken(&error, true) && tries < MAX_TRIES => {
                    tries += 1;
                    if !self.is_still_held(held, &token).await? {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
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
        let doing = "write the intent of the release to";
        let (namespace, name) = (&intent.namespace, intent_name(&intent.release));
        let query = format!("fieldManager={}", encode(&self.options().field_manager));
        let call = if method == Method::POST {
            Call::collection(doing, method, &secrets(), Some(namespace))?
        } else {
            Call::object(doing, method, &secrets(), namespace, &name, "")?
        };
        Ok(call.query(&query).body(JSON, secret))
    }
}

fn token(held: &StoredIntent) -> String {
    let claim = held.intent.claim.as_ref();
    claim.map(|claim| claim.token.clone()).unwrap_or_default()
}

/// Whether another write came between. A Secret that is gone counts, a namespace that is gone does not.
fn was_overtaken(error: &ClusterError, existed: bool) -> bool {
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
