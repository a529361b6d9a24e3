//! Recorded objects against live ones, and back to the record.

use futures::FutureExt;

use super::apply::{ApplyOptions, Expect};
use super::read::LiveMeta;
use super::{Cluster, ClusterError, ErrorKind};
use crate::drift::{self, Difference, Scope};
use crate::object::Object;
use crate::ownership::{Owner, owner_of};

/// Tries of a comparison or a repair whose object changes under it each time.
const MAX_TRIES: u32 = 5;

/// How a recorded object stands in the cluster.
#[derive(Debug)]
pub enum Standing {
    /// As recorded.
    AsRecorded,
    /// Something of it was changed.
    Differs(Box<Difference>),
    /// There is no such object; perhaps its namespace or its kind is gone, too.
    Missing,
    /// It is being deleted, and finalizers hold it.
    Going,
    /// Another release has it by now.
    Taken(Owner),
    /// There is an object of that name which bears nobody's marks and has never been applied by us: another one.
    Foreign,
    /// Its kind is served, but no longer in the version of the record.
    Unserved,
}

/// What a comparison came to.
#[derive(Debug)]
pub struct Compared {
    /// How the object stands.
    pub standing: Standing,
    /// Why the server gave no dry run of it, where it did not: then the fields that the record names were compared one by
    /// one.
    pub unasked: Option<ClusterError>,
    /// What was seen, as a later write must find it.
    seen: Expect,
}

/// What a repair came to.
#[derive(Debug)]
pub enum Restored {
    /// Nothing was to be done, and nothing was written.
    AsRecorded,
    /// It has the fields of the record again.
    Changed,
    /// It is there again.
    Created,
    /// It is not ours to mend: it stands like this.
    Left(Standing),
}

impl Cluster {
    /// Compares recorded objects of the release `us` with what there is. Nothing is written. The results are in the order
    /// of the objects.
    ///
    /// The server is asked for a dry run of each object as it stands in the record; where that differs from the live
    /// object, there is drift. Whoever may only read gets a comparison field by field.
    pub async fn compare(
        &self,
        objects: &[&Object],
        us: &Owner,
        scope: Scope,
    ) -> Vec<Result<Compared, ClusterError>> {
        let looks = objects
            .iter()
            .map(|object| self.compare_one(object, us, scope).boxed());
        self.breadth(looks.collect()).await
    }

    /// Applies, with force, those recorded objects of the release `us` that are not as recorded, or gone. The results are
    /// in the order of the objects; one that fails stops no other.
    ///
    /// Each write names the very object that was compared, in the very state: what another release took meanwhile is left
    /// alone.
    pub async fn restore(
        &self,
        objects: &[&Object],
        us: &Owner,
    ) -> Vec<Result<Restored, ClusterError>> {
        let calls = objects
            .iter()
            .map(|object| self.restore_one(object, us).boxed());
        self.breadth(calls.collect()).await
    }

    async fn compare_one(
        &self,
        object: &Object,
        us: &Owner,
        scope: Scope,
    ) -> Result<Compared, ClusterError> {
        let mut tries = 1;
        loop {
            match self.compare_once(object, us, scope).await {
                // It changed, or went, between the look and the dry run.
                Err(error)
                    if matches!(error.kind(), ErrorKind::Stale | ErrorKind::NotFound)
                        && tries < MAX_TRIES =>
                {
                    tries += 1;
                }
                other => return other,
            }
        }
    }

