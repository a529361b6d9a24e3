//! Applying a stage.

use futures::FutureExt;

use super::apply::{Applied, ApplyOptions};
use super::{Cluster, ClusterError};
use crate::object::Object;

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
}
