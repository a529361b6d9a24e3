//! Jobs: ready when complete, failed for good when failed.

use serde_json::Value;

use super::{Verdict, condition, conditions, count, is_true};

pub(super) fn job(live: &Value) -> Verdict {
    if is_true(live, "Complete") {
        return Verdict::Ready;
    }
    for kind in ["Failed", "FailureTarget"] {
        if let Some(failed) = condition(live, kind).filter(|failed| failed["status"] == "True") {
            return conditions::failed(failed);
        }
    }
    if is_true(live, "Suspended") {
        return Verdict::InProgress("it is suspended".to_owned());
    }
    let status = &live["status"];
    Verdict::InProgress(format!(
        "it is not complete: {} active, {} succeeded, {} failed",
        count(&status["active"]),
        count(&status["succeeded"]),
        count(&status["failed"])
    ))
}
