//! The Secret with credentials for registries of modules, followed while the process runs. One that cannot be read
//! leaves the last good one in force; one that is deleted does not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atc_api::ResourceRef;
use atc_engine::artifact::{DockerConfig, PullSecret};
use atc_engine::error::chain;
use atc_engine::release::cluster::mapping::secrets;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::sync::watch;

use crate::control::Control;
use crate::objects::{self, Only, Sink};
use crate::owner::Owner;

/// How long the first modules wait for the Secret. Where it can't be read, they are pulled without it; it counts from
/// when it comes.
const FIRST_READ: Duration = Duration::from_secs(10);

/// Which Secret, and where what it holds goes.
pub(crate) struct Followed {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) secret: PullSecret,
}

/// Begins to follow the Secret; returns when it has been read for the first time, or after 10 s.
pub(crate) async fn begin(control: &Arc<Control>, followed: Followed) {
    let (listed, mut is_listed) = watch::channel(false);
    let control = control.clone();
    let (namespace, name) = (followed.namespace.clone(), followed.name.clone());
    tokio::spawn(async move {
        let client = control.engine.cluster().client().clone();
        let stop = control.stop.clone();
        let (namespace, name) = (followed.namespace.clone(), followed.name.clone());
        let sink = SecretSink {
            control,
            followed,
            listed,
            there: watch::Sender::new(false),
        };
        let only = Only::Named {
            namespace: &namespace,
            name: &name,
        };
        objects::run(client, secrets(), only, &sink, stop).await;
    });
    let first = tokio::time::timeout(FIRST_READ, is_listed.wait_for(|listed| *listed));
    if first.await.is_err() {
        tracing::warn!(
            namespace,
            name,
            "the Secret with credentials for registries can't be read; modules are pulled without it"
        );
    }
}

struct SecretSink {
    control: Arc<Control>,
    followed: Followed,
    listed: watch::Sender<bool>,
    /// Whether the Secret is there, readable or not.
    there: watch::Sender<bool>,
}

impl SecretSink {
    /// What failed for want of credentials is tried again now.
    fn changed(&self, secret: &str) {
        for (airway, _) in self.control.kinds.all() {
            self.control
                .edited(&Owner::Airway(airway), secret.to_owned());
        }
    }
}

impl Sink for SecretSink {
    fn upsert(&self, reference: ResourceRef, object: Value) {
        self.there.send_replace(true);
        match read(&object) {
            Ok(config) => {
                if self.followed.secret.set(config) {
                    tracing::info!(secret = %reference, "credentials for registries are taken up");
                    self.changed(&reference.to_string());
                }
            }
            Err(why) => tracing::warn!(
                secret = %reference,
                error = why,
                "the Secret with credentials for registries can't be used; those from before stay in force"
            ),
        }
    }

    fn remove(&self, reference: &ResourceRef) {
        self.there.send_replace(false);
        if self.followed.secret.clear() {
            tracing::warn!(secret = %reference, "the Secret with credentials for registries is gone; they are dropped");
        }
    }

    fn synced(&self) {
        let first = !self.listed.send_replace(true);
        if first && !*self.there.borrow() {
            let (namespace, name) = (&self.followed.namespace, &self.followed.name);
            tracing::warn!(
                namespace,
                name,
                "there is no such Secret with credentials for registries; it is taken up when it comes"
            );
        }
    }

    fn alive(&self, _: Instant) {}
}

/// What a Secret holds; the error has no word of it.
fn read(object: &Value) -> Result<DockerConfig, String> {
    let mut data = BTreeMap::new();
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        let bytes = STANDARD
            .decode(text)
            .map_err(|_| format!("its key {key} is not base64"))?;
        data.insert(key.as_str(), bytes);
    }
    DockerConfig::from_secret(|key| data.get(key).map(Vec::as_slice)).map_err(|error| chain(&error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_are_read_and_errors_hold_nothing_r129() {
        let auths = r#"{"h.io":{"auth":"am9lOnNlY3JldA=="}}"#;
        let new = format!(r#"{{"auths":{auths}}}"#);
        let secret = |key: &str, text: &str| json!({ "data": { key: STANDARD.encode(text) } });
        for (object, good) in [
            (secret(".dockerconfigjson", &new), true),
            (secret(".dockercfg", auths), true),
            (secret(".dockerconfigjson", "{ secret"), false),
            (secret("config.json", &new), false),
            (json!({ "data": { ".dockerconfigjson": "?" } }), false),
            (json!({}), false),
        ] {
            let result = read(&object);
            assert_eq!(result.is_ok(), good, "{object}");
            let text = format!("{result:?}");
            assert!(!text.contains("secret") && !text.contains("am9l"), "{text}");
        }
    }
}
