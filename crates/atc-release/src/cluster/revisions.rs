//! A release's history in the cluster: one Secret a revision, found by labels, read by one metadata list.

use http::Method;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::delete::Propagation;
use super::mapping::{encode, secrets};
use super::read::LiveMeta;
use super::request::{Call, JSON, MERGE_PATCH};
use super::{Cluster, ClusterError, ErrorKind};
use crate::history::{self, Head, HistoryError, Revision};

/// Revisions read in one page when their content is wanted: each is up to 1 MiB and a third more as base64.
const CONTENT_PAGE: usize = 20;

/// Why history cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RevisionError {
    /// The cluster would not.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The record is none.
    #[error(transparent)]
    History(#[from] HistoryError),
}

impl Cluster {
    /// The revisions of a release, without their objects, in the order of their numbers. One call.
    pub async fn revisions(
        &self,
        release: &str,
        namespace: &str,
    ) -> Result<Vec<Head>, RevisionError> {
        let found = self
            .list_metadata(
                &secrets(),
                Some(namespace),
                Some(&history::selector(release)),
            )
            .await?;
        // A release whose plain name is the hash of another one would be found too.
        let mut heads = read_heads(&found)?;
        heads.retain(|head| head.release == release);
        Ok(heads)
    }

    /// The revisions of a release with their objects: what a plan needs that must know everything that may live.
    pub async fn full_revisions(
        &self,
        release: &str,
        namespace: &str,
    ) -> Result<Vec<Revision>, RevisionError> {
        let secrets = self
            .pages(
                &secrets(),
                Some(namespace),
                Some(&history::selector(release)),
                JSON,
                CONTENT_PAGE,
            )
            .await?;
        let mut revisions: Vec<Revision> = secrets
            .into_iter()
            .map(read_revision)
            .collect::<Result<_, _>>()?;
        revisions.retain(|revision| revision.head.release == release);
        revisions.sort_by(|one, two| {
            (one.head.created_at, &one.head.secret).cmp(&(two.head.created_at, &two.head.secret))
        });
        Ok(revisions)
    }

    /// One revision with its objects; `None` when it is gone.
    pub async fn revision(&self, head: &Head) -> Result<Option<Revision>, RevisionError> {
        let secret = self.get(&secrets(), &head.namespace, &head.secret).await?;
        Ok(secret.map(read_revision).transpose()?)
    }

