//! Releases and their revisions: how a revision is kept in a Secret, which one is active, which are kept, what is pinned.
//!
//! The form is that of the existing tool, so that either reads the other's releases: a Secret `yoke.<12 hex>` with two
//! labels, six annotations and one key, the gzipped JSON of the stages as applied.

use std::collections::BTreeMap;

use atc_api::names;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sha1::{Digest, Sha1};

use crate::object::Stages;

mod pin;
mod record;
mod revisions;

pub use pin::{check_pin, is_pinnable};
pub use record::{pack, unpack};
pub use revisions::{active, beyond_cap, number, numbered};

/// Bytes that the data of one Secret may hold: Kubernetes' own limit (`MaxSecretSize`, 1 MiB), before base64.
pub const MAX_RECORD_BYTES: usize = 1_048_576;

/// Bytes that a record may unpack to, so that a Secret made to blow up can't take the process with it. 128 MiB is twice
/// what a flight may print.
pub const MAX_UNPACKED_BYTES: u64 = 128 << 20;

/// `active-at` of a revision that was written but never became the active one: the takeoff that made it did not finish.
/// Its objects may live, so plans must know them.
pub const NEVER_ACTIVE: Timestamp = Timestamp::UNIX_EPOCH;

/// What is known of a revision without unpacking it: labels and annotations of its Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Name of its Secret: `yoke.` and 12 hex digits, see [`secret_name`].
    pub secret: String,
    /// Uid of the Secret, once it is in the cluster.
    pub uid: Option<String>,
    /// Resource version of the Secret as it was read.
    pub resource_version: Option<String>,
    /// Full name of the release, with its prefix if it has one.
    pub release: String,
    /// Target namespace of the release; the Secret lives there.
    pub namespace: String,
    /// When the revision was made. Revisions are numbered by it.
    pub created_at: Timestamp,
    /// When it last became the active one; [`NEVER_ACTIVE`] if it never did.
    pub active_at: Timestamp,
    /// Number of objects.
    pub resources: usize,
    /// Where the module came from; empty for objects that came without one.
    pub source_url: String,
    /// Hex SHA-1 of the module; empty without one.
    pub source_checksum: String,
    /// Whether the Secret carries the old form of labels (the plain release name) and is to be rewritten.
    pub old_form: bool,
}

/// One revision of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// Labels and annotations.
    pub head: Head,
    /// The objects as applied, with their marks.
    pub stages: Stages,
}

impl AsRef<Head> for Revision {
    fn as_ref(&self) -> &Head {
        &self.head
    }
}

impl AsRef<Head> for Head {
    fn as_ref(&self) -> &Head {
        self
    }
}

/// Why a revision can't be written, read or used.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The record does not fit a Secret. Nothing was applied.
    #[error(
        "release \"{release}\" can't be recorded: its {objects} objects take {size} bytes packed, a Secret holds at most {limit}"
    )]
    TooBig {
        /// The release.
        release: String,
        /// How many objects it has.
        objects: usize,
        /// Bytes after packing.
        size: usize,
        /// [`MAX_RECORD_BYTES`].
        limit: usize,
    },
    /// The stages can't be packed.
    #[error("release \"{release}\" can't be recorded")]
    Pack {
        /// The release.
        release: String,
        /// What failed.
        #[source]
        source: std::io::Error,
    },
    /// A label or annotation of the Secret is absent or of another form.
    #[error("secret \"{secret}\" is no revision: {field} {why}")]
    Head {
        /// The Secret.
        secret: String,
        /// Label or annotation.
        field: &'static str,
        /// What is wrong.
        why: String,
    },
    /// The Secret's data can't be unpacked.
    #[error("the record in secret \"{secret}\" can't be unpacked")]
    Unpack {
        /// The Secret.
        secret: String,
        /// What failed.
        #[source]
        source: std::io::Error,
    },
    /// The Secret's data is no list of stages. What it holds is not shown: it may be secret.
    #[error("the record in secret \"{secret}\" is no list of stages: {why}")]
    Content {
        /// The Secret.
        secret: String,
        /// Where and why, without content.
        why: String,
    },
    /// The same source gave another module before.
    #[error(
        "the module at \"{url}\" has changed: its SHA-1 is {got}, but a revision of this release was made of {wanted}; \
         use another version or another URL"
    )]
    Pinned {
        /// The module's source.
        url: String,
        /// Checksum in the history.
        wanted: String,
        /// Checksum now.
        got: String,
    },
}

/// Value of the label that finds a release's Secrets: hex SHA-1 of its full name, so that names of any length and form work.
pub fn release_label(release: &str) -> String {
    hex::encode(Sha1::digest(release))
}

/// Label selector that finds all revisions of a release, in the new form of labels and in the old one (the plain name).
///
/// Locks have the plain name too, but another kind.
pub fn selector(release: &str) -> String {
    let hash = release_label(release);
    let release = if is_label_value(release) {
        format!("{hash},{release}")
    } else {
        hash
    };
    format!(
        "{}={},{} in ({release})",
        names::LABEL_KIND,
        names::KIND_REVISION,
        names::LABEL_RELEASE
    )
}

/// Label selector that finds the revisions of all releases.
pub fn selector_of_all() -> String {
    format!("{}={}", names::LABEL_KIND, names::KIND_REVISION)
}

/// Name of a release's lock Secret.
pub fn lock_name(release: &str) -> String {
    format!("yoke.{}", release_label(release))
}

/// Name of a revision's Secret, from six random bytes.
pub fn secret_name(random: [u8; 6]) -> String {
    format!("yoke.{}", hex::encode(random))
}

