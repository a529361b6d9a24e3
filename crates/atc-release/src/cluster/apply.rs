//! Server-side apply of one object.

use http::Method;
use serde_json::Value;

use super::mapping::{Mapping, encode};
use super::request::{APPLY, Call, JSON};
use super::{Cluster, ClusterError, ErrorKind};
use crate::object::Object;

/// What the caller saw of the object before it applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Expect {
    /// Anything: create or update.
    #[default]
    Any,
    /// No such object. If there is one by now, the apply fails with [`ErrorKind::Stale`].
    ///
    /// # Caveats
    /// The API has no "only if absent" for server-side apply, so this is found out, not prevented, in the few
    /// milliseconds since the look. The apply never forces here, whatever the options say: an object in which another
    /// field manager set a field to another value is left alone. One made by the same field manager (another release
    /// of ours) has been changed when the error says that it was there.
    Absent,
    /// This very object in this very state. If it changed, was replaced or is gone by now, the apply fails with
    /// [`ErrorKind::Stale`] and changes nothing.
    Present {
        /// `metadata.uid`.
        uid: String,
        /// `metadata.resourceVersion`.
        resource_version: String,
    },
}

/// How to apply.
#[derive(Clone, Debug, Default)]
pub struct ApplyOptions {
    /// Take fields over that other managers own.
    pub force: bool,
    /// Only ask the server whether it would do it (admission included); nothing is stored.
    pub dry_run: bool,
    /// What the object must be like before.
    pub expect: Expect,
    /// Another field manager than the cluster's own.
    pub manager: Option<String>,
    /// The object is new to the release. If it exists, fields that client-side apply set are ours from now on, so that
    /// those which we do not want go.
    pub adopt: bool,
    /// With `force`: the object as it was applied before. Entries of its lists that others replaced (a port that got
    /// another number) are taken out again, at the cost of one look at its metadata. Where the server refuses to have both,
    /// that is done without this, too.
    pub recorded: Option<Object>,
}

/// What an apply came to.
#[derive(Clone)]
pub struct Applied {
    /// The object as the server answered: with its defaults, uid and resourceVersion. Of a dry run: as it would be.
    pub live: Value,
    /// Whether the object was made (HTTP 201) rather than changed or found equal.
    pub created: bool,
    /// Warnings of the server: unknown fields, deprecated versions. At most 16.
    pub warnings: Vec<String>,
}

impl std::fmt::Debug for Applied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The object may be a Secret.
        f.debug_struct("Applied")
            .field("created", &self.created)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// Applies an object as it stands (`metadata.namespace` included).
    ///
    /// The object goes to the server as this very JSON, by the mapping that discovery has for its kind. Validation is
    /// the server's default, so that a manifest which was accepted elsewhere is accepted here.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) (fields of other managers, without force), [`Stale`](ErrorKind::Stale)
    /// (`expect` does not hold), [`Invalid`](ErrorKind::Invalid), [`NoSuchKind`](ErrorKind::NoSuchKind),
    /// [`NotFound`](ErrorKind::NotFound) (no such namespace), ….
    pub async fn apply(
        &self,
        object: &Object,
        options: &ApplyOptions,
    ) -> Result<Applied, ClusterError> {
        let (api_version, kind) = (object.api_version(), object.kind());
        let mapping = self.mapping(api_version, kind).await?;
        match self.apply_healing(&mapping, object, options).await {
            // What we knew of the kind may have proved wrong: its CRD came back with another plural or scope.
            Err(error) if error.kind() == ErrorKind::NoSuchKind => {
                let anew = self.mapping(api_version, kind).await?;
                if anew == mapping {
                    Err(error)
                } else {
                    self.apply_healing(&anew, object, options).await
                }
            }
            other => other,
        }
    }

    /// Applies, and takes over what would stand in the way of it.
    async fn apply_healing(
        &self,
        mapping: &Mapping,
        object: &Object,
        options: &ApplyOptions,
    ) -> Result<Applied, ClusterError> {
        if options.dry_run {
            return self.apply_mapped(mapping, object, options).await;
        }
        if let Some(recorded) = options.recorded.as_ref().filter(|_| options.force) {
            self.reclaim(mapping, object, options, Some(recorded))
                .await?;
        }
        let mut applied = self.apply_mapped(mapping, object, options).await;
        if let Err(error) = &applied
            && options.force
            && error.kind() == ErrorKind::Invalid
            && self.reclaim(mapping, object, options, None).await?
        {
            applied = self.apply_mapped(mapping, object, options).await;
        }
        let applied = applied?;
        if options.adopt && !applied.created {
            return self.adopt(mapping, object, options, applied).await;
        }
        Ok(applied)
    }

    /// Creates an object that must not be there; gives it as it is then.
    ///
    /// # Errors
    /// [`AlreadyExists`](ErrorKind::AlreadyExists), and nothing was changed; ….
    pub async fn create(&self, object: &Object, manager: &str) -> Result<Value, ClusterError> {
        let mapping = self.mapping(object.api_version(), object.kind()).await?;
        let call = Call::collection("create", Method::POST, &mapping, object.namespace())?
            .query(&format!("fieldManager={}", encode(manager)))
            .body(JSON, object.value());
        self.known(self.call(&call).await, &mapping)?.json(&call)
    }

    pub(super) async fn apply_mapped(
        &self,
        mapping: &Mapping,
        object: &Object,
        options: &ApplyOptions,
    ) -> Result<Applied, ClusterError> {
        let call = self.apply_call(mapping, object, options)?;
        let absent = options.expect == Expect::Absent;
        let appeared = || ClusterError::Appeared {
            object: call.object.clone(),
        };
        let answer = match self.known(self.call(&call).await, mapping) {
            Ok(answer) => answer,
            // Who would force meets this conflict only since we did not.
            Err(error) if absent && options.force && error.kind() == ErrorKind::Conflict => {
                return Err(appeared());
            }
            Err(error) => return Err(error),
        };
        let created = answer.status == 201;
        if absent && !created {
            return Err(appeared());
        }
        Ok(Applied {
            created,
            live: answer.json(&call)?,
            warnings: answer.warnings,
        })
    }

    pub(super) fn manager<'a>(&'a self, options: &'a ApplyOptions) -> &'a str {
        let own = &self.inner.options.field_manager;
        options.manager.as_deref().unwrap_or(own)
    }

    fn apply_call(
        &self,
        mapping: &Mapping,
        object: &Object,
        options: &ApplyOptions,
    ) -> Result<Call, ClusterError> {
        let mut query = format!("fieldManager={}", encode(self.manager(options)));
        if options.force && options.expect != Expect::Absent {
            query.push_str("&force=true");
        }
        if options.dry_run {
            query.push_str("&dryRun=All");
        }
        let namespace = object.namespace().unwrap_or_default();
        let call = Call::object(
            "apply",
            Method::PATCH,
            mapping,
            namespace,
            object.name(),
            "",
        )?;
        let call = call.query(&query);
        Ok(match &options.expect {
            Expect::Any | Expect::Absent => call.body(APPLY, object.value()),
            Expect::Present {
                uid,
                resource_version,
            } => call.body(APPLY, &with_identity(object, uid, resource_version)),
        })
    }
}

/// The object with a uid and a resourceVersion in its metadata, which the server takes as preconditions.
fn with_identity(object: &Object, uid: &str, resource_version: &str) -> Value {
    let mut value = object.value().clone();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("uid".to_owned(), uid.into());
        metadata.insert("resourceVersion".to_owned(), resource_version.into());
    }
    value
}
