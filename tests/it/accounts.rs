//! Flights that act as a service account: what that may, they may; nobody takes an account that he may not act as.

use anyhow::{Result, anyhow};
use atc_tests::{Api, FileServer, condition, eventually, guest, is_ready};
use serde_json::{Value, json};

use crate::flights::{API, Flights, flight, ready};
use crate::solo::Solo;
use crate::world::{HOOKS, LIMIT, World, configmap, configmap_in, look, text};

pub(crate) const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ALL: [&str; 7] = [
    "get", "list", "watch", "create", "patch", "update", "delete",
];

fn configmaps() -> Value {
    json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ALL }])
}

fn user() -> Value {
    json!({ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "user" })
}

/// Accounts of the test's namespace and what they may.
pub(crate) struct Accounts<'a>(pub(crate) &'a World);

impl Accounts<'_> {
    async fn make(&self, name: &str) {
        let path = format!("/api/v1/namespaces/{}/serviceaccounts", self.0.ns);
        let body = json!({ "metadata": { "name": name } });
        self.0.post(&path, &body).await;
    }

    pub(crate) fn subject(&self, name: &str) -> Value {
        json!({ "kind": "ServiceAccount", "namespace": self.0.ns, "name": name })
    }

    /// Gives rights in a namespace, by a Role and a binding of this name.
    pub(crate) async fn allow(&self, namespace: &str, name: &str, rules: Value, subject: Value) {
        let all = format!("{RBAC}/namespaces/{namespace}");
        let role = json!({ "metadata": { "name": name }, "rules": rules });
        self.0.post(&format!("{all}/roles"), &role).await;
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
            "subjects": [subject],
        });
        self.0.post(&format!("{all}/rolebindings"), &binding).await;
    }

    /// One that may write ConfigMaps here.
    pub(crate) async fn writer(&self, name: &str) {
        self.make(name).await;
        self.allow(&self.0.ns, name, configmaps(), self.subject(name))
            .await;
    }

    fn binding(&self, name: &str) -> String {
        format!("{RBAC}/namespaces/{}/rolebindings/{name}", self.0.ns)
    }
}

/// Creates what is taken as soon as the API server knows of the rights.
pub(crate) async fn create(flights: &Flights<'_>, body: &Value) {
    eventually(LIMIT, "the Flight is taken", || async {
        flights.create(body).await.map(Some)
    })
    .await;
}

/// Waits until a Flight says that it failed, with all these words.
async fn fails(world: &World, path: &str, words: &[&str]) {
    eventually(LIMIT, &format!("{path} says {words:?}"), || async {
        let found = world.get(path).await?.unwrap_or_default();
        let said = condition(&found, "Ready").cloned().unwrap_or_default();
        let message = text(&said["message"]);
        if said["reason"] == "Error" && words.iter().all(|word| message.contains(word)) {
            return Ok(Some(()));
        }
        Err(anyhow!("{said}"))
    })
    .await;
}

pub(crate) fn refused(answer: Result<Value>, words: &[&str]) {
    let said = answer.unwrap_err().to_string();
    for word in words {
        assert!(said.contains(word), "{word} in {said}");
    }
}

