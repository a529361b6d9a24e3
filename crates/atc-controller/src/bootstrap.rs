//! The CRDs and webhook configurations to install, as values.

use std::collections::BTreeSet;
use std::sync::{OnceLock, PoisonError, RwLock};

use atc_api::ResourceRef;
use atc_api::names::{self, GROUP, VERSION};
use base64::Engine as _;
use serde_json::{Value, json};

use crate::crd::ServedKind;
use crate::webhook_url::WebhookUrl;

/// Where the API server reaches our webhooks.
#[derive(Debug)]
pub struct WebhookService {
    /// Service name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its port.
    pub port: u16,
    /// Where the API server reaches us instead, if we run outside of the cluster.
    pub url: Option<WebhookUrl>,
    /// PEM of the CAs by which our certificate is known; may change while we run.
    pub ca_bundle: RwLock<Vec<u8>>,
    /// Our own user name, once known: what we write is not reviewed by ourselves.
    pub username: OnceLock<String>,
}

/// Name of the configuration that reviews Airways.
pub const AIRWAY_WEBHOOK: &str = names::WEBHOOK_AIRWAYS;
/// Name of the configuration that reviews Flights and ClusterFlights.
pub const FLIGHT_WEBHOOK: &str = "atc-flight";

/// The group of webhook configurations. The API server asks no webhook about its kinds, or nobody could repair one that
/// refuses everything.
pub(crate) const REGISTRATION: &str = "admissionregistration.k8s.io";

/// The three CRDs, in the order of their installation.
pub fn crds() -> Result<Vec<Value>, serde_json::Error> {
    atc_api::airway::crds()
        .iter()
        .map(|crd| {
            let mut value = serde_json::to_value(crd)?;
            value["apiVersion"] = "apiextensions.k8s.io/v1".into();
            value["kind"] = "CustomResourceDefinition".into();
            Ok(value)
        })
        .collect()
}

/// The cluster-scoped objects that we write for ourselves, and that no flight may print: whoever applies one of them with
/// less in it takes from us what we work with.
pub(crate) fn own_objects() -> Vec<ResourceRef> {
    let ours = atc_api::airway::crds().into_iter();
    let crds = ours
        .filter_map(|crd| crd.metadata.name)
        .map(|name| ResourceRef::new("", "apiextensions.k8s.io", "CustomResourceDefinition", name));
    let webhooks = [
        AIRWAY_WEBHOOK,
        FLIGHT_WEBHOOK,
        names::WEBHOOK_RESOURCES,
        names::WEBHOOK_ACCOUNTS,
    ];
    let (group, kind) = (REGISTRATION, "ValidatingWebhookConfiguration");
    crds.chain(webhooks.map(|name| ResourceRef::new("", group, kind, name)))
        .collect()
}

impl WebhookService {
    /// Takes another CA bundle; the configurations made from now on carry it.
    pub fn set_ca_bundle(&self, pem: Vec<u8>) {
        let mut place = self
            .ca_bundle
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *place = pem;
    }

    fn client_config(&self, path: &str) -> Value {
        let bundle = self
            .ca_bundle
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let bundle = base64::engine::general_purpose::STANDARD.encode(&*bundle);
        match &self.url {
            Some(url) => json!({"url": url.at(path), "caBundle": bundle}),
            None => json!({
                "service": {"name": self.name, "namespace": self.namespace, "port": self.port, "path": path},
                "caBundle": bundle,
            }),
        }
    }

    /// Whether whoever has this client configuration asks us and does not know these CAs yet.
    pub(crate) fn is_unknown_to(&self, config: &Value, ca: &[u8]) -> bool {
        let asks_us = if let Some(url) = &self.url {
            let asked = config["url"].as_str();
            asked.is_some_and(|asked| asked.starts_with(&url.at("/")))
        } else {
            let service = &config["service"];
            service["name"] == *self.name
                && service["namespace"] == *self.namespace
                && service["port"] == self.port
        };
        let bundle = config["caBundle"].as_str().unwrap_or_default();
        let bundle = base64::engine::general_purpose::STANDARD.decode(bundle);
        let bundle = bundle.unwrap_or_default();
        asks_us && !String::from_utf8_lossy(&bundle).contains(&*String::from_utf8_lossy(ca))
    }