pub(crate) fn is_label_value(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    text.len() <= 63
        && ends(bytes.first())
        && ends(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

impl Head {
    /// Reads a revision's labels and annotations.
    ///
    /// Older revisions lack some: the release is then the label itself, times are that of the Secret's creation.
    pub fn from_metadata(metadata: &ObjectMeta) -> Result<Self, HistoryError> {
        let secret = metadata.name.clone().unwrap_or_default();
        let bad = |field, why: String| HistoryError::Head {
            secret: secret.clone(),
            field,
            why,
        };
        let label = |key: &str| {
            metadata
                .labels
                .as_ref()
                .and_then(|labels| labels.get(key))
                .map(String::as_str)
        };
        let annotation = |key: &str| {
            metadata
                .annotations
                .as_ref()
                .and_then(|map| map.get(key))
                .map(String::as_str)
        };
        match label(names::LABEL_KIND) {
            Some(names::KIND_REVISION) => (),
            other => {
                return Err(bad(
                    names::LABEL_KIND,
                    format!("is \"{}\"", other.unwrap_or_default()),
                ));
            }
        }
        let Some(label) = label(names::LABEL_RELEASE).filter(|label| !label.is_empty()) else {
            return Err(bad(names::LABEL_RELEASE, "is absent".to_owned()));
        };
        let release = annotation(names::ANNOTATION_RELEASE_NAME)
            .filter(|name| !name.is_empty())
            .unwrap_or(label);
        let made = || metadata.creation_timestamp.as_ref().map(|time| time.0);
        let time = |field: &'static str| match annotation(field) {
            Some(text) => text
                .parse::<Timestamp>()
                .map_err(|_| bad(field, format!("\"{text}\" is no RFC 3339 time"))),
            None => made().ok_or_else(|| bad(field, "is absent".to_owned())),
        };
        let created_at = time(names::ANNOTATION_CREATED_AT)?;
        let active_at = match annotation(names::ANNOTATION_ACTIVE_AT) {
            Some(_) => time(names::ANNOTATION_ACTIVE_AT)?,
            None => created_at,
        };
        Ok(Self {
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            release: release.to_owned(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            created_at,
            active_at,
            resources: annotation(names::ANNOTATION_RESOURCES)
                .and_then(|text| text.parse().ok())
                .unwrap_or_default(),
            source_url: annotation(names::ANNOTATION_SOURCE_URL)
                .unwrap_or_default()
                .to_owned(),
            source_checksum: annotation(names::ANNOTATION_SOURCE_CHECKSUM)
                .unwrap_or_default()
                .to_owned(),
            old_form: label != release_label(release),
            secret,
        })
    }

    /// The labels of the Secret, in the new form.
    pub fn labels(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            (
                names::LABEL_KIND.to_owned(),
                names::KIND_REVISION.to_owned(),
            ),
            (
                names::LABEL_RELEASE.to_owned(),
                release_label(&self.release),
            ),
        ])
    }

    /// The annotations of the Secret: all six, also where empty.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let pairs = [
            (names::ANNOTATION_CREATED_AT, self.created_at.to_string()),
            (names::ANNOTATION_ACTIVE_AT, self.active_at.to_string()),
            (names::ANNOTATION_RESOURCES, self.resources.to_string()),
            (names::ANNOTATION_SOURCE_URL, self.source_url.clone()),
            (
                names::ANNOTATION_SOURCE_CHECKSUM,
                self.source_checksum.clone(),
            ),
            (names::ANNOTATION_RELEASE_NAME, self.release.clone()),
        ];
        pairs.map(|(key, value)| (key.to_owned(), value)).into()
    }
}

impl Revision {
    /// A new revision, active from `now` on.
    pub fn new(
        release: impl Into<String>,
        namespace: impl Into<String>,
        stages: Stages,
        random: [u8; 6],
        now: Timestamp,
    ) -> Self {
        let head = Head {
            secret: secret_name(random),
            uid: None,
            resource_version: None,
            release: release.into(),
            namespace: namespace.into(),
            created_at: now,
            active_at: now,
            resources: stages.count(),
            source_url: String::new(),
            source_checksum: String::new(),
            old_form: false,
        };
        Self { head, stages }
    }

    /// The Secret that keeps this revision.
    ///
    /// # Errors
    /// [`HistoryError::TooBig`] when the record does not fit; make it before anything is applied.
    pub fn to_secret(&self) -> Result<Secret, HistoryError> {
        let packed = pack(&self.stages).map_err(|source| HistoryError::Pack {
            release: self.head.release.clone(),
            source,
        })?;
        if packed.len() > MAX_RECORD_BYTES {
            return Err(HistoryError::TooBig {
                release: self.head.release.clone(),
                objects: self.stages.count(),
                size: packed.len(),
                limit: MAX_RECORD_BYTES,
            });
        }
        Ok(Secret {
            metadata: ObjectMeta {
                name: Some(self.head.secret.clone()),
                namespace: Some(self.head.namespace.clone()),
                labels: Some(self.head.labels()),
                annotations: Some(self.head.annotations()),
                ..ObjectMeta::default()
            },
            type_: Some("Opaque".to_owned()),
            data: Some(BTreeMap::from([(
                names::KEY_RESOURCES.to_owned(),
                ByteString(packed),
            )])),
            ..Secret::default()
        })
    }

    /// Reads a revision from its Secret.
    pub fn from_secret(secret: &Secret) -> Result<Self, HistoryError> {
        let head = Head::from_metadata(&secret.metadata)?;
        let data = secret
            .data
            .as_ref()
            .and_then(|data| data.get(names::KEY_RESOURCES));
        let bytes = data.map_or(&[][..], |bytes| &bytes.0);
        let stages = unpack(&head.secret, bytes)?;
        Ok(Self { head, stages })
    }
}

#[cfg(test)]
mod tests;
