//! Is the CRD of an Airway served, and if not, why.

use std::time::Duration;

use atc_engine::watch::Fingerprint;
use serde_json::Value;

use super::{AirwayError, crd_mapping};
use crate::control::Control;

/// How long a CRD may take to be established. 60 s, as in the existing tool.
pub(super) const ESTABLISH: Duration = Duration::from_mins(1);

/// Waits until the CRD serves its kind; gives it as it is then.
pub(super) async fn established(
    control: &Control,
    name: &str,
    mut crd: Value,
) -> Result<Value, AirwayError> {
    let start = tokio::time::Instant::now();
    let mut pause = Duration::from_millis(20);
    loop {
        match condition(&crd, "Established") {
            Some(("True", _))
                if condition(&crd, "NamesAccepted").is_none_or(|(status, _)| status == "True") =>
            {
                return Ok(crd);
            }
            _ if start.elapsed() > ESTABLISH => {
                let why = condition(&crd, "NamesAccepted")
                    .map_or("no word of it", |(_, message)| message)
                    .to_owned();
                return Err(unestablished(&crd, name, why));
            }
            _ => {}
        }
        if let Some(("False", message)) = condition(&crd, "NamesAccepted") {
            return Err(unestablished(&crd, name, message.to_owned()));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(500));
        let refused = |source| AirwayError::Cluster {
            what: "a look at its CustomResourceDefinition",
            source,
        };
        match control
            .engine
            .cluster()
            .get(&crd_mapping(), "", name)
            .await
            .map_err(refused)?
        {
            Some(now) => crd = now,
            None => return Err(unestablished(&crd, name, "it was deleted meanwhile".into())),
        }
    }
}

/// It is not, as it was seen last: what is newer counts as news.
fn unestablished(crd: &Value, name: &str, why: String) -> AirwayError {
    AirwayError::NotEstablished {
        name: name.to_owned(),
        why,
        live: Fingerprint::of(crd),
    }
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<(&'a str, &'a str)> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let found = conditions
        .iter()
        .find(|condition| condition["type"] == kind)?;
    Some((
        found["status"].as_str()?,
        found["message"].as_str().unwrap_or_default(),
    ))
}