    /// How a CRD says that we convert its objects.
    pub fn conversion(&self, airway: &str) -> Value {
        json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": self.client_config(&format!("/crdconvert/{airway}")),
                "conversionReviewVersions": ["v1"],
            },
        })
    }

    /// CEL that is false for our own writes. The name is our own by the API server's word, so another service account
    /// name is no trouble. Whoever shares it with us, as somebody who runs an atc by hand does, is told from us by the field
    /// manager, which all that we write names; a deletion names none.
    fn not_ourselves(&self) -> Value {
        let name = escaped(self.username.get().map(String::as_str).unwrap_or_default());
        let (children, status) = (names::MANAGER_YOKE, names::MANAGER_ATC);
        json!([{
            "name": "not-the-atc",
            "expression": format!(
                "request.userInfo.username != '{name}' || (request.operation != 'DELETE' && \
                 !(has(request.options) && has(request.options.fieldManager) && \
                 request.options.fieldManager in ['{children}', '{status}']))"
            ),
        }])
    }

    /// All fields, those with defaults too: what differs from it was written by somebody else.
    fn webhook(&self, name: &str, path: &str, rules: &Value, timeout: u8) -> Value {
        json!({
            "name": name,
            "clientConfig": self.client_config(path),
            "rules": rules,
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "sideEffects": "None",
            "timeoutSeconds": timeout,
            "admissionReviewVersions": ["v1"],
            "matchConditions": self.not_ourselves(),
        })
    }

    /// The same for objects whose reviews are decided by nothing once the object is on its way out: then nobody is asked, so
    /// that an atc that is away holds up nobody who lets go of it.
    fn webhook_of_living(&self, name: &str, path: &str, rules: &Value, timeout: u8) -> Value {
        let mut webhook = self.webhook(name, path, rules, timeout);
        if let Some(conditions) = webhook["matchConditions"].as_array_mut() {
            // By the object as it is stored: what is written says of itself what it likes.
            conditions.push(json!({
                "name": "not-being-deleted",
                "expression": "oldObject == null || !has(oldObject.metadata.deletionTimestamp)",
            }));
        }
        webhook
    }

    /// The configuration that asks whether whoever writes a Flight may act as the account that it names. It stays when we
    /// go, or anybody could take an account in the meantime.
    pub fn of_accounts(&self) -> Value {
        let rules = own_kinds(&["flights", "clusterflights"], "*");
        let mut webhook = self.webhook(
            "accounts.yoke.cd",
            "/validations/accounts",
            &rules,
            ACCOUNT_TIMEOUT,
        );
        if let Some(conditions) = webhook["matchConditions"].as_array_mut() {
            conditions.push(json!({
                "name": "names-an-account",
                "expression": "has(object.spec) && has(object.spec.serviceAccountName) && object.spec.serviceAccountName != ''",
            }));
            // Labels and finalizers are nobody's account: while no atc runs they can be written, so that a Flight can be let go.
            conditions.push(json!({
                "name": "another-spec",
                "expression": "oldObject == null || !has(oldObject.spec) || !has(object.spec) || oldObject.spec != object.spec",
            }));
        }
        configuration(names::WEBHOOK_ACCOUNTS, &webhook)
    }

    /// The configurations that are there as long as we run.
    pub fn configurations(&self) -> Vec<Value> {
        vec![
            self.of_accounts(),
            configuration(
                AIRWAY_WEBHOOK,
                &self.webhook_of_living(
                    "airways.yoke.cd",
                    "/validations/airways.yoke.cd",
                    &own_kinds(&["airways"], "Cluster"),
                    AIRWAY_TIMEOUT,
                ),
            ),
            configuration(
                FLIGHT_WEBHOOK,
                &self.webhook_of_living(
                    "flights.yoke.cd",
                    "/validations/flights.yoke.cd",
                    &own_kinds(&["flights", "clusterflights"], "*"),
                    FLIGHT_TIMEOUT,
                ),
            ),
        ]
    }

    /// The configuration that reviews instances of an Airway's kind; owned by the Airway.
    ///
    /// Writes of the status are reviewed where the object could not be converted, and only then; no write of an object that
    /// is being deleted is.
    /// Writes through other served versions are converted and reviewed too (`matchPolicy: Equivalent`). A version with a
    /// `scale` has it reviewed: it changes the number of replicas.
    pub fn of_airway(&self, airway: &str, uid: &str, served: &ServedKind) -> Value {
        let rule = |version: &str, resource: &str, operations: &[&str]| {
            json!({
                "apiGroups": [served.group],
                "apiVersions": [version],
                "operations": operations,
                "resources": [resource],
                "scope": if served.namespaced { "Namespaced" } else { "Cluster" },
            })
        };
        let status = format!("{}/status", served.plural);
        let scale = format!("{}/scale", served.plural);
        let scales = served
            .scales
            .keys()
            .map(|version| rule(version, &scale, &["UPDATE"]));
        let rules: Value =
            std::iter::once(rule(&served.version, &served.plural, &["CREATE", "UPDATE"]))
                .chain(std::iter::once(rule(&served.version, &status, &["UPDATE"])))
                .chain(scales)
                .collect();
        let mut value = configuration(
            airway,
            &self.webhook_of_living(
                airway,
                &format!("/validations/{airway}"),
                &rules,
                INSTANCE_TIMEOUT,
            ),
        );
        let marked = format!(
            "(has(object.metadata.annotations) && '{}' in object.metadata.annotations)",
            names::ANNOTATION_UNCONVERTED
        );
        // What could not be converted must not be stored by ourselves either.
        let ours = &mut value["webhooks"][0]["matchConditions"][0]["expression"];
        *ours = format!("{} || {marked}", ours.as_str().unwrap_or_default()).into();
        if let Some(conditions) = value["webhooks"][0]["matchConditions"].as_array_mut() {
            conditions.push(json!({
                "name": "not-a-mere-status",
                "expression": format!(
                    "!has(request.subResource) || request.subResource != 'status' || {marked}"
                ),
            }));
        }
        value["metadata"]["ownerReferences"] = json!([{
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": "Airway",
            "name": airway,
            "uid": uid,
            "blockOwnerDeletion": true,
        }]);
        value
    }
}

