//! What one turn of an Airway comes to: what its condition says, when it is due again, what it depends on. A value;
//! [`reconcile`](super::reconcile) does as it says.

use std::time::Duration;

use atc_engine::disposition::Disposition;
use atc_engine::error::chain;
use atc_engine::status::Ready;
use atc_engine::watch::Dependency;
use serde_json::Value;

use super::{AirwayError, refresh};

/// See the module's words.
pub(super) struct Outcome {
    /// What it says of itself.
    pub(super) ready: Ready,
    /// When to come back.
    pub(super) disposition: Disposition,
    /// What it depends on. Nothing: what it depended on before.
    pub(super) dependencies: Vec<Dependency>,
}

impl Outcome {
    /// The same with something that it has to say besides.
    pub(super) fn but(mut self, words: Option<String>) -> Self {
        if let Some(words) = words {
            self.ready.message = format!("{}; {words}", self.ready.message);
        }
        self
    }
}

/// An Airway whose CRD and webhook configuration stand.
pub(super) struct Served {
    /// What it depends on.
    pub(super) dependencies: Vec<Dependency>,
    /// When to look again in any case.
    pub(super) again: Option<Duration>,
    /// What it is served without: its flight can't be had.
    pub(super) without: Option<AirwayError>,
}

impl Served {
    /// What that comes to, for an Airway with these `wasmUrls`.
    pub(super) fn outcome(self, name: &str, urls: &Value) -> Outcome {
        let (ready, otherwise) = if let Some(error) = &self.without {
            let why = chain(error);
            tracing::warn!(
                airway = name,
                error = why,
                "Airway is not served as it says"
            );
            (Ready::error(why), error.disposition())
        } else {
            let ready = Ready {
                status: true,
                reason: "Ready",
                message: "instances are served".into(),
            };
            (ready, refresh::next(urls))
        };
        Outcome {
            ready,
            disposition: self.again.map_or(otherwise, Disposition::After),
            dependencies: self.dependencies,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::TemplateError;

    #[test]
    fn what_is_to_be_looked_at_again_is_whatever_else_is_wrong() {
        let pause = Duration::from_secs(5);
        let wrong = || AirwayError::Template(TemplateError::Reserved("x".into()));
        let urls = json!({ "flight": "https://x.dev/app.wasm" });
        for (again, without, expect) in [
            (None, None, Disposition::Wait),
            (None, Some(wrong()), Disposition::Terminal),
            (Some(pause), None, Disposition::After(pause)),
            (Some(pause), Some(wrong()), Disposition::After(pause)),
        ] {
            let what = format!("{again:?} {without:?}");
            let is_good = without.is_none();
            let served = Served {
                dependencies: Vec::new(),
                again,
                without,
            };
            let outcome = served.outcome("a.x.dev", &urls);
            assert_eq!(outcome.disposition, expect, "{what}");
            assert_eq!(outcome.ready.status, is_good, "{what}");
        }
    }
}