    async fn restore_one(&self, object: &Object, us: &Owner) -> Result<Restored, ClusterError> {
        let mut tries = 1;
        loop {
            let compared = self.compare_one(object, us, Scope::Recorded).await?;
            let restored = match compared.standing {
                Standing::AsRecorded => return Ok(Restored::AsRecorded),
                Standing::Differs(_) => Restored::Changed,
                Standing::Missing => Restored::Created,
                other => return Ok(Restored::Left(other)),
            };
            let options = ApplyOptions {
                force: true,
                expect: compared.seen,
                ..ApplyOptions::default()
            };
            match self.apply(object, &options).await {
                Ok(_) => return Ok(restored),
                Err(error) if error.kind() == ErrorKind::Stale && tries < MAX_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    async fn compare_once(
        &self,
        object: &Object,
        us: &Owner,
        scope: Scope,
    ) -> Result<Compared, ClusterError> {
        let look = async {
            let mapping = self.mapping(object.api_version(), object.kind()).await?;
            let namespace = object.namespace().unwrap_or_default();
            self.get(&mapping, namespace, object.name()).await
        };
        let live = match look.await {
            Ok(Some(live)) => live,
            Ok(None) => return Ok(Compared::absent(Standing::Missing)),
            Err(error) if error.kind() == ErrorKind::NoSuchKind => {
                return Ok(Compared::absent(self.unserved(object).await?));
            }
            Err(error) => return Err(error),
        };
        let metadata = LiveMeta::of(&live);
        let seen = Expect::Present {
            uid: metadata.uid().to_owned(),
            resource_version: metadata.resource_version().to_owned(),
        };
        let as_seen = |standing, unasked| Compared {
            standing,
            unasked,
            seen: seen.clone(),
        };
        let manager = &self.options().field_manager;
        if let Some(standing) = not_ours(object, &metadata, us, manager) {
            return Ok(as_seen(standing, None));
        }
        let options = ApplyOptions {
            force: true,
            dry_run: true,
            expect: seen.clone(),
            ..ApplyOptions::default()
        };
        let recorded = object.value();
        let (difference, unasked) = match self.apply(object, &options).await {
            Ok(applied) => {
                let found = drift::by_server(recorded, applied.live, live, manager, scope);
                (found, None)
            }
            Err(error) if is_refusal(error.kind()) => {
                (drift::by_fields(recorded, live, scope), Some(error))
            }
            Err(error) => return Err(error),
        };
        let standing = difference.map_or(Standing::AsRecorded, |difference| {
            Standing::Differs(Box::new(difference))
        });
        Ok(as_seen(standing, unasked))
    }

    /// What it means that the kind of an object is not served in its version.
    async fn unserved(&self, object: &Object) -> Result<Standing, ClusterError> {
        match self.mapping_of_group(object.group(), object.kind()).await {
            Ok(_) => Ok(Standing::Unserved),
            Err(error) if error.kind() == ErrorKind::NoSuchKind => Ok(Standing::Missing),
            Err(error) => Err(error),
        }
    }
}

impl Compared {
    fn absent(standing: Standing) -> Self {
        Self {
            standing,
            unasked: None,
            seen: Expect::Absent,
        }
    }
}

/// How an object stands that is there and not ours to compare.
fn not_ours(recorded: &Object, live: &LiveMeta, us: &Owner, manager: &str) -> Option<Standing> {
    // The marks of the record say it: a release may be kept under a longer name than its objects bear.
    let us = owner_of(recorded.metadata()).unwrap_or_else(|| us.clone());
    match owner_of(live.value()) {
        Some(owner) if owner != us => Some(Standing::Taken(owner)),
        None if !live.is_applied_by(manager) => Some(Standing::Foreign),
        _ if live.is_deleting() => Some(Standing::Going),
        _ => None,
    }
}

/// Whether the server, asked for a dry run, has said no to it, rather than nothing.
fn is_refusal(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Forbidden
            | ErrorKind::Invalid
            | ErrorKind::Denied
            | ErrorKind::Conflict
            | ErrorKind::Terminating
            | ErrorKind::TooLarge
            | ErrorKind::Unexpected
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn whose_it_is() {
        let marks = |release: &str| json!({ "instance.atc.yoke.cd/release": release, "instance.atc.yoke.cd/namespace": "n" });
        let object = |annotations: Value| {
            let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "annotations": annotations } });
            Object::try_from(object).unwrap()
        };
        let check = |recorded: Value, live: Value, wanted: &str| {
            let live = LiveMeta::of(&json!({ "metadata": live }));
            let us = Owner::new("n", "r");
            let found = not_ours(&object(recorded), &live, &us, "yoke");
            let found = match found {
                None => "ours".to_owned(),
                Some(standing) => format!("{standing:?}"),
            };
            assert!(found.starts_with(wanted), "{found}");
        };
        let applied = json!([{ "manager": "yoke", "operation": "Apply" }]);
        let edited = json!([{ "manager": "yoke", "operation": "Update" }]);
        check(marks("r"), json!({ "annotations": marks("r") }), "ours");
        check(json!({}), json!({ "annotations": marks("r") }), "ours");
        check(
            marks("r"),
            json!({ "annotations": marks("other") }),
            "Taken",
        );
        check(
            marks("bare"),
            json!({ "annotations": marks("bare") }),
            "ours",
        );
        check(marks("r"), json!({ "managedFields": applied }), "ours");
        check(marks("r"), json!({ "managedFields": edited }), "Foreign");
        check(marks("r"), json!({}), "Foreign");
        check(
            marks("r"),
            json!({ "annotations": marks("r"), "deletionTimestamp": "t" }),
            "Going",
        );
        check(
            marks("r"),
            json!({ "annotations": marks("other"), "deletionTimestamp": "t" }),
            "Taken",
        );
    }
}
