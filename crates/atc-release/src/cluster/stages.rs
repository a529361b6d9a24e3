//! Applying a stage, and asking about all stages before the first write.

use std::collections::HashSet;

use futures::FutureExt;
use serde_json::Value;

use super::apply::{Applied, ApplyOptions};
use super::{Cluster, ClusterError, ErrorKind};
use crate::object::Object;

/// What the server says of an object in advance.
#[derive(Debug)]
pub enum Preview {
    /// It would be applied, to this.
    Accepted(Applied),
    /// It cannot be judged yet: its namespace or its kind comes with the same output, or entries of others must go first.
    /// Why, in words.
    Unjudged(String),
    /// It would be refused.
    Refused(ClusterError),
}

impl Cluster {
    /// Applies the objects of a stage, side by side. The results are in the order of the
    /// objects; one that fails stops no other.
    pub async fn apply_stage(
        &self,
        objects: &[Object],
        options: impl Fn(&Object) -> ApplyOptions,
    ) -> Vec<Result<Applied, ClusterError>> {
        let calls = objects.iter().map(|object| {
            let options = options(object);
            async move { self.apply(object, &options).await }.boxed()
        });
        self.breadth(calls.collect()).await
    }

    /// Asks the server about all objects of all stages, before anything is written. `options` are those of the apply
    /// that would follow; the dry run is added.
    ///
    /// The answers are in the order of stages and objects.
    pub async fn preview(
        &self,
        stages: &[Vec<Object>],
        options: impl Fn(&Object) -> ApplyOptions,
    ) -> Vec<Vec<Preview>> {
        let coming = Coming::of(stages);
        let calls = stages.iter().flatten().map(|object| {
            let options = ApplyOptions {
                dry_run: true,
                ..options(object)
            };
            let coming = &coming;
            async move {
                match self.apply(object, &options).await {
                    Ok(applied) => Preview::Accepted(applied),
                    Err(error) if options.force && error.kind() == ErrorKind::Invalid => {
                        match self.could_reclaim(object, &options).await {
                            Ok(true) => Preview::Unjudged(
                                "entries of its lists that others replaced are taken out first"
                                    .to_owned(),
                            ),
                            _ => Preview::Refused(error),
                        }
                    }
                    Err(error) => coming.judge(object, error),
                }
            }
            .boxed()
        });
        let mut answers = self.breadth(calls.collect()).await.into_iter();
        stages
            .iter()
            .map(|stage| answers.by_ref().take(stage.len()).collect())
            .collect()
    }
}

/// Namespaces and kinds that come with the output itself.
struct Coming<'a> {
    namespaces: HashSet<&'a str>,
    /// Group, kind.
    kinds: HashSet<(&'a str, &'a str)>,
}

impl<'a> Coming<'a> {
    fn of(stages: &'a [Vec<Object>]) -> Self {
        let mut coming = Self {
            namespaces: HashSet::new(),
            kinds: HashSet::new(),
        };
        for object in stages.iter().flatten() {
            match (object.group(), object.kind()) {
                ("", "Namespace") => {
                    coming.namespaces.insert(object.name());
                }
                ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                    let text = |path| object.value().pointer(path).and_then(Value::as_str);
                    if let (Some(group), Some(kind)) =
                        (text("/spec/group"), text("/spec/names/kind"))
                    {
                        coming.kinds.insert((group, kind));
                    }
                }
                _ => {}
            }
        }
        coming
    }

    /// An error that the output itself will heal is no refusal.
    fn judge(&self, object: &Object, error: ClusterError) -> Preview {
        let missing = error
            .refusal()
            .and_then(|refusal| refusal.missing_namespace());
        if missing.is_some_and(|namespace| self.namespaces.contains(namespace)) {
            return Preview::Unjudged(format!(
                "its namespace \"{}\" does not exist yet",
                object.namespace().unwrap_or_default()
            ));
        }
        if error.kind() == ErrorKind::NoSuchKind
            && self.kinds.contains(&(object.group(), object.kind()))
        {
            return Preview::Unjudged(format!(
                "its kind {} does not exist yet",
                object.group_kind()
            ));
        }
        Preview::Refused(error)
    }
}