    /// Writes a new revision. Returns its head, with the uid and resource version that it has now.
    ///
    /// # Errors
    /// [`HistoryError::TooBig`] before any call; [`ErrorKind::AlreadyExists`] when its name is taken by another Secret.
    pub async fn create_revision(&self, revision: &Revision) -> Result<Head, RevisionError> {
        let head = &revision.head;
        let secret = json!(revision.to_secret()?);
        let query = format!("fieldManager={}", encode(&self.options().field_manager));
        let call = Call::collection("record", Method::POST, &secrets(), Some(&head.namespace))?
            .query(&query)
            .body(JSON, &secret);
        match self.call(&call).await {
            Ok(answer) => Ok(read_head(&LiveMeta::of(&answer.json(&call)?))?),
            // Perhaps our own, whose answer was lost.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let live = self
                    .metadata(&secrets(), &head.namespace, &head.secret)
                    .await?;
                let found = live.as_ref().and_then(|live| read_head(live).ok());
                Ok(found
                    .filter(|found| {
                        found.release == head.release && found.created_at == head.created_at
                    })
                    .ok_or(error)?)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a revision the active one. Returns its head as it is then.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when it is gone, [`ErrorKind::Stale`] when another Secret has its name.
    pub async fn activate_revision(
        &self,
        head: &Head,
        now: Timestamp,
    ) -> Result<Head, RevisionError> {
        let head = Head {
            active_at: now,
            ..head.clone()
        };
        match self.write_head(&head).await {
            Err(RevisionError::Cluster(error)) if error.kind() == ErrorKind::Forbidden => {
                Box::pin(self.exchange_revision(&head, error)).await
            }
            written => written,
        }
    }

    /// Gives a revision with labels of the old form those of the new one. Returns its head as it is then: as it was, where
    /// it may not be written, since it is found by either form.
    pub async fn migrate_revision(&self, head: &Head) -> Result<Head, RevisionError> {
        match self.write_head(head).await {
            Err(RevisionError::Cluster(error)) if error.kind() == ErrorKind::Forbidden => {
                Ok(head.clone())
            }
            written => written,
        }
    }

    /// Deletes a revision. One that is gone is no error.
    pub async fn delete_revision(&self, head: &Head) -> Result<(), RevisionError> {
        let uid = match &head.uid {
            Some(uid) => uid.clone(),
            None => match self
                .metadata(&secrets(), &head.namespace, &head.secret)
                .await?
            {
                Some(live) => live.uid().to_owned(),
                None => return Ok(()),
            },
        };
        self.delete(
            &secrets(),
            &head.namespace,
            &head.secret,
            &uid,
            None,
            Propagation::Background,
        )
        .await?;
        Ok(())
    }

    /// Deletes the revisions beyond the `cap` most recently active ones; 0 or less keeps all. `heads` are all
    /// revisions of the release. Returns those that were deleted.
    pub async fn cap_revisions(
        &self,
        heads: &[Head],
        cap: i64,
    ) -> Result<Vec<Head>, RevisionError> {
        let beyond = history::beyond_cap(heads, cap);
        futures::future::try_join_all(beyond.iter().map(|head| self.delete_revision(head))).await?;
        Ok(beyond.into_iter().cloned().collect())
    }

    async fn write_head(&self, head: &Head) -> Result<Head, RevisionError> {
        let mut metadata = json!({ "labels": head.labels(), "annotations": head.annotations() });
        if let Some(uid) = &head.uid {
            metadata["uid"] = uid.as_str().into();
        }
        let patch = json!({ "metadata": metadata });
        let query = format!("fieldManager={}", encode(&self.options().field_manager));
        let call = Self::head_call(Method::PATCH, head)?.query(&query);
        let live = match self.patch(call.body(MERGE_PATCH, &patch), &secrets()).await {
            // Who came from the existing tool may have the right to update, which is all that it needs.
            Err(error) if error.kind() == ErrorKind::Forbidden => {
                match self.replace_head(head, &metadata, &query).await? {
                    Some(live) => live,
                    None => return Err(error.into()),
                }
            }
            other => other?,
        };
        Ok(read_head(&LiveMeta::of(&live))?)
    }

    /// The same by a read and an update; nothing if that Secret is not there.
    async fn replace_head(
        &self,
        head: &Head,
        metadata: &Value,
        query: &str,
    ) -> Result<Option<Value>, ClusterError> {
        let secret = self.get(&secrets(), &head.namespace, &head.secret).await?;
        let is_it = |secret: &Value| {
            let uid = secret["metadata"]["uid"].as_str();
            head.uid.as_deref().is_none_or(|known| Some(known) == uid)
        };
        let Some(mut secret) = secret.filter(is_it) else {
            return Ok(None);
        };
        // It bears the resource version of this read: what changes it meanwhile is not overwritten.
        for map in ["labels", "annotations"] {
            for (key, value) in metadata[map].as_object().into_iter().flatten() {
                secret["metadata"][map][key] = value.clone();
            }
        }
        let call = Self::head_call(Method::PUT, head)?.query(query);
        let call = call.body(JSON, &secret);
        Ok(Some(self.call(&call).await?.json(&call)?))
    }

    /// Puts a copy with this head in the place of a revision, for whoever may create and delete Secrets and not change them:
    /// all that the existing tool needs. The copy is there before the other goes: whoever is killed in between leaves two
    /// of the same content, which is one revision more until the history is capped.
    async fn exchange_revision(
        &self,
        head: &Head,
        refused: ClusterError,
    ) -> Result<Head, RevisionError> {
        let (namespace, secret) = (&head.namespace, &head.secret);
        let Some(live) = self.get(&secrets(), namespace, secret).await? else {
            return Err(refused.into());
        };
        let old = read_revision(live)?;
        let is_another = head.uid.is_some() && head.uid != old.head.uid;
        if is_another || !self.may_delete_secret(namespace, secret).await? {
            return Err(refused.into());
        }
        let copy = Revision {
            head: Head {
                secret: history::secret_name(rand::random()),
                uid: None,
                resource_version: None,
                old_form: false,
                ..head.clone()
            },
            stages: old.stages,
        };
        let made = self.create_revision(&copy).await?;
        self.delete_revision(&old.head).await?;
        Ok(made)
    }

    /// Whether a Secret might be deleted. Asked before a copy of it is made that could not be taken away again.
    pub(super) async fn may_delete_secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<bool, ClusterError> {
        let method = Method::DELETE;
        let call = Call::object("delete", method, &secrets(), namespace, name, "")?;
        match self.call(&call.query("dryRun=All")).await {
            Err(error) if error.kind() == ErrorKind::Forbidden => Ok(false),
            // What is gone is told by what follows.
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(true),
        }
    }

    fn head_call(method: Method, head: &Head) -> Result<Call, ClusterError> {
        Call::object(
            "record",
            method,
            &secrets(),
            &head.namespace,
            &head.secret,
            "",
        )
    }
}

fn read_heads(found: &[LiveMeta]) -> Result<Vec<Head>, HistoryError> {
    let mut heads: Vec<Head> = found.iter().map(read_head).collect::<Result<_, _>>()?;
    heads.sort_by(|one, two| (one.created_at, &one.secret).cmp(&(two.created_at, &two.secret)));
    Ok(heads)
}

pub(super) fn read_head(live: &LiveMeta) -> Result<Head, HistoryError> {
    // What does not even parse as metadata has no labels, which is an error that names it.
    let metadata =
        serde_json::from_value::<ObjectMeta>(live.value().clone()).unwrap_or_else(|_| ObjectMeta {
            name: Some(live.name().to_owned()),
            ..ObjectMeta::default()
        });
    Head::from_metadata(&metadata)
}

fn read_revision(secret: Value) -> Result<Revision, HistoryError> {
    let name = secret["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    // The parser's message may quote the content, so it is left out.
    let secret: Secret = serde_json::from_value(secret).map_err(|_| HistoryError::Content {
        secret: name,
        why: "the Secret is not of the usual form".to_owned(),
    })?;
    Revision::from_secret(&secret)
}

#[cfg(test)]
mod tests {
    use atc_api::names;

    use super::*;

    #[test]
    fn unreadable_metadata_is_named() {
        let live = LiveMeta::of(&json!({"metadata": {"name": "yoke.1", "labels": 7}}));
        let error = read_head(&live).expect_err("no labels");
        assert!(
            error.to_string().contains("yoke.1") && error.to_string().contains(names::LABEL_KIND),
            "{error}"
        );
    }
}
