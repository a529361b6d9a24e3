//! What of a release is not as its record says, and bringing it back: drift and repair, without running the flight.
//!
//! Neither makes a revision. Nothing else is touched than what the active revision names.

use atc_release::cluster::{Compared, Restored, Standing};
use atc_release::drift::Scope;
use atc_release::history::{self, Revision};
use atc_release::object::Object;
use atc_release::ownership::Owner;

use crate::engine::Engine;
use crate::error::{EngineError, chain};

/// A recorded object that is not as it should be.
#[derive(Debug)]
pub struct Drifted {
    /// As recorded.
    pub object: Object,
    /// How it stands; never [`Standing::AsRecorded`].
    pub standing: Standing,
}

/// What a look at a release came to.
#[derive(Debug, Default)]
pub struct DriftReport {
    /// How many objects the active revision names.
    pub objects: usize,
    /// Those that are not as recorded, in the order of the record.
    pub drifted: Vec<Drifted>,
    /// Objects of which the server gave no dry run, so that they were compared field by field: name and reason.
    pub unasked: Vec<String>,
}

/// An object that a repair has written.
#[derive(Debug)]
pub struct Repaired {
    /// As recorded.
    pub object: Object,
    /// Whether it was gone, rather than changed.
    pub was_missing: bool,
}

/// What a repair came to.
#[derive(Debug, Default)]
pub struct RepairReport {
    /// How many objects the active revision names.
    pub objects: usize,
    /// What was written.
    pub repaired: Vec<Repaired>,
    /// What is not as recorded and was left alone, since it is not the release's or on its way out.
    pub left: Vec<Drifted>,
    /// What could not be looked at or written: one line an object.
    pub failures: Vec<String>,
}

impl Engine {
    /// Compares all that the active revision of a release names with what there is. Nothing is written. `None` where there
    /// is no such release.
    ///
    /// # Errors
    /// Also when a single object cannot be read: what is not seen is not called fine.
    pub async fn drift(
        &self,
        release: &str,
        namespace: &str,
        scope: Scope,
    ) -> Result<Option<DriftReport>, EngineError> {
        let Some(revision) = self.active_revision(release, namespace).await? else {
            return Ok(None);
        };
        let us = Owner::new(namespace, release);
        let objects: Vec<&Object> = revision.stages.objects().collect();
        let answers = self.reach().compare(&objects, &us, scope).await;
        let mut report = DriftReport {
            objects: objects.len(),
            ..DriftReport::default()
        };
        let mut failures = Vec::new();
        for (object, answer) in objects.into_iter().zip(answers) {
            match answer {
                Ok(compared) => report.take(object, compared),
                Err(error) => failures.push(chain(&error)),
            }
        }
        if failures.is_empty() {
            Ok(Some(report))
        } else {
            Err(EngineError::Refused {
                step: "compare",
                failures,
            })
        }
    }

    /// Applies, with force, what is not as the active revision of a release says, stage by stage. `None` where there is no
    /// such release.
    ///
    /// *Guarantees*: what is as recorded is not written; what another release has taken, or what bears the name without
    /// being ours, is left alone and named; a failure stops no other object, and is in the report.
    pub async fn repair(
        &self,
        release: &str,
        namespace: &str,
    ) -> Result<Option<RepairReport>, EngineError> {
        let Some(revision) = self.active_revision(release, namespace).await? else {
            return Ok(None);
        };
        let us = Owner::new(namespace, release);
        let mut report = RepairReport {
            objects: revision.stages.count(),
            ..RepairReport::default()
        };
        for stage in &revision.stages {
            let objects: Vec<&Object> = stage.iter().collect();
            let mut written = Vec::new();
            for (object, answer) in stage.iter().zip(self.reach().restore(&objects, &us).await) {
                if report.take(object, answer) {
                    written.push(object.clone());
                }
            }
            // Kinds that are back are served before objects of them are looked at.
            if let Err(error) = self.wait_served(&written).await {
                report.failures.push(error.chain());
            }
        }
        Ok(Some(report))
    }

    /// The active revision of a release with its objects. Nothing is rewritten, and Secrets that only look like its
    /// revisions are no matter.
    async fn active_revision(
        &self,
        release: &str,
        namespace: &str,
    ) -> Result<Option<Revision>, EngineError> {
        let found = self
            .cluster()
            .find_revisions(Some(release), Some(namespace), namespace)
            .await
            .map_err(|source| EngineError::record(release, source.into()))?;
        match history::active(&found.heads) {
            Some(head) => self
                .cluster()
                .revision(head)
                .await
                .map_err(|source| EngineError::record(release, source)),
            None => Ok(None),
        }
    }
}

impl DriftReport {
    fn take(&mut self, object: &Object, compared: Compared) {
        if let Some(error) = &compared.unasked {
            self.unasked.push(chain(error));
        }
        if !matches!(compared.standing, Standing::AsRecorded) {
            self.drifted.push(Drifted {
                object: object.clone(),
                standing: compared.standing,
            });
        }
    }
}

impl RepairReport {
    /// Whether the object was written.
    fn take(
        &mut self,
        object: &Object,
        answer: Result<Restored, atc_release::cluster::ClusterError>,
    ) -> bool {
        let was_missing = match answer {
            Ok(Restored::AsRecorded) => return false,
            Ok(Restored::Changed) => false,
            Ok(Restored::Created) => true,
            Ok(Restored::Left(standing)) => {
                self.left.push(Drifted {
                    object: object.clone(),
                    standing,
                });
                return false;
            }
            Err(error) => {
                self.failures.push(chain(&error));
                return false;
            }
        };
        self.repaired.push(Repaired {
            object: object.clone(),
            was_missing,
        });
        true
    }
}
