//! The run of an instance's flight: what it is given, and what the status says if it takes long.

use std::sync::Arc;
use std::time::Duration;

use atc_access::{AccessPolicy, Owner as AccessOwner};
use atc_api::airway::AirwayMode;
use atc_flight::StderrSink;
use serde_json::Value;

use super::identity::{Identity, input};
use super::waiting::may_tell;
use super::{InstanceMemory, InstanceRequest, InstanceSettings, Subject};
use crate::engine::Engine;
use crate::error::{EngineError, chain};
use crate::evaluate::{Evaluated, LoadedFlight, Run};
use crate::observer::{InstanceObserver, NoObserver, Observer};
use crate::recall::Recalled;

/// A run that lasts longer is told of in the status: 30 s, three times what a flight may take unless its Airway says otherwise.
/// Those that are usual cost no write of their own.
const LONG: Duration = Duration::from_secs(30);
/// The same of an instance that is ready as it is: 5 min. Whoever waits for it to be ready must not see it come and go with each
/// run of a slow flight that changes nothing.
const LONG_OF_SETTLED: Duration = Duration::from_mins(5);

impl Engine {
    /// Runs the flight on the instance; the status says so, once, if that takes [`long`]. `told` is the object as it is stored
    /// then.
    pub(super) async fn run_telling(
        &self,
        request: &InstanceRequest<'_>,
        flight: &LoadedFlight,
        object: &Value,
        memory: &InstanceMemory,
        told: &mut Option<Value>,
        observer: &dyn InstanceObserver,
    ) -> Result<Evaluated, EngineError> {
        let settings = request.settings;
        let eyes = eyes(settings, observer);
        let mut run = Box::pin(self.run_instance(settings, flight, object, eyes, request.recalled));
        let printed = memory.printed.as_ref();
        if !may_tell(object, memory.failure.is_some(), printed) {
            return run.await;
        }
        let since = crate::clock::now();
        if let Ok(done) = tokio::time::timeout(long(object), &mut run).await {
            return done;
        }
        let words = format!("the flight runs, or waits for its turn, since {since}");
        let telling = async {
            match self.tell(settings, object, printed, &words).await {
                Ok(stored) => *told = stored,
                // Somebody else has written: that is for the write at the end.
                Err(error) => tracing::debug!(
                    error = chain(&error),
                    "the status does not say that the flight takes long"
                ),
            }
        };
        let (done, ()) = tokio::join!(run, telling);
        done
    }

    /// Runs the flight on the instance.
    pub(super) async fn run_instance(
        &self,
        settings: &InstanceSettings,
        flight: &LoadedFlight,
        object: &Value,
        observer: Arc<dyn Observer>,
        recalled: &Recalled,
    ) -> Result<Evaluated, EngineError> {
        let identity = Identity::of(object, settings)?;
        let (stdin, args) = match &settings.subject {
            Subject::Instance { object_path } => (input(object, object_path), &[][..]),
            Subject::Flight { input, args, .. } => (input.clone(), &args[..]),
        };
        let uid = settings.subject.is_flight().then_some(identity.uid);
        let run = Run {
            flight,
            release: &identity.release,
            namespace: identity.home,
            stdin,
            args,
            access: AccessPolicy {
                enabled: settings.cluster_access,
                owner: AccessOwner::new(identity.home, &identity.release).of_flight(uid),
                matchers: settings.matchers.clone(),
                confined: settings.subject.is_confined(),
            },
            bounds: settings.bounds.clone(),
            limited: settings.limited,
            stderr: StderrSink::Tail,
        };
        self.evaluate_unless(run, observer, recalled).await
    }
}

/// Who is told of look-ups before they are made: the watches, where changes of what was looked up count.
fn eyes(settings: &InstanceSettings, observer: &dyn InstanceObserver) -> Arc<dyn Observer> {
    match settings.mode {
        AirwayMode::Dynamic | AirwayMode::Subscription => observer.share(),
        AirwayMode::Standard | AirwayMode::Static => Arc::new(NoObserver),
    }
}

/// How long its flight runs before the status says so.
fn long(object: &Value) -> Duration {
    let conditions = object["status"]["conditions"].as_array();
    let is_settled = conditions.into_iter().flatten().any(|condition| {
        condition["type"] == "Ready"
            && condition["status"] == "True"
            && condition["observedGeneration"] == object["metadata"]["generation"]
    });
    if is_settled { LONG_OF_SETTLED } else { LONG }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_ready_as_it_is_stays_so_for_longer() {
        let check = |status: &str, generation: u32, expect: Duration| {
            let ready =
                json!({ "type": "Ready", "status": status, "observedGeneration": generation });
            let object =
                json!({ "metadata": { "generation": 2 }, "status": { "conditions": [ready] } });
            assert_eq!(long(&object), expect, "{object}");
        };
        assert_eq!(long(&Value::Null), LONG);
        check("True", 2, LONG_OF_SETTLED);
        check("True", 1, LONG);
        check("False", 2, LONG);
    }
}