pub(crate) fn acting(account: &str) -> Value {
    json!({ "serviceAccountName": account, "mode": "dynamic" })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flight_does_what_its_account_may_w5() {
    let world = World::new().await;
    let (flights, accounts) = (Flights(&world), Accounts(&world));
    accounts.writer("app").await;
    let ns = &world.ns;
    let user = format!("system:serviceaccount:{ns}:app");
    let input = |names: &[&str]| {
        let objects = names
            .iter()
            .map(|name| configmap(name, json!({ "k": "v" })));
        json!({ "objects": objects.collect::<Vec<_>>() })
    };
    let body = flight("works", &input(&["one", "two"]), &acting("app"));
    create(&flights, &body).await;
    flights.ready("works").await;
    assert_eq!(world.configmaps(ns).await, ["one", "two"]);
    let edit = json!({ "spec": { "inputObject": input(&["two"]) } });
    world.merge(&flights.path("works"), &edit).await;
    world.gone(&world.core("configmaps", "one")).await;

    // What it may not is refused at admission, by the API server's word.
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" }, "stringData": { "k": "hidden" } });
    let beyond = flight("no", &json!({ "objects": [secret] }), &acting("app"));
    let said = flights.create(&beyond).await;
    let account = format!("as service account \"{ns}/app\"");
    refused(
        said,
        &[
            &account,
            &user,
            "cannot patch resource \"secrets\"",
            "core/v1/secret/s",
        ],
    );

    // It loses its rights while it runs: that is said, and tried again until it has them.
    let binding = accounts.binding("app");
    let before = world.get(&binding).await.unwrap().unwrap();
    world.delete(&binding).await;
    world.delete(&world.core("configmaps", "two")).await;
    fails(
        &world,
        &flights.path("works"),
        &[&user, &account, "configmaps", "\"two\" is forbidden"],
    )
    .await;
    let again = json!({ "metadata": { "name": "app" }, "roleRef": before["roleRef"], "subjects": before["subjects"] });
    world
        .post(&format!("{RBAC}/namespaces/{ns}/rolebindings"), &again)
        .await;
    world.has("two", json!({ "k": "v" })).await;
    flights.ready("works").await;
    flights.delete("works").await;
    assert!(world.configmaps(ns).await.is_empty());
    assert!(world.revisions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accounts_rights_reach_beyond_its_namespace_and_end_where_they_end() {
    let world = World::new().await;
    let (flights, accounts) = (Flights(&world), Accounts(&world));
    let other = world.namespace().await;
    accounts.writer("app").await;
    let data = configmap("source", json!({ "v": "seen" }));
    let path = format!("/api/v1/namespaces/{other}/configmaps");
    world.post(&path, &data).await;
    let mut more = acting("app");
    more["clusterAccess"] = true.into();
    more["resourceAccessMatchers"] = json!(["*/*"]);
    let input = json!({
        "look": [look("v", "ConfigMap", &other, "source", "data.v")],
        "objects": [configmap("copy", json!({ "v": "${v}" }))],
    });
    let body = flight("reader", &input, &more);
    let said = flights.create(&body).await;
    refused(
        said,
        &["cannot get resource \"configmaps\"", &other, "/app\""],
    );
    let rules = json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"] }]);
    accounts
        .allow(&other, "read", rules, accounts.subject("app"))
        .await;
    create(&flights, &body).await;
    world.has("copy", json!({ "v": "seen" })).await;
    // Its release lies in its namespace all the same, or nothing would tell whose an object is.
    let elsewhere = json!({ "objects": [configmap_in(&other, "x", json!({}))] });
    let body = flight("away", &elsewhere, &acting("app"));
    refused(flights.create(&body).await, &["multiple namespaces"]);
    flights.delete("reader").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_may_make_what_lies_in_no_namespace_and_it_goes_with_its_flight() {
    let world = World::new().await;
    let (flights, accounts) = (Flights(&world), Accounts(&world));
    accounts.writer("app").await;
    let (first, second) = (format!("a-{}", world.ns), format!("b-{}", world.ns));
    let rules = json!([{ "apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": ALL }]);
    let role = json!({ "metadata": { "name": world.ns }, "rules": rules });
    world.post(&format!("{RBAC}/clusterroles"), &role).await;
    let binding = json!({
        "metadata": { "name": world.ns },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": world.ns },
        "subjects": [accounts.subject("app")],
    });
    let bindings = format!("{RBAC}/clusterrolebindings");
    world.post(&bindings, &binding).await;
    let class = |name: &str| json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": name }, "value": 1 });
    let path = |name: &str| format!("/apis/scheduling.k8s.io/v1/priorityclasses/{name}");
    let input = json!({ "objects": [class(&first), class(&second)] });
    create(&flights, &flight("wide", &input, &acting("app"))).await;
    let found = flights.ready("wide").await;
    let made = world.get(&path(&first)).await.unwrap().unwrap();
    let named = &made["metadata"]["annotations"]["atc.yoke.cd/flight"];
    assert_eq!(*named, found["metadata"]["uid"]);
    assert!(made["metadata"]["ownerReferences"].is_null());

    let edit = json!({ "spec": { "inputObject": { "objects": [class(&second)] } } });
    world.merge(&flights.path("wide"), &edit).await;
    world.gone(&path(&first)).await;
    // The account loses its rights, then the Flight goes: what it made goes with it.
    world.delete(&format!("{bindings}/{}", world.ns)).await;
    flights.delete("wide").await;
    world.gone(&path(&second)).await;
    world
        .delete(&format!("{RBAC}/clusterroles/{}", world.ns))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_account_is_another_matter() {
    let world = World::new().await;
    let (flights, accounts) = (Flights(&world), Accounts(&world));
    accounts.writer("app").await;
    accounts.make("poor").await;
    let input = json!({ "objects": [configmap("one", json!({ "k": "v" }))] });
    create(&flights, &flight("moves", &input, &acting("app"))).await;
    flights.ready("moves").await;
    world.settle().await;
    let path = flights.path("moves");
    let name = |account: Value| json!({ "spec": { "serviceAccountName": account } });
    let change = async |account: Value| world.cluster.api.merge(&path, &name(account)).await;
    // Nothing but the account changes; what the old one has done proves nothing of the new one.
    refused(
        change(json!("poor")).await,
        &["/poor\"", "cannot patch resource \"configmaps\""],
    );
    refused(change(json!("nobody")).await, &["/nobody\" does not exist"]);
    refused(change(json!("No")).await, &["no name of a service account"]);
    let foreign = format!("{}/app", world.ns);
    refused(change(json!(foreign)).await, &["own namespace"]);
    accounts
        .allow(&world.ns, "poor", configmaps(), accounts.subject("poor"))
        .await;
    eventually(LIMIT, "the other account is taken", || async {
        change(json!("poor")).await.map(Some)
    })
    .await;
    flights.ready("moves").await;
    // The old one counts no more.
    world.delete(&accounts.binding("app")).await;
    world.delete(&world.core("configmaps", "one")).await;
    world.has("one", json!({ "k": "v" })).await;
    // Without one it is confined, as any other.
    change(Value::Null).await.unwrap();
    flights.ready("moves").await;
    world.delete(&accounts.binding("poor")).await;
    world.delete(&world.core("configmaps", "one")).await;
    world.has("one", json!({ "k": "v" })).await;
    flights.delete("moves").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_gone_is_said_and_holds_up_no_removal() {
    let world = World::new().await;
    let (flights, accounts) = (Flights(&world), Accounts(&world));
    accounts.writer("app").await;
    let input = json!({ "objects": [configmap("one", json!({ "k": "v" }))] });
    create(&flights, &flight("left", &input, &acting("app"))).await;
    flights.ready("left").await;
    // Its rights are still bound to its name: that is not enough.
    let account = world.core("serviceaccounts", "app");
    world.delete(&account).await;
    let path = flights.path("left");
    fails(&world, &path, &["/app\" does not exist"]).await;
    world.delete(&world.core("configmaps", "one")).await;
    accounts.make("app").await;
    flights.ready("left").await;
    world.has("one", json!({ "k": "v" })).await;

    world.delete(&account).await;
    world.delete(&accounts.binding("app")).await;
    fails(&world, &path, &["/app\" does not exist"]).await;
    flights.delete("left").await;
    world.gone(&world.core("configmaps", "one")).await;
    assert!(world.revisions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_takes_an_account_that_he_may_not_act_as() {
    let world = World::new().await;
    let (flights, accounts) = (Flights(&world), Accounts(&world));
    accounts.writer("app").await;
    let rules = json!([{ "apiGroups": ["yoke.cd"], "resources": ["flights"], "verbs": ALL }]);
    accounts.allow(&world.ns, "flights", rules, user()).await;
    let user_api = Api::new(world.cluster.user().await.unwrap());
    let (all, path) = (flights.all(), flights.path("taken"));
    let input = |value: &str| json!({ "objects": [configmap("one", json!({ "k": value }))] });
    let body = flight("taken", &input("v"), &acting("app"));
    eventually(LIMIT, "the user may write Flights", || async {
        let plain = flight("plain", &json!({ "note": "x" }), &json!({}));
        user_api.post(&all, &plain).await.map(Some)
    })
    .await;
    let words = [
        "user \"user\" may not have it act as service account",
        "/app\"",
        "impersonate",
    ];
    refused(user_api.post(&all, &body).await, &words);
    let edit = json!({ "spec": { "serviceAccountName": "app" } });
    let taken = user_api.merge(&flights.path("plain"), &edit).await;
    refused(taken, &words);
    // Nor by a Flight of his that prints one.
    let printed = flight("deep", &json!({ "objects": [body.clone()] }), &json!({}));
    let said = user_api.post(&all, &printed).await;
    refused(said, &["none that gives rights", "spec.serviceAccountName"]);

    // Nor by a Flight whose own account may not.
    accounts.make("other").await;
    let rules = json!([{ "apiGroups": ["yoke.cd"], "resources": ["flights"], "verbs": ALL }]);
    accounts
        .allow(&world.ns, "deep", rules, accounts.subject("other"))
        .await;
    let printed = flight(
        "deep",
        &json!({ "objects": [body.clone()] }),
        &acting("other"),
    );
    eventually(
        LIMIT,
        "the account may write Flights, and no such one",
        || async {
            let said = flights.create(&printed).await.unwrap_err().to_string();
            let account = format!(
                "user \"system:serviceaccount:{}:other\" may not have it act",
                world.ns
            );
            if said.contains(&account) {
                return Ok(Some(()));
            }
            Err(anyhow!("{said}"))
        },
    )
    .await;
    let rules =
        json!([{ "apiGroups": ["yoke.cd"], "resources": ["clusterflights"], "verbs": ["create"] }]);
    let role = json!({ "metadata": { "name": world.ns }, "rules": rules });
    world.post(&format!("{RBAC}/clusterroles"), &role).await;
    let binding = json!({
        "metadata": { "name": world.ns },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": world.ns },
        "subjects": [user()],
    });
    let bindings = format!("{RBAC}/clusterrolebindings");
    world.post(&bindings, &binding).await;
    let mut wide = flight(
        &world.ns,
        &input("v"),
        &acting(&format!("{}/app", world.ns)),
    );
    wide["kind"] = "ClusterFlight".into();
    eventually(
        LIMIT,
        "the user may write ClusterFlights, and no such one",
        || async {
            let said = user_api.post(&format!("{API}/clusterflights"), &wide).await;
            let said = said.unwrap_err().to_string();
            if words.iter().all(|word| said.contains(word)) {
                return Ok(Some(()));
            }
            Err(anyhow!("{said}"))
        },
    )
    .await;
    world.delete(&format!("{bindings}/{}", world.ns)).await;
    world
        .delete(&format!("{RBAC}/clusterroles/{}", world.ns))
        .await;

    // What one who may has made, another who may not does not change, but for what says nothing of what it does.
    create(&flights, &body).await;
    let edit = json!({ "spec": { "inputObject": input("w") } });
    refused(user_api.merge(&path, &edit).await, &words);
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    user_api.merge(&path, &label).await.unwrap();
    let rules = json!([{ "apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["app"], "verbs": ["impersonate"] }]);
    accounts
        .allow(&world.ns, "impersonate", rules, user())
        .await;
    eventually(LIMIT, "the user may act as the account", || async {
        user_api.merge(&path, &edit).await.map(Some)
    })
    .await;
    world.has("one", json!({ "k": "w" })).await;
    flights.delete("taken").await;
    flights.delete("plain").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_runs_as_an_account_for_whoever_may_not_act_as_it() {
    let world = World::new().await;
    let (flights, accounts) = (Flights(&world), Accounts(&world));
    accounts.writer("app").await;
    let rules = json!([{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] }]);
    accounts
        .allow(&world.ns, "secrets", rules, accounts.subject("app"))
        .await;
    let rules = json!([{ "apiGroups": ["yoke.cd"], "resources": ["flights"], "verbs": ALL }]);
    accounts.allow(&world.ns, "flights", rules, user()).await;
    let user_api = Api::new(world.cluster.user().await.unwrap());
    world.put_secret("s", "hidden").await;
    let files = FileServer::start().unwrap();
    let module = |name: &str| files.put(name, std::fs::read(guest("puppet").unwrap()).unwrap());
    let (mine, theirs) = (module("mine.wasm"), module("theirs.wasm"));
    // It tells what it finds.
    let telling = |url: &str| {
        let input = json!({
            "look": [look("v", "Secret", &world.ns, "s", "data.v")],
            "exitIf": { "v": "aGlkZGVu" },
        });
        let mut more = acting("app");
        more["clusterAccess"] = true.into();
        more["resourceAccessMatchers"] = json!(["*/*"]);
        more["wasmUrl"] = url.into();
        flight("telling", &input, &more)
    };
    eventually(LIMIT, "the user may write Flights", || async {
        let plain = flight("plain", &json!({ "note": "x" }), &json!({}));
        user_api.post(&flights.all(), &plain).await.map(Some)
    })
    .await;
    let kept = flight("kept", &json!({ "note": "x" }), &acting("app"));
    create(&flights, &kept).await;
    let edit = json!({ "spec": telling(&mine)["spec"] });
    let words = ["user \"user\" may not have it act as service account"];
    for answer in [
        user_api.post(&flights.all(), &telling(&mine)).await,
        user_api.merge(&flights.path("plain"), &edit).await,
        user_api.merge(&flights.path("kept"), &edit).await,
    ] {
        let said = answer.unwrap_err().to_string();
        assert!(said.contains(words[0]), "{said}");
        assert!(!said.contains("aGlkZGVu"), "{said}");
    }
    // Whoever may is told what the module says.
    eventually(LIMIT, "the account may read the Secret", || async {
        let said = flights.create(&telling(&theirs)).await.unwrap_err();
        let said = said.to_string();
        Ok(said.contains("v is aGlkZGVu").then_some(()))
    })
    .await;
    assert!(files.hits("theirs.wasm") > 0);
    assert_eq!(files.hits("mine.wasm"), 0, "it was loaded, so it ran");
    for name in ["plain", "kept"] {
        flights.delete(name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_accounts_write_does_not_hold_up_the_reviews_that_it_waits_for() {
    let world = World::new().await;
    let (flights, accounts) = (Flights(&world), Accounts(&world));
    accounts.writer("app").await;
    let kind = world.basic().await;
    let (group, plural) = (kind.airway.api_version(), kind.airway.plural());
    let group = group.split('/').next().unwrap();
    let rules = json!([
        { "apiGroups": [group], "resources": [plural], "verbs": ALL },
        { "apiGroups": ["yoke.cd"], "resources": ["flights"], "verbs": ALL },
        { "apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"] },
    ]);
    accounts
        .allow(&world.ns, "kinds", rules, accounts.subject("app"))
        .await;
    let input = |name: &str| {
        let instance = |i| {
            let name = format!("{name}-{i}");
            let mut object = kind.airway.instance(&name, &json!({ "note": "x" }));
            object["metadata"]["namespace"] = world.ns.as_str().into();
            object
        };
        json!({ "objects": (0..10).map(instance).collect::<Vec<_>>() })
    };
    let small = json!({ "objects": [kind.airway.instance("first", &json!({ "note": "x" }))] });
    create(&flights, &flight("first", &small, &acting("app"))).await;

    // Each of them waits for ten reviews of ours at once, and both are reviewed at once.
    let both = [("one", input("one")), ("two", input("two"))];
    let [one, two] = both.map(|(name, input)| flight(name, &input, &acting("app")));
    let plain = json!({ "note": "y" });
    let (one, two, plain) = tokio::join!(
        flights.create(&one),
        flights.create(&two),
        kind.create("plain", &plain)
    );
    for made in [one, two, plain] {
        made.unwrap();
    }
    for name in ["one", "two"] {
        flights.ready(name).await;
    }
    kind.ready("plain").await;

    // Flights that print Flights that print Flights, all with an account, more of them than there are places.
    let chain = |i: usize| {
        let end = json!({ "objects": [configmap(&format!("end-{i}"), json!({ "k": "v" }))] });
        let names = [format!("c-{i}"), format!("b-{i}"), format!("a-{i}")];
        let deeper = |input: Value, name: &String| json!({ "objects": [flight(name, &input, &acting("app"))] });
        let input = names[..2].iter().fold(end, deeper);
        flight(&names[2], &input, &acting("app"))
    };
    let chains: Vec<Value> = (0..10).map(chain).collect();
    let made = futures::future::join_all(chains.iter().map(|chain| flights.create(chain))).await;
    for made in made {
        made.unwrap();
    }
    for i in 0..10 {
        world.has(&format!("end-{i}"), json!({ "k": "v" })).await;
        flights.ready(&format!("a-{i}")).await;
    }
    for i in 0..10 {
        flights.delete(&format!("a-{i}")).await;
    }
    for name in ["first", "one", "two"] {
        flights.delete(name).await;
    }
    kind.delete("plain").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_flight_acts_as_an_account_of_some_namespace() {
    let world = World::new().await;
    let accounts = Accounts(&world);
    let other = world.namespace().await;
    accounts.writer("app").await;
    let name = format!("acting-{}", world.ns);
    let all = format!("{API}/clusterflights");
    let objects =
        [&world.ns, &other].map(|namespace| configmap_in(namespace, "x", json!({ "k": "v" })));
    let account = format!("{}/app", world.ns);
    let mut body = flight(&name, &json!({ "objects": objects }), &acting("app"));
    body["kind"] = "ClusterFlight".into();
    let api = &world.cluster.api;
    refused(api.post(&all, &body).await, &["\"namespace/name\""]);
    body["spec"]["serviceAccountName"] = account.as_str().into();
    let said = api.post(&all, &body).await;
    refused(said, &["cannot patch", &other, &account]);
    accounts
        .allow(&other, "app", configmaps(), accounts.subject("app"))
        .await;
    eventually(LIMIT, "the ClusterFlight is taken", || async {
        api.post(&all, &body).await.map(Some)
    })
    .await;
    let path = format!("{all}/{name}");
    ready(&world, &path).await;
    world.delete(&path).await;
    world.gone(&path).await;
    for namespace in [&world.ns, &other] {
        assert!(world.configmaps(namespace).await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_takes_an_account_while_no_atc_runs() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let (flights, accounts) = (Flights(world), Accounts(world));
    let mut atc = solo.atc(&[]).await;
    accounts.writer("app").await;
    atc.terminate().unwrap();
    let hook = |name: &str| format!("{HOOKS}/{name}");
    assert_eq!(world.get(&hook("atc-flight")).await.unwrap(), None);
    let body = flight("taken", &json!({ "note": "x" }), &acting("app"));
    refused(flights.create(&body).await, &["accounts.yoke.cd"]);
    // Nobody else waits for it.
    let plain = flight("plain", &json!({ "note": "x" }), &json!({}));
    flights.create(&plain).await.unwrap();
    atc.restart().await.unwrap();
    create(&flights, &body).await;
    flights.ready("taken").await;
    let found = flights.ready("plain").await;
    assert!(is_ready(&found));
    flights.delete("taken").await;
    flights.delete("plain").await;
}
