//! What most tests here stand on: a namespace, an atc, and kinds of the flight that does as its instances say.

use std::{
    collections::BTreeSet,
    fmt::Write,
    sync::{Mutex, OnceLock},
    time::Duration,
};

use anyhow::{Result, anyhow};
use atc_tests::{AirwayBuilder, Atc, Cluster, FileServer, condition, eventually, guest, is_ready};
use serde_json::{Value, json};

pub(crate) use crate::printed::{configmap, configmap_in, deployment, free_crd, job, look};

/// How long anything may take before a test says that it will not come. Nothing here is about speed.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);
/// How long an event may take to have its effect. The cases ask for 2 s, but here all tests run at once, on slow machines, too. It is
/// far below the 35 s after which a watch is begun anew, which would make up for an event that was lost.
pub(crate) const SOON: Duration = Duration::from_secs(20);
pub(crate) const AIRWAYS: &str = "/apis/yoke.cd/v1alpha1/airways";
pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const HOOKS: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// One test's view of a control plane. Its namespaces are deleted when it is dropped.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) ns: String,
    namespaces: Mutex<Vec<String>>,
}

impl World {
    /// On the shared control plane, with the shared atc.
    pub(crate) async fn new() -> Self {
        let cluster = Cluster::shared().await;
        Atc::shared(&cluster).await.unwrap();
        Self::on(cluster).await
    }

    /// On a control plane whose atc is the test's own.
    pub(crate) async fn on(cluster: Cluster) -> Self {
        let mut world = Self {
            cluster,
            ns: String::new(),
            namespaces: Mutex::default(),
        };
        world.ns = world.namespace().await;
        world
    }

    /// One more namespace.
    pub(crate) async fn namespace(&self) -> String {
        let body = json!({ "metadata": { "generateName": "t-" } });
        let made = self.post("/api/v1/namespaces", &body).await;
        let name = text(&made["metadata"]["name"]).to_owned();
        self.namespaces.lock().unwrap().push(name.clone());
        name
    }