/// A kind whose objects instances in mode `static` have made.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProtectedKind {
    /// API group; empty for core.
    pub group: String,
    /// The version that it is applied in.
    pub version: String,
    /// Plural, as in URLs.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// What mode `static` protects: objects of some kinds, made by instances of some kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// The kinds of the objects.
    pub kinds: BTreeSet<ProtectedKind>,
    /// The kinds of the instances, each `Kind.group`.
    pub makers: BTreeSet<String>,
    /// Whether instances of further kinds may have made them: which is not known.
    pub any_maker: bool,
}

/// Kinds of instances that the API server is to tell apart, before it is asked about all that we made. 100: the longest
/// possible names give 32 kB of CEL, of which the API server takes 100 kB, and hardly anybody has as many in mode `static`.
const MAKERS_MAX: usize = 100;

/// The condition by which the API server tells them apart.
const MADE_IN_STATIC: &str = "made-in-mode-static";

impl Protection {
    /// CEL that is true for what instances of these kinds have made, by the mark on the object as it is stored:
    /// `[namespace]/Kind.group:name`. `None`: all that we made is asked about.
    fn of_makers(&self) -> Option<String> {
        if self.any_maker || self.makers.len() > MAKERS_MAX {
            return None;
        }
        let quoted: Vec<String> = self
            .makers
            .iter()
            .map(|maker| format!("'{}'", escaped(maker)))
            .collect();
        let mark = names::ANNOTATION_INSTANCE_REF;
        let place = "oldObject.metadata.annotations";
        Some(format!(
            "oldObject != null && has({place}) && '{mark}' in {place} && \
             {place}['{mark}'].substring({place}['{mark}'].indexOf('/') + 1).split(':')[0] in [{}]",
            quoted.join(", ")
        ))
    }

