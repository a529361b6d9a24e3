//! Users' own rules of readiness, from ConfigMaps to verdicts: where what they say and what the cluster shows meet.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use atc_api::names;
use atc_readiness::{Book, BookError, Found, Rule, Script};
use atc_release::cluster::mapping::configmaps;
use atc_release::cluster::{ErrorKind, Mapping, Rules};
use atc_release::ownership::{Owner, owner_of};
use atc_release::readiness::{self, Verdict};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::observer::Observer;

/// Scripts that run at once: each holds a thread and up to 16 MiB for up to a second.
const SCRIPTS: usize = 4;
/// Which ConfigMaps hold rules, as a label selector.
pub const SELECTOR: &str = "resource.yoke.cd/readiness in (lua,conditions)";

/// The rules of all ConfigMaps that were told to it. Clones share them.
#[derive(Clone, Debug)]
pub struct CustomReadiness(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    book: RwLock<Book>,
    scripts: Semaphore,
}

impl Default for CustomReadiness {
    fn default() -> Self {
        Self(Arc::new(Shared {
            book: RwLock::default(),
            scripts: Semaphore::new(SCRIPTS),
        }))
    }
}

impl CustomReadiness {
    /// The rules of this namespace, the atc's, count for all releases; those of others for their own only.
    pub fn share(&self, namespace: Option<String>) {
        self.write().share(namespace);
    }

    /// Whether the rules of a namespace count for all releases.
    pub fn is_shared(&self, namespace: &str) -> bool {
        self.read().is_shared(namespace)
    }

    /// Takes the rules of a ConfigMap; whether that changes any.
    pub fn put(&self, configmap: &Value) -> Result<bool, BookError> {
        let text = |field| configmap["metadata"][field].as_str().unwrap_or_default();
        self.write().put(text("namespace"), text("name"), configmap)
    }

    /// Forgets those of a ConfigMap that is gone; whether it had any.
    pub fn remove(&self, namespace: &str, name: &str) -> bool {
        self.write().remove(namespace, name)
    }

    fn read(&self) -> RwLockReadGuard<'_, Book> {
        self.0.book.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Book> {
        self.0.book.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a rule says of a live object.
    async fn ask(&self, found: &Found, live: &Value) -> Verdict {
        let script = match &*found.rule {
            Rule::Conditions(kinds) => return readiness::all_true(live, kinds),
            Rule::Script(script) => script.clone(),
        };
        // The semaphore is never closed.
        let _permit = self.0.scripts.acquire().await.ok();
        let object = live.clone();
        let answer = tokio::task::spawn_blocking(move || run(&script, &object)).await;
        let source = &found.source;
        match answer {
            Ok(Ok(true)) => Verdict::Ready,
            Ok(Ok(false)) => Verdict::InProgress(format!(
                "the readiness script of ConfigMap \"{source}\" says that it is not ready"
            )),
            Ok(Err(why)) => Verdict::InProgress(format!(
                "the readiness script of ConfigMap \"{source}\" gives no answer: {why}"
            )),
            Err(_) => Verdict::InProgress(format!(
                "the readiness script of ConfigMap \"{source}\" broke down"
            )),
        }
    }
}

fn run(script: &Script, object: &Value) -> Result<bool, String> {
    script.is_ready(object).map_err(|error| error.to_string())
}

/// The rules that count for the releases of one namespace.
pub(crate) struct ReleaseRules<'a> {
    custom: &'a CustomReadiness,
    namespace: &'a str,
}

impl ReleaseRules<'_> {
    /// Tells the rule for a kind from others; 0 where there is none.
    pub(crate) fn version(&self, group: &str, kind: &str) -> u64 {
        let found = self.custom.read().find(self.namespace, group, kind);
        found.map_or(0, |found| found.version)
    }
}

impl Rules for ReleaseRules<'_> {
    fn verdict<'a>(&'a self, live: &'a Value) -> BoxFuture<'a, Option<Verdict>> {
        let (group, kind) = readiness::group_and_kind(live);
        let found = self.custom.read().find(self.namespace, group, kind);
        async move { Some(self.custom.ask(&found?, live).await) }.boxed()
    }
}

/// With what the children of a release are judged: the watches, and the rules.
pub(crate) struct Sight<'a> {
    pub(crate) observer: &'a dyn Observer,
    pub(crate) rules: ReleaseRules<'a>,
    /// Whose the children are, where somebody else may take them.
    owner: Option<Owner>,
}

impl Sight<'_> {
    /// The same for the children of this release.
    pub(crate) fn of(self, owner: Owner) -> Self {
        Self {
            owner: Some(owner),
            ..self
        }
    }

    /// The other release that an object belongs to by now, by its `metadata`.
    pub(crate) fn taken_by(&self, metadata: &Value) -> Option<Owner> {
        let us = self.owner.as_ref()?;
        owner_of(metadata).filter(|owner| owner != us)
    }
}

