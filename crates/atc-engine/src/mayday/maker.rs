//! Whose release it is: the Flight, the ClusterFlight or the instance of an Airway that it is made for. While that is there, its
//! controller makes again whatever somebody else removes.

use atc_api::{ResourceRef, names};
use atc_release::cluster::{ClusterError, ErrorKind};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::instance::{home_of, release_of};

impl Engine {
    /// The custom resource that a controller makes this release for: one that is there, has the controller's finalizer, and is
    /// not being deleted.
    ///
    /// *Caveats*: one that may not be read, or whose kind is not served any more, is none. That of an instance is told by the
    /// marks of what is recorded, so one that made nothing is not found.
    pub async fn maker(
        &self,
        release: &str,
        namespace: &str,
    ) -> Result<Option<ResourceRef>, EngineError> {
        let maker = match flight_of(release, namespace) {
            Some(flight) => Some(flight),
            None => self.marked_instance(release, namespace).await?,
        };
        let Some(maker) = maker else {
            return Ok(None);
        };
        match self.lives(&maker).await {
            Ok(lives) => Ok(lives.then_some(maker)),
            // What passes by itself says nothing.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Timeout | ErrorKind::TooManyRequests | ErrorKind::Unavailable
                ) =>
            {
                Err(EngineError::cluster(error))
            }
            // No right, no such kind, a version that nobody converts while no atc runs: no reason to keep a release.
            Err(error) => {
                tracing::debug!(%maker, %error, "cannot see whether it is there; the release is nobody's");
                Ok(None)
            }
        }
    }

    /// The instance that the recorded objects are marked as made for.
    async fn marked_instance(
        &self,
        release: &str,
        namespace: &str,
    ) -> Result<Option<ResourceRef>, EngineError> {
        // Such a release begins with a group and a kind.
        if !release.contains('.') {
            return Ok(None);
        }
        let revisions = self.cluster().full_revisions(release, namespace).await;
        let revisions = revisions.map_err(|source| EngineError::record(release, source))?;
        let mut marks = revisions
            .iter()
            .flat_map(|revision| revision.stages.objects())
            .filter_map(|object| object.annotation(names::ANNOTATION_INSTANCE_REF));
        Ok(marks.find_map(|mark| instance_of(mark, release, namespace)))
    }

    async fn lives(&self, maker: &ResourceRef) -> Result<bool, ClusterError> {
        let (cluster, kind) = (self.cluster(), &maker.group_kind);
        let mapping = cluster.mapping_of_group(&kind.group, &kind.kind).await?;
        let live = cluster
            .metadata(&mapping, &maker.namespace, &maker.name)
            .await?;
        Ok(live.is_some_and(|live| {
            !live.is_deleting() && live.finalizers().contains(&names::FINALIZER_INSTANCE)
        }))
    }
}

/// The Flight or ClusterFlight whose record bears this name in this namespace.
fn flight_of(release: &str, namespace: &str) -> Option<ResourceRef> {
    let flight: ResourceRef = release.parse().ok()?;
    let kind = if flight.namespace.is_empty() {
        "ClusterFlight"
    } else {
        "Flight"
    };
    let is_one = flight.group_kind.group == names::GROUP && flight.group_kind.kind == kind;
    let is_its_record = flight.to_string() == release && home_of(&flight.namespace) == namespace;
    (is_one && is_its_record).then_some(flight)
}

/// The instance that a mark names, if it is that of this release.
fn instance_of(mark: &str, release: &str, namespace: &str) -> Option<ResourceRef> {
    let instance: ResourceRef = mark.parse().ok()?;
    let is_its_record =
        release_of(&instance) == release && home_of(&instance.namespace) == namespace;
    is_its_record.then_some(instance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flights_by_the_names_of_their_records() {
        let check = |release: &str, namespace: &str, expect: bool| {
            let found = flight_of(release, namespace);
            assert_eq!(found.is_some(), expect, "{release} in {namespace}");
        };
        check("n/Flight.yoke.cd:x", "n", true);
        check("default/Flight.yoke.cd:x.y", "default", true);
        check("/ClusterFlight.yoke.cd:x", "default", true);
        // Recorded elsewhere, or under another name.
        check("n/Flight.yoke.cd:x", "m", false);
        check("/ClusterFlight.yoke.cd:x", "n", false);
        check("ClusterFlight.yoke.cd:x", "default", false);
        check("/Flight.yoke.cd:x", "default", false);
        check("n/ClusterFlight.yoke.cd:x", "n", false);
        check("n/Flight.example.dev:x", "n", false);
        check("n/Flight:x", "n", false);
        check("x", "n", false);
        check("", "n", false);
    }

    #[test]
    fn instances_by_the_marks_of_their_objects() {
        let check = |mark: &str, release: &str, namespace: &str, expect: bool| {
            let found = instance_of(mark, release, namespace);
            assert_eq!(found.is_some(), expect, "{mark}: {release} in {namespace}");
        };
        check("n/App.x.dev:a", "x.dev.App.n.a", "n", true);
        check("/App.x.dev:a", "x.dev.App.a", "default", true);
        check("n/App.x.dev:a", "x.dev.App.n.a", "m", false);
        check("/App.x.dev:a", "x.dev.App.a", "n", false);
        check("n/App.x.dev:a", "x.dev.App.n.b", "n", false);
        check("n/App.x.dev:a", "some.name", "n", false);
        check("no reference", "x.dev.App.n.a", "n", false);
    }
}