    /// The kinds of instances that a configuration of ours tells apart, into one of these kinds of objects. What is not as
    /// we write it tells nothing.
    pub(crate) fn read(configuration: &Value, kinds: BTreeSet<ProtectedKind>) -> Self {
        let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let named =
            |name: &str, among: Vec<Value>| among.into_iter().find(|one| one["name"] == name);
        let condition = named(RESOURCES, all(&configuration["webhooks"]))
            .and_then(|webhook| named(MADE_IN_STATIC, all(&webhook["matchConditions"])));
        let condition = condition.unwrap_or_default();
        let expression = condition["expression"].as_str().unwrap_or_default();
        let list = expression.rsplit_once(" in [").map(|(_, list)| list);
        let list = list.unwrap_or_default().trim_end_matches(']').split(", ");
        let makers = list.map(|maker| maker.trim_matches('\'').to_owned());
        let read = Self {
            kinds: kinds.clone(),
            makers: makers.collect(),
            any_maker: false,
        };
        if read.of_makers().is_some_and(|ours| ours == expression) {
            return read;
        }
        Self {
            kinds,
            makers: BTreeSet::new(),
            any_maker: true,
        }
    }
}

/// A text within single quotes in CEL.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

impl WebhookService {
    /// The configuration that keeps others from changing objects which instances in mode `static` made: by our label and the
    /// mark that names the instance, and for `scale`, whose objects have neither, for all objects of the kinds.
    ///
    /// An atc that is away keeps nobody from his work, and one that does not answer holds up nobody but who writes these.
    pub fn of_protected(&self, protection: &Protection) -> Value {
        let rules = |operations: &[&str], below: &str| -> Vec<Value> {
            let rule = |kind: &ProtectedKind| {
                json!({
                    "apiGroups": [kind.group],
                    "apiVersions": [kind.version],
                    "operations": operations,
                    "resources": [format!("{}{below}", kind.plural)],
                    "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
                })
            };
            protection.kinds.iter().map(rule).collect()
        };
        let mut own = rules(&["UPDATE", "DELETE"], "");
        own.extend(rules(&["UPDATE"], "/status"));
        let path = "/validations/resources";
        let mut resources = self.webhook(RESOURCES, path, &own.into(), RESOURCE_TIMEOUT);
        resources["objectSelector"] =
            json!({"matchLabels": {names::LABEL_MANAGED_BY: names::MANAGED_BY_ATC}});
        let mut scales = self.webhook(
            "scales.resources.yoke.cd",
            path,
            &rules(&["UPDATE"], "/scale").into(),
            RESOURCE_TIMEOUT,
        );
        for webhook in [&mut resources, &mut scales] {
            webhook["failurePolicy"] = "Ignore".into();
            let condition = &mut webhook["matchConditions"][0]["expression"];
            let probe = names::MANAGER_PROBE;
            *condition = format!(
                "{} || (has(request.options) && has(request.options.fieldManager) && \
                 request.options.fieldManager == '{probe}')",
                condition.as_str().unwrap_or_default()
            )
            .into();
        }
        if let Some(conditions) = resources["matchConditions"].as_array_mut() {
            conditions.push(json!({ "name": "not-a-mere-status", "expression": no_mere_status() }));
            if let Some(made) = protection.of_makers() {
                conditions.push(json!({ "name": MADE_IN_STATIC, "expression": made }));
            }
        }
        let mut value = configuration(names::WEBHOOK_RESOURCES, &resources);
        value["webhooks"] = json!([resources, scales]);
        value
    }
}

