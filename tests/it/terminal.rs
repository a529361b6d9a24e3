//! The command line in a test's namespace, and what a release has there.

use std::collections::BTreeMap;

use atc_tests::{Cluster, Yoke, YokeOutput, YokeRun};
use serde_json::{Value, json};

use crate::world::{World, configmap, text};

/// Objects by name, with their data.
pub(crate) type State = BTreeMap<String, Value>;

/// The command line in a namespace of its own. No atc has a hand in it.
pub(crate) struct Cli {
    pub(crate) world: World,
    pub(crate) yoke: Yoke,
}

impl Cli {
    pub(crate) async fn new() -> Self {
        let world = World::on(Cluster::shared().await).await;
        let yoke = Yoke::new(world.cluster.plane()).unwrap();
        Self { world, yoke }
    }

    /// Begins a command in the test's namespace.
    pub(crate) fn start(&self, yoke: &Yoke, arguments: &[&str], input: &Value) -> YokeRun {
        yoke.start(&self.here(arguments), &input.to_string())
            .unwrap()
    }

    /// The arguments, with the test's namespace.
    fn here<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        let mut all = vec![arguments[0], "-namespace", &self.world.ns];
        all.extend(&arguments[1..]);
        all
    }

    /// Runs a command in the test's namespace.
    pub(crate) async fn run(&self, arguments: &[&str], input: &str) -> YokeOutput {
        self.run_by(&self.yoke, arguments, input).await
    }

    /// The same by another, one behind a proxy for instance.
    pub(crate) async fn run_by(&self, yoke: &Yoke, arguments: &[&str], input: &str) -> YokeOutput {
        let ran = yoke.with_input(&self.here(arguments), input).await.unwrap();
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        ran
    }

    /// Runs what must succeed.
    pub(crate) async fn ok(&self, arguments: &[&str], input: &Value) -> YokeOutput {
        let ran = self.run(arguments, &input.to_string()).await;
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        ran
    }

    /// Runs what must fail: exit code 1, these words on stderr, nothing on stdout.
    pub(crate) async fn fails(&self, arguments: &[&str], input: &str, words: &[&str]) {
        let ran = self.run(arguments, input).await;
        assert_eq!(ran.code, 1, "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{arguments:?}");
        for words in words {
            assert!(ran.stderr.contains(words), "{words:?} in {}", ran.stderr);
        }
    }

    pub(crate) async fn owner(&self, name: &str) -> Value {
        let found = self.world.configmap(name).await.unwrap();
        found["metadata"]["annotations"]["instance.atc.yoke.cd/release"].clone()
    }

    /// The ConfigMaps of the test's namespace but for the cluster's own.
    pub(crate) async fn state(&self) -> State {
        let path = format!("/api/v1/namespaces/{}/configmaps", self.world.ns);
        let all = self.world.cluster.api.list(&path).await.unwrap();
        all.iter()
            .map(|one| {
                (
                    text(&one["metadata"]["name"]).to_owned(),
                    one["data"].clone(),
                )
            })
            .filter(|(name, _)| name != "kube-root-ca.crt")
            .collect()
    }

    /// What is under way or was interrupted in the test's namespace.
    pub(crate) async fn intents(&self) -> Vec<Value> {
        let path = format!(
            "/api/v1/namespaces/{}/secrets?labelSelector=atc.yoke.cd%2Fkind%3Dintent",
            self.world.ns
        );
        self.world.cluster.api.list(&path).await.unwrap()
    }

    /// Number of objects in the active one of all revisions here, and of revisions.
    pub(crate) async fn active(&self) -> (usize, usize) {
        let revisions = self.world.revisions().await;
        let annotation = |one: &Value, key: &str| {
            text(&one["metadata"]["annotations"][format!("internal.yoke/{key}")]).to_owned()
        };
        // Of one length by then, so that they sort as times do.
        let moment = |one: &Value| {
            let time = annotation(one, "active-at");
            let (whole, part) = time
                .trim_end_matches('Z')
                .split_once('.')
                .map_or((time.trim_end_matches('Z'), ""), |parts| parts);
            format!("{whole}.{part:0<9}")
        };
        let active = revisions.iter().max_by_key(|one| moment(one));
        let resources = active.map_or(0, |one| annotation(one, "resources").parse().unwrap());
        (resources, revisions.len())
    }

    /// That the release is settled: these objects and no others, as its active revision says, and nothing under way.
    pub(crate) async fn settled(&self, wanted: &State, theirs: &State, what: &str) {
        let mut all = wanted.clone();
        all.extend(theirs.clone());
        assert_eq!(self.state().await, all, "{what}");
        assert_eq!(self.active().await.0, wanted.len(), "{what}");
        let intents = self.intents().await;
        assert!(intents.is_empty(), "{what}: {intents:?}");
    }
}

/// Stages of ConfigMaps with these names (`"a b, c"`), all with `k: value`.
pub(crate) fn stages(names: &str, value: &str) -> Value {
    let stage = |stage: &str| -> Value {
        let names = stage.split_whitespace();
        names
            .map(|name| configmap(name, json!({ "k": value })))
            .collect()
    };
    names.split(',').map(stage).collect()
}

/// The same as they are in the cluster.
pub(crate) fn state_of(names: &str, value: &str) -> State {
    let names = names.split([' ', ',']).filter(|name| !name.is_empty());
    names
        .map(|name| (name.to_owned(), json!({ "k": value })))
        .collect()
}

/// ConfigMaps of these names, with `k: v`.
pub(crate) fn objects(names: &[&str]) -> Value {
    names
        .iter()
        .map(|name| configmap(name, json!({ "k": "v" })))
        .collect()
}