impl Engine {
    /// With what the children of a release in this namespace are judged.
    pub(crate) fn sight<'a>(&'a self, namespace: &'a str, observer: &'a dyn Observer) -> Sight<'a> {
        Sight {
            observer,
            rules: ReleaseRules {
                custom: self.readiness(),
                namespace,
            },
            owner: None,
        }
    }

    /// Reads once the rules that count for releases of a namespace: its own, and those of the atc's namespace where an atc
    /// is installed.
    ///
    /// # Errors
    /// When ConfigMaps can't be read, or hold more than is kept.
    pub async fn load_readiness(&self, namespace: &str) -> Result<(), EngineError> {
        let shared = self.atc_namespace().await;
        self.readiness().share(shared.clone());
        let configmaps = configmaps();
        let mut namespaces = vec![namespace];
        namespaces.extend(shared.as_deref().filter(|shared| *shared != namespace));
        for namespace in namespaces {
            let found = self
                .cluster()
                .list(&configmaps, Some(namespace), Some(SELECTOR))
                .await
                .map_err(EngineError::cluster)?;
            for configmap in found {
                self.readiness()
                    .put(&configmap)
                    .map_err(|source| EngineError::Readiness { source })?;
            }
        }
        Ok(())
    }

    /// The namespace of the atc of this cluster, as its webhook configuration has it, which only administrators may write.
    /// `None` without one, and for whoever may not read it.
    async fn atc_namespace(&self) -> Option<String> {
        let webhooks = Mapping {
            group: "admissionregistration.k8s.io".into(),
            version: "v1".into(),
            kind: "ValidatingWebhookConfiguration".into(),
            plural: "validatingwebhookconfigurations".into(),
            namespaced: false,
        };
        match self
            .cluster()
            .get(&webhooks, "", names::WEBHOOK_AIRWAYS)
            .await
        {
            Ok(found) => {
                let service = &found?["webhooks"][0]["clientConfig"]["service"];
                service["namespace"].as_str().map(str::to_owned)
            }
            Err(error) => {
                let forbidden = error.kind() == ErrorKind::Forbidden;
                tracing::debug!(%error, forbidden, "cannot see where the atc is; rules of its namespace do not count");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(sort: &str, rule: &str) -> CustomReadiness {
        let custom = CustomReadiness::default();
        let configmap = json!({
            "metadata": { "namespace": "n", "name": "rules", "labels": { names::LABEL_READINESS: sort } },
            "data": { "App.x.dev": rule },
        });
        assert_eq!(custom.put(&configmap), Ok(true));
        custom
    }

    async fn verdict(custom: &CustomReadiness, namespace: &str, status: Value) -> Option<Verdict> {
        let live = json!({ "apiVersion": "x.dev/v1", "kind": "App", "metadata": { "generation": 2 }, "status": status });
        let rules = ReleaseRules { custom, namespace };
        rules.verdict(&live).await
    }

    #[tokio::test]
    async fn conditions_and_scripts() {
        let custom = told("conditions", "Synced Healthy");
        let condition = |kind: &str, observed: i64| json!({ "type": kind, "status": "True", "observedGeneration": observed });
        let both = json!({ "conditions": [condition("Synced", 2), condition("Healthy", 0)] });
        assert_eq!(verdict(&custom, "n", both).await, Some(Verdict::Ready));
        let old = json!({ "conditions": [condition("Synced", 2), condition("Healthy", 1)] });
        let old = verdict(&custom, "n", old).await.unwrap();
        assert!(old.why().unwrap().contains("Healthy"), "{old:?}");

        let custom = told(
            "lua",
            "return function(o) return o.status.phase == 'Up' end",
        );
        let up = json!({ "phase": "Up" });
        assert_eq!(
            verdict(&custom, "n", up.clone()).await,
            Some(Verdict::Ready)
        );
        let down = verdict(&custom, "n", json!({ "phase": "Down" }))
            .await
            .unwrap();
        assert!(
            down.why()
                .unwrap()
                .contains("\"n/rules\" says that it is not"),
            "{down:?}"
        );
        let broken = verdict(&custom, "n", Value::Null).await.unwrap();
        assert!(
            broken
                .why()
                .unwrap()
                .contains("gives no answer: it fails: App.x.dev:1:"),
            "{broken:?}"
        );
        // Another namespace's releases do not know it, unless it is the atc's (W25).
        assert_eq!(verdict(&custom, "m", up.clone()).await, None);
        custom.share(Some("n".into()));
        assert_eq!(verdict(&custom, "m", up).await, Some(Verdict::Ready));
    }

    #[tokio::test]
    async fn a_script_without_end_gives_no_answer() {
        let custom = told(
            "lua",
            "return function(o) while true do pcall(function() while true do end end) end end",
        );
        let verdict = verdict(&custom, "n", Value::Null).await.unwrap();
        assert!(
            verdict.why().unwrap().contains("runs too long"),
            "{verdict:?}"
        );
    }
}