/// Whether a write of a status, as controllers make them all the time, also changes by what an object is known as the
/// release's: most kinds let it.
fn no_mere_status() -> String {
    let differs = |field: &str, none: &str, but: &str| {
        let of = |object: &str| {
            let place = format!("{object}.metadata.{field}");
            format!("(has({place}) ? {place}{but} : {none})")
        };
        format!("{} != {}", of("object"), of("oldObject"))
    };
    let ours = format!(
        ".filter(entry, has(entry.manager) && entry.manager == '{}')",
        names::MANAGER_YOKE
    );
    [
        "!has(request.subResource) || request.subResource != 'status'".to_owned(),
        differs("labels", "{}", ""),
        differs("annotations", "{}", ""),
        differs("ownerReferences", "[]", ""),
        differs("finalizers", "[]", ""),
        differs("managedFields", "[]", &ours),
    ]
    .join(" || ")
}

/// The webhook that is asked about changes of resources: the API server names it in what it says of a refusal.
pub const RESOURCES: &str = "resources.yoke.cd";

/// Seconds that the API server waits for what we say of a resource: it is decided from memory.
pub const RESOURCE_TIMEOUT: u8 = 5;

/// Seconds that the API server waits for the review of an instance: as in the existing tool. Our own limit for a run at
/// admission is shorter, so that a denial has our words.
pub const INSTANCE_TIMEOUT: u8 = 10;

/// The same for an Airway: its modules are fetched anew and compiled. The API server waits no longer for anybody.
pub const AIRWAY_TIMEOUT: u8 = 30;

/// The same for a Flight.
pub const FLIGHT_TIMEOUT: u8 = 30;

/// Seconds that the API server waits for whether somebody may act as an account: one question to it.
pub const ACCOUNT_TIMEOUT: u8 = 10;

/// The rule for writes of kinds of ours.
fn own_kinds(plurals: &[&str], scope: &str) -> Value {
    json!([{
        "apiGroups": [GROUP],
        "apiVersions": [VERSION],
        "operations": ["CREATE", "UPDATE"],
        "resources": plurals,
        "scope": scope,
    }])
}

fn configuration(name: &str, webhook: &Value) -> Value {
    json!({
        "apiVersion": format!("{REGISTRATION}/v1"),
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {
            "name": name,
            "labels": {(names::LABEL_MANAGED_BY): names::MANAGED_BY_ATC},
        },
        "webhooks": [webhook],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(url: Option<&str>) -> WebhookService {
        WebhookService {
            name: "atc".into(),
            namespace: "n".into(),
            port: 443,
            url: url.map(|url| url.parse().expect(url)),
            ca_bundle: RwLock::new(b"old".to_vec()),
            username: OnceLock::new(),
        }
    }

    #[test]
    fn who_asks_us_and_does_not_know_a_ca() {
        for url in [None, Some("https://atc.dev/team")] {
            let us = service(url);
            let before = us.client_config("/x");
            us.set_ca_bundle(b"new\nold".to_vec());
            let both = us.client_config("/x");
            let check = |config: &Value, ca: &str, expect: bool| {
                let found = us.is_unknown_to(config, ca.as_bytes());
                assert_eq!(found, expect, "{config} {ca}");
            };
            check(&before, "old", false);
            check(&before, "new", true);
            check(&both, "old", false);
            check(&both, "new", false);
            let mut without = both.clone();
            without["caBundle"] = Value::Null;
            check(&without, "new", true);
            // Others are no matter of ours.
            let mut other = service(Some("https://atc.dev/team2"));
            check(&other.client_config("/x"), "new", false);
            other.url = None;
            other.port = 1;
            check(&other.client_config("/x"), "new", false);
            check(&Value::Null, "new", false);
        }
    }
}