    /// The kind of an Airway that many tests use; made by the first.
    pub(crate) async fn shared(&self, airway: AirwayBuilder) -> Kind<'_> {
        static MADE: tokio::sync::Mutex<BTreeSet<String>> =
            tokio::sync::Mutex::const_new(BTreeSet::new());
        let mut made = MADE.lock().await;
        if !made.contains(&airway.name()) {
            self.install(&airway.build()).await;
            made.insert(airway.name());
        }
        Kind {
            world: self,
            airway,
        }
    }

    /// Standard mode, reviewed at admission.
    pub(crate) async fn basic(&self) -> Kind<'_> {
        self.shared(AirwayBuilder::new("Basic", &puppet())).await
    }

    /// Standard mode, not reviewed at admission: what is wrong shows in the condition.
    pub(crate) async fn loose(&self) -> Kind<'_> {
        let airway = AirwayBuilder::new("Loose", &puppet()).set("skipAdmissionWebhook", true);
        self.shared(airway).await
    }

    /// Dynamic mode; its flight may look up everything.
    pub(crate) async fn live(&self) -> Kind<'_> {
        let airway = AirwayBuilder::new("Live", &puppet())
            .dynamic()
            .access(&["*"]);
        self.shared(airway).await
    }

    /// Instances without a namespace.
    pub(crate) async fn wide(&self) -> Kind<'_> {
        let airway = AirwayBuilder::new("Wide", &puppet()).cluster_scoped();
        self.shared(airway).await
    }

    /// A kind of this test's own.
    pub(crate) async fn kind(&self, airway: AirwayBuilder) -> Kind<'_> {
        self.kind_with(airway, |_| ()).await
    }

    /// A kind of this test's own, whose Airway is changed before it is created.
    pub(crate) async fn kind_with(
        &self,
        airway: AirwayBuilder,
        change: impl FnOnce(&mut Value),
    ) -> Kind<'_> {
        let mut body = airway.build();
        change(&mut body);
        self.install(&body).await;
        Kind {
            world: self,
            airway,
        }
    }

    /// Creates an Airway and waits until its kind is served.
    async fn install(&self, airway: &Value) {
        self.post(AIRWAYS, airway).await;
        let name = text(&airway["metadata"]["name"]);
        let template = &airway["spec"]["template"];
        let kinds = format!(
            "/apis/{}/{}/{}",
            text(&template["group"]),
            text(&template["versions"][0]["name"]),
            text(&template["names"]["plural"])
        );
        eventually(LIMIT, &format!("Airway {name} is ready"), || async {
            let found = self.get(&format!("{AIRWAYS}/{name}")).await?;
            if !found.as_ref().is_some_and(is_ready) {
                return Err(anyhow!("{}", shown(found.as_ref())));
            }
            Ok(self.get(&kinds).await?.map(|_| ()))
        })
        .await;
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Option<Value>> {
        self.cluster.api.get(path).await
    }

    /// Creates what must be accepted.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        self.cluster.api.post(path, body).await.unwrap()
    }

    /// Changes what must be accepted.
    pub(crate) async fn merge(&self, path: &str, body: &Value) -> Value {
        self.cluster.api.merge(path, body).await.unwrap()
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.cluster.api.delete(path).await.unwrap();
    }

    pub(crate) async fn gone(&self, path: &str) {
        self.gone_within(LIMIT, path).await;
    }

    /// The same where an event has it removed.
    pub(crate) async fn gone_soon(&self, path: &str) {
        self.gone_within(SOON, path).await;
    }

    async fn gone_within(&self, limit: Duration, path: &str) {
        eventually(limit, &format!("{path} is gone"), || async {
            Ok(self.get(path).await?.is_none().then_some(()))
        })
        .await;
    }

    /// Path of a ConfigMap, Secret, … of the test's namespace.
    pub(crate) fn core(&self, plural: &str, name: &str) -> String {
        format!("/api/v1/namespaces/{}/{plural}/{name}", self.ns)
    }

    pub(crate) async fn configmap(&self, name: &str) -> Option<Value> {
        self.get(&self.core("configmaps", name)).await.unwrap()
    }

    /// The data of a ConfigMap, null when it is not there.
    pub(crate) async fn data(&self, name: &str) -> Value {
        let found = self.configmap(name).await;
        found.map_or(Value::Null, |found| found["data"].clone())
    }

    /// Waits until a ConfigMap has this data, among others.
    pub(crate) async fn has(&self, name: &str, data: Value) {
        self.has_within(LIMIT, name, data).await;
    }

    /// The same where an event brings it about.
    pub(crate) async fn has_soon(&self, name: &str, data: Value) {
        self.has_within(SOON, name, data).await;
    }

    async fn has_within(&self, limit: Duration, name: &str, data: Value) {
        let path = self.core("configmaps", name);
        eventually(limit, &format!("ConfigMap {name} has {data}"), || async {
            let found = self.get(&path).await?.unwrap_or_default();
            let all = data.as_object().unwrap().iter();
            if all.clone().all(|(key, value)| found["data"][key] == *value) {
                return Ok(Some(()));
            }
            Err(anyhow!("{}", found["data"]))
        })
        .await;
    }

    /// Names of the ConfigMaps in a namespace but for the cluster's own.
    pub(crate) async fn configmaps(&self, namespace: &str) -> Vec<String> {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        let all = self.cluster.api.list(&path).await.unwrap();
        let names = all
            .iter()
            .map(|one| text(&one["metadata"]["name"]).to_owned());
        names.filter(|name| name != "kube-root-ca.crt").collect()
    }

    /// Creates or changes a Secret of somebody else, with the key `v`.
    pub(crate) async fn put_secret(&self, name: &str, value: &str) {
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": { "v": value },
        });
        self.cluster
            .api
            .apply(&self.core("secrets", name), &body)
            .await
            .unwrap();
    }

    /// The revisions of all releases in the test's namespace.
    pub(crate) async fn revisions(&self) -> Vec<Value> {
        let path = format!(
            "/api/v1/namespaces/{}/secrets?labelSelector=internal.yoke%2Fkind%3Drevision",
            self.ns
        );
        self.cluster.api.list(&path).await.unwrap()
    }

    /// Waits until there are so many of them: what is applied is recorded later, and what is too old goes after that.
    pub(crate) async fn has_revisions(&self, number: usize) {
        eventually(LIMIT, &format!("there are {number} revisions"), || async {
            let there = self.revisions().await.len();
            if there == number {
                return Ok(Some(()));
            }
            Err(anyhow!("there are {there}"))
        })
        .await;
    }

    /// Their names, sorted.
    pub(crate) async fn revision_names(&self) -> Vec<String> {
        let revisions = self.revisions().await;
        let mut names: Vec<String> = revisions
            .iter()
            .map(|one| text(&one["metadata"]["name"]).to_owned())
            .collect();
        names.sort_unstable();
        names
    }

    /// How often the flight of an instance ran, reviews at admission included: from the log of the shared atc.
    pub(crate) fn runs(&self, kind: &Kind<'_>, name: &str) -> usize {
        self.runs_of(&kind.release(name))
    }

    /// The same of a release, whose name no other test has.
    pub(crate) fn runs_of(&self, release: &str) -> usize {
        let release = format!("\"release\":\"{release}\"");
        let log = self.cluster.plane().folder().join("atc-atc.log");
        let log = std::fs::read_to_string(log).unwrap_or_default();
        let ran = |line: &&str| line.contains("\"flight ran\"") && line.contains(&release);
        log.lines().filter(ran).count()
    }

    /// Waits until the atc asks for nothing of this test's for two seconds.
    pub(crate) async fn settle(&self) {
        let mut audit = self.cluster.audit();
        loop {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let calls = audit.calls().await.unwrap();
            if !calls
                .iter()
                .any(|call| self.is_mine(call) && call.verb != "watch")
            {
                return;
            }
        }
    }

    /// Whether a call is about this test's namespaces.
    pub(crate) fn is_mine(&self, call: &atc_tests::Call) -> bool {
        let mine = self.namespaces.lock().unwrap();
        mine.contains(&call.namespace)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // By processes of their own: the test's runtime may be about to end.
        for name in self.namespaces.lock().unwrap().iter() {
            _ = self
                .cluster
                .plane()
                .request("DELETE", &format!("/api/v1/namespaces/{name}"), "");
        }
    }
}

