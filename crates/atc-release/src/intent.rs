//! The intent of a release: written before the first object is applied, it names what may come into being, and who is at
//! it. While it is there the release is not settled: somebody works on it, or was interrupted.
//!
//! It is a Secret of its own beside the revisions, with none of their labels, so that the existing tool never sees it.
//! It holds names, never content. The record of what was applied is the revision, see [`history`](crate::history).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use atc_api::{ResourceRef, names};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::history::{HistoryError, MAX_RECORD_BYTES, pack, release_label, unpack};
use crate::object::{Object, Stages};

/// How long a claim counts that its holder does not renew. Default 15 s, the usual length of a lease in Kubernetes: longer
/// than a webhook may hold up one of the holder's calls (10 s), so that nothing of it arrives afterwards.
pub const LEASE: Duration = Duration::from_secs(15);
/// How often a holder renews its claim. Default 5 s: two renewals may fail before the claim runs out.
pub const RENEWAL: Duration = Duration::from_secs(5);

/// That somebody works on a release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Who, in words for a person.
    pub who: String,
    /// The process, as others on the same machine can look it up; empty for none.
    pub process: String,
    /// A random word that tells this claim from any other.
    pub token: String,
    /// Since when, RFC 3339.
    pub since: String,
    /// When it was last renewed, RFC 3339 by the holder's clock. Others only see that it moves.
    pub renewed_at: String,
}

/// What may have been made of a release beyond its revisions, and who is at it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Intent {
    /// Full name of the release.
    pub release: String,
    /// Its target namespace, where the Secret lives.
    pub namespace: String,
    /// Who works on the release; none when nobody does (any more).
    pub claim: Option<Claim>,
    /// Objects that may exist, by name alone: see [`inventory_of`].
    pub inventory: Stages,
}

/// An intent as it is in the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredIntent {
    /// What it says.
    pub intent: Intent,
    /// Uid of its Secret.
    pub uid: String,
    /// Resource version of its Secret as it was read or written last.
    pub resource_version: String,
}

/// Name of a release's intent.
pub fn intent_name(release: &str) -> String {
    format!("yoke-intent.{}", release_label(release))
}

/// Name of the Secret beside it by which a holder renews its claim who may create and delete Secrets, and not change them.
pub(crate) fn beat_name(release: &str) -> String {
    format!("yoke-beat.{}", release_label(release))
}

/// The same objects by name alone, in the same stages.
pub fn inventory_of(stages: &Stages) -> Stages {
    let names = stages.iter().map(|stage| {
        let names = stage.iter().filter_map(|object| {
            let mut name = json!({
                "apiVersion": object.api_version(), "kind": object.kind(), "metadata": { "name": object.name() },
            });
            if let Some(namespace) = object.namespace() {
                name["metadata"]["namespace"] = namespace.into();
            }
            // What was an object is one without its content, too.
            Object::try_from(name).ok()
        });
        names.collect()
    });
    Stages::new(names.collect())
}

/// All objects of both inventories, each once. One that is in both stands where the second has it.
pub fn united(one: &Stages, two: &Stages) -> Stages {
    let newer: BTreeSet<ResourceRef> = two.objects().map(Object::reference).collect();
    let count = one.len().max(two.len());
    let stage = |number: usize| {
        let older = one.iter().nth(number).into_iter().flatten();
        let older = older.filter(|object| !newer.contains(&object.reference()));
        let newer = two.iter().nth(number).into_iter().flatten();
        older.chain(newer).cloned().collect()
    };
    Stages::new((0..count).map(stage).collect())
}

