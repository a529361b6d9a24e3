//! Asking about all stages before the first write: the API server, and where it cannot tell yet, what comes with the output.

use std::collections::HashSet;

use futures::FutureExt;

use super::apply::{Applied, ApplyOptions, Expect};
use super::{Cluster, ClusterError, ErrorKind};
use crate::object::Object;
use crate::schema::{Definitions, Judgement};

/// The namespace in which the server is asked about objects of a namespace that is not there yet: the API server makes it
/// itself and lets nobody delete it.
const STAND_IN: &str = "default";

/// What is said of an object in advance.
#[derive(Debug)]
pub enum Preview {
    /// The server would apply it, to this.
    Accepted(Applied),
    /// The server cannot judge it yet: its namespace or its kind comes with the same output, or entries of others must go
    /// first. Why, and what was looked at in the server's place, in words.
    Unjudged(String),
    /// It would be refused.
    Refused(ClusterError),
}

impl Cluster {
    /// Asks the server about all objects of all stages, before anything is written. `options` are those of the apply
    /// that would follow; the dry run is added.
    ///
    /// Where the definition of a kind comes with the output, what the server cannot judge is held against its schema.
    /// Where the namespace does, or is [expected](Self::expecting), the server is asked about the same object in the namespace `default`.
    ///
    /// The answers are in the order of stages and objects.
    pub async fn preview(
        &self,
        stages: &[Vec<Object>],
        options: impl Fn(&Object) -> ApplyOptions,
    ) -> Vec<Vec<Preview>> {
        let mut coming = Coming::of(stages);
        coming.namespaces.extend(self.expected.as_deref());
        let coming = &coming;
        let calls = stages.iter().flatten().map(|object| {
            let options = ApplyOptions {
                dry_run: true,
                ..options(object)
            };
            async move { self.foresee(object, &options, coming).await }.boxed()
        });
        let mut answers = self.breadth(calls.collect()).await.into_iter();
        stages
            .iter()
            .map(|stage| answers.by_ref().take(stage.len()).collect())
            .collect()
    }

    async fn foresee(
        &self,
        object: &Object,
        options: &ApplyOptions,
        coming: &Coming<'_>,
    ) -> Preview {
        let answer = self.apply(object, options).await;
        if let Some(definition) = coming.definitions.definition(object) {
            return self
                .hold_against(object, options, answer, definition, coming)
                .await;
        }
        match answer {
            Ok(applied) => Preview::Accepted(applied),
            Err(error) if coming.brings_namespace(&error) => self.stand_in(object, options).await,
            Err(error) => self.reclaimable(object, options, error).await,
        }
    }

    /// Of an object whose definition is in the output: the server knows another one, or none yet.
    async fn hold_against(
        &self,
        object: &Object,
        options: &ApplyOptions,
        answer: Result<Applied, ClusterError>,
        definition: &Object,
        coming: &Coming<'_>,
    ) -> Preview {
        let judgement = coming.definitions.judge(object).unwrap_or_default();
        let fits = judgement.faults.is_empty();
        let kind = object.group_kind();
        match answer {
            Err(error) if error.kind() == ErrorKind::NoSuchKind => {
                judgement.told(object, &format!("its kind {kind} is not served yet"))
            }
            Ok(applied) if fits => Preview::Accepted(applied),
            Ok(_) if self.redefines(definition, options).await => judgement.told(object, ""),
            Ok(applied) => Preview::Accepted(applied),
            Err(error) if coming.brings_namespace(&error) && !fits => judgement.told(object, ""),
            Err(error) if coming.brings_namespace(&error) => self.stand_in(object, options).await,
            Err(error)
                if error.kind() == ErrorKind::Invalid
                    && self.redefines(definition, options).await =>
            {
                judgement.told(object, &format!("its kind {kind} changes before it"))
            }
            Err(error) => self.reclaimable(object, options, error).await,
        }
    }

    /// Whether the server serves another definition than this one. False where it cannot be told.
    async fn redefines(&self, definition: &Object, options: &ApplyOptions) -> bool {
        let Ok(mapping) = self
            .mapping(definition.api_version(), definition.kind())
            .await
        else {
            return false;
        };
        let live = self.metadata(&mapping, "", definition.name()).await;
        let (Ok(applied), Ok(Some(live))) = (self.apply(definition, options).await, live) else {
            return false;
        };
        applied.live["metadata"]["generation"].as_i64() != live.generation()
    }

    /// Asks about an object of a namespace that is not there yet as if it lay in another one.
    async fn stand_in(&self, object: &Object, options: &ApplyOptions) -> Preview {
        let missing = object.namespace().unwrap_or_default();
        let mut other = object.clone();
        other.set_namespace(Some(STAND_IN));
        let options = ApplyOptions {
            expect: Expect::Absent,
            ..options.clone()
        };
        let unasked = Preview::Unjudged(format!(
            "its namespace \"{missing}\" does not exist yet; nothing of it was checked"
        ));
        match self.apply(&other, &options).await {
            Ok(_) => Preview::Unjudged(format!(
                "its namespace \"{missing}\" does not exist yet; in the namespace \"{STAND_IN}\" it would be taken, and rules of the namespace (quotas, policies) were not checked"
            )),
            // An object of that name may be there and have fields that can't be changed.
            Err(ClusterError::Refused { doing, refusal, .. })
                if refusal.kind() == ErrorKind::Invalid && self.is_absent(&other).await =>
            {
                Preview::Refused(ClusterError::Refused {
                    doing,
                    object: object.canonical(),
                    refusal,
                })
            }
            Err(_) => unasked,
        }
    }

    async fn is_absent(&self, object: &Object) -> bool {
        let found = self.metadata_of(&[object]).await;
        found.into_iter().all(|live| matches!(live, Ok(None)))
    }

    /// A refusal, unless an apply by force could heal it.
    async fn reclaimable(
        &self,
        object: &Object,
        options: &ApplyOptions,
        error: ClusterError,
    ) -> Preview {
        if options.force
            && error.kind() == ErrorKind::Invalid
            && matches!(self.could_reclaim(object, options).await, Ok(true))
        {
            return Preview::Unjudged(
                "entries of its lists that others replaced are taken out first".to_owned(),
            );
        }
        Preview::Refused(error)
    }
}

impl Judgement {
    /// As a preview. `why` the server could not be asked.
    fn told(self, object: &Object, why: &str) -> Preview {
        if !self.faults.is_empty() {
            return Preview::Refused(ClusterError::Misfit {
                object: object.canonical(),
                faults: self.faults.join("; "),
            });
        }
        let mut words = format!("{why}; it fits the schema that comes with it");
        if !self.unchecked.is_empty() {
            words.push_str(", not checked: ");
            words.push_str(&self.unchecked.join(", "));
        }
        Preview::Unjudged(words)
    }
}

/// Namespaces and kinds that come with the output itself.
struct Coming<'a> {
    namespaces: HashSet<&'a str>,
    definitions: Definitions<'a>,
}

impl<'a> Coming<'a> {
    fn of(stages: &'a [Vec<Object>]) -> Self {
        let objects = || stages.iter().flatten();
        Self {
            namespaces: objects()
                .filter(|object| object.is_foundation() && object.kind() == "Namespace")
                .map(Object::name)
                .collect(),
            definitions: Definitions::of(objects()),
        }
    }

    /// Whether this error is about a namespace that comes with the output.
    fn brings_namespace(&self, error: &ClusterError) -> bool {
        error
            .refusal()
            .and_then(|refusal| refusal.missing_namespace())
            .is_some_and(|namespace| self.namespaces.contains(namespace))
    }
}