/// Instances of one Airway, in the test's namespace.
pub(crate) struct Kind<'a> {
    pub(crate) world: &'a World,
    pub(crate) airway: AirwayBuilder,
}

impl Kind<'_> {
    /// A kind that is there already, as another test's or an earlier atc's.
    pub(crate) fn of(world: &World, airway: AirwayBuilder) -> Kind<'_> {
        Kind { world, airway }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.airway.path(&self.world.ns))
    }

    /// Path of the Airway.
    pub(crate) fn airway_path(&self) -> String {
        format!("{AIRWAYS}/{}", self.airway.name())
    }

    /// Its kind.
    pub(crate) fn name(&self) -> String {
        text(&self.airway.build()["spec"]["template"]["names"]["kind"]).to_owned()
    }

    /// The release of an instance, as compat says.
    pub(crate) fn release(&self, name: &str) -> String {
        let group = self.airway.name();
        let group = group.split_once('.').unwrap().1;
        let mut release = format!("{group}.{}.", self.name());
        if self.is_namespaced() {
            write!(release, "{}.", self.world.ns).unwrap();
        }
        release + name
    }

    fn is_namespaced(&self) -> bool {
        self.airway.path("x").contains("/namespaces/")
    }

    /// Creates an instance, which may be refused.
    pub(crate) async fn create(&self, name: &str, spec: &Value) -> Result<Value> {
        let path = self.airway.path(&self.world.ns);
        let body = self.airway.instance(name, spec);
        self.world.cluster.api.post(&path, &body).await
    }

    /// Creates an instance and waits until it is ready.
    pub(crate) async fn make(&self, name: &str, spec: Value) -> Value {
        self.create(name, &spec).await.unwrap();
        self.ready(name).await
    }

    /// Replaces an instance's spec.
    pub(crate) async fn edit(&self, name: &str, spec: Value) -> Value {
        self.try_edit(name, spec).await.unwrap()
    }

    /// The same for a spec that may be refused.
    pub(crate) async fn try_edit(&self, name: &str, spec: Value) -> Result<Value> {
        loop {
            let mut object = self.instance(name).await;
            object["spec"] = spec.clone();
            let answer = self.world.cluster.api.put(&self.path(name), &object).await;
            // Somebody else was quicker: once more, on what it is now.
            let stale = |error: &anyhow::Error| error.to_string().starts_with("409 ");
            if !answer.as_ref().is_err_and(stale) {
                return answer;
            }
        }
    }

    pub(crate) async fn instance(&self, name: &str) -> Value {
        self.world.get(&self.path(name)).await.unwrap().unwrap()
    }

    /// Waits until it is ready as it is now.
    pub(crate) async fn ready(&self, name: &str) -> Value {
        self.until(name, "is ready", |object| {
            is_ready(object) && is_observed(object)
        })
        .await
    }

    /// Waits until its condition has this reason and these words; the whole message.
    pub(crate) async fn says(&self, name: &str, reason: &str, words: &str) -> String {
        let what = format!("says {reason} {words:?}");
        let object = self
            .until(name, &what, |object| {
                condition(object, "Ready").is_some_and(|ready| {
                    ready["reason"] == reason && text(&ready["message"]).contains(words)
                })
            })
            .await;
        text(&condition(&object, "Ready").unwrap()["message"]).to_owned()
    }

    /// Waits for an instance to be as wanted.
    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let path = self.path(name);
        let what = format!("{} {name} {what}", self.name());
        eventually(LIMIT, &what, || async {
            let found = self.world.get(&path).await?;
            match found {
                Some(object) if wanted(&object) => Ok(Some(object)),
                other => Err(anyhow!("{}", shown(other.as_ref()))),
            }
        })
        .await
    }

    /// Deletes an instance and waits until it is gone.
    pub(crate) async fn delete(&self, name: &str) {
        self.world.delete(&self.path(name)).await;
        self.gone(name).await;
    }

    pub(crate) async fn gone(&self, name: &str) {
        let path = self.path(name);
        eventually(
            LIMIT,
            &format!("{} {name} is gone", self.name()),
            || async {
                match self.world.get(&path).await? {
                    None => Ok(Some(())),
                    found => Err(anyhow!("{}", shown(found.as_ref()))),
                }
            },
        )
        .await;
    }

    /// Changes the Airway and waits until it is ready as it is then.
    pub(crate) async fn update(&self, spec: Value) {
        let path = self.airway_path();
        self.world.merge(&path, &json!({ "spec": spec })).await;
        self.settled().await;
    }

    /// Waits until the Airway is ready as it is now.
    pub(crate) async fn settled(&self) {
        let path = self.airway_path();
        let what = format!("Airway {} is ready as it is", self.airway.name());
        eventually(LIMIT, &what, || async {
            let found = self.world.get(&path).await?;
            match found {
                Some(airway) if is_ready(&airway) && is_observed(&airway) => Ok(Some(())),
                other => Err(anyhow!("{}", shown(other.as_ref()))),
            }
        })
        .await;
    }

    /// Deletes the instances, then the Airway. A CRD that has to wait for its instances is looked at by the apiserver
    /// every five seconds only, and few tests are about that.
    pub(crate) async fn finish(self) {
        let path = self.airway.path(&self.world.ns);
        for instance in self.world.cluster.api.list(&path).await.unwrap() {
            self.world
                .delete(&self.path(text(&instance["metadata"]["name"])))
                .await;
        }
        eventually(LIMIT, "the instances are gone", || async {
            let left = self.world.cluster.api.list(&path).await?;
            Ok(left.is_empty().then_some(()))
        })
        .await;
        self.remove().await;
    }

    /// Deletes the Airway and waits until it is gone.
    pub(crate) async fn remove(self) {
        let path = self.airway_path();
        self.world.delete(&path).await;
        eventually(LIMIT, &format!("{path} is gone"), || async {
            match self.world.get(&path).await? {
                None => Ok(Some(())),
                found => Err(anyhow!("{}", shown(found.as_ref()))),
            }
        })
        .await;
    }
}

/// The URL of the module of the flight `puppet`.
pub(crate) fn puppet() -> String {
    static FILES: OnceLock<FileServer> = OnceLock::new();
    let files = FILES.get_or_init(|| {
        let files = FileServer::start().unwrap();
        files.put("puppet.wasm", module());
        files
    });
    files.url("puppet.wasm")
}

/// The module itself.
pub(crate) fn module() -> Vec<u8> {
    std::fs::read(guest("puppet").unwrap()).unwrap()
}

/// Whether the condition is about the object as it is now.
fn is_observed(object: &Value) -> bool {
    condition(object, "Ready").is_some_and(|ready| {
        ready["observedGeneration"].is_null()
            || ready["observedGeneration"] == object["metadata"]["generation"]
    })
}

/// How an object stands, for the message of a failed wait.
fn shown(object: Option<&Value>) -> String {
    match object {
        None => "it is not there".into(),
        Some(object) => json!({
            "generation": object["metadata"]["generation"],
            "deletionTimestamp": object["metadata"]["deletionTimestamp"],
            "finalizers": object["metadata"]["finalizers"],
            "status": object["status"],
        })
        .to_string(),
    }
}

/// The text in a value; empty for anything else.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