impl Intent {
    /// The Secret that keeps it.
    ///
    /// # Errors
    /// [`HistoryError::TooBig`] when the names alone do not fit one.
    pub fn to_secret(&self) -> Result<Secret, HistoryError> {
        let packed = pack(&self.inventory).map_err(|source| HistoryError::Pack {
            release: self.release.clone(),
            source,
        })?;
        if packed.len() > MAX_RECORD_BYTES {
            return Err(HistoryError::TooBig {
                release: self.release.clone(),
                objects: self.inventory.count(),
                size: packed.len(),
                limit: MAX_RECORD_BYTES,
            });
        }
        let text = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let mut annotations = BTreeMap::from([text(names::ANNOTATION_INTENT_OF, &self.release)]);
        if let Some(claim) = &self.claim {
            annotations.extend([
                text(names::ANNOTATION_HOLDER, &claim.who),
                text(names::ANNOTATION_LOCK, &claim.token),
                text(names::ANNOTATION_HELD_SINCE, &claim.since),
                text(names::ANNOTATION_RENEWED_AT, &claim.renewed_at),
            ]);
            if !claim.process.is_empty() {
                annotations.extend([text(names::ANNOTATION_PROCESS, &claim.process)]);
            }
        }
        Ok(Secret {
            metadata: ObjectMeta {
                name: Some(intent_name(&self.release)),
                namespace: Some(self.namespace.clone()),
                labels: Some(BTreeMap::from([text(
                    names::LABEL_OUR_KIND,
                    names::KIND_INTENT,
                )])),
                annotations: Some(annotations),
                ..ObjectMeta::default()
            },
            type_: Some("Opaque".to_owned()),
            data: Some(BTreeMap::from([(
                names::KEY_INVENTORY.to_owned(),
                ByteString(packed),
            )])),
            ..Secret::default()
        })
    }
}

impl StoredIntent {
    /// Reads it from its Secret.
    ///
    /// # Errors
    /// When the inventory can't be read: then nobody knows what may be left of the release.
    pub fn from_secret(secret: &Value) -> Result<Self, HistoryError> {
        let metadata = &secret["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let annotation = |key: &str| text(&metadata["annotations"][key]);
        let name = text(&metadata["name"]);
        // The parser's message may quote the content, so it is left out.
        let typed: Secret =
            serde_json::from_value(secret.clone()).map_err(|_| HistoryError::Content {
                secret: name.clone(),
                why: "the Secret is not of the usual form".to_owned(),
            })?;
        let data = typed.data.unwrap_or_default();
        let inventory = match data.get(names::KEY_INVENTORY) {
            Some(packed) => unpack(&name, &packed.0)?,
            None => Stages::default(),
        };
        let token = annotation(names::ANNOTATION_LOCK);
        let claim = (!token.is_empty()).then(|| Claim {
            who: annotation(names::ANNOTATION_HOLDER),
            process: annotation(names::ANNOTATION_PROCESS),
            token,
            since: annotation(names::ANNOTATION_HELD_SINCE),
            renewed_at: annotation(names::ANNOTATION_RENEWED_AT),
        });
        Ok(Self {
            intent: Intent {
                release: annotation(names::ANNOTATION_INTENT_OF),
                namespace: text(&metadata["namespace"]),
                claim,
                inventory,
            },
            uid: text(&metadata["uid"]),
            resource_version: text(&metadata["resourceVersion"]),
        })
    }

    /// Whether this claim is the one of that token.
    pub fn is_held_by(&self, token: &str) -> bool {
        self.intent
            .claim
            .as_ref()
            .is_some_and(|claim| claim.token == token)
    }

    /// The Secret as it shall be now, with what makes a write of it fail if it is another by then.
    pub(crate) fn to_secret(&self) -> Result<Secret, HistoryError> {
        let mut secret = self.intent.to_secret()?;
        secret.metadata.uid = Some(self.uid.clone());
        secret.metadata.resource_version = Some(self.resource_version.clone());
        Ok(secret)
    }
}

/// Sees whether a claim is still renewed. No two clocks are compared: a claim has run out when it was seen unchanged for
/// the length of a lease.
#[derive(Clone, Debug, Default)]
pub struct Vigil(Option<(Claim, Instant)>);

impl Vigil {
    /// Looks at a claim. True once it has not moved for so long.
    pub fn has_run_out(&mut self, claim: &Claim, now: Instant, lease: Duration) -> bool {
        match &self.0 {
            Some((seen, since)) if seen == claim => now.saturating_duration_since(*since) >= lease,
            _ => {
                self.0 = Some((claim.clone(), now));
                false
            }
        }
    }
}

/// A new claim.
pub fn claim(who: &str, process: &str, random: u64, now: Timestamp) -> Claim {
    Claim {
        who: who.to_owned(),
        process: process.to_owned(),
        token: format!("{random:016x}"),
        since: now.to_string(),
        renewed_at: now.to_string(),
    }
}

#[cfg(test)]
mod tests;
