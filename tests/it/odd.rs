//! Objects that tools stumble over: huge ones, immutable ones, lists, aggregated roles, invalid ones in late stages, and
//! such as change hands in the middle.

use std::time::Duration;

use atc_tests::{AirwayBuilder, Fault, Proxy, Yoke, condition, eventually, never};
use serde_json::{Map, Value, json};

use crate::terminal::{Cli, objects, stages};
use crate::world::{
    CRDS, LIMIT, World, configmap, configmap_in, deployment, free_crd, job, puppet, text,
};

/// How long is looked for what must not happen.
const SILENCE: Duration = Duration::from_secs(2);

/// Text that no packing makes much smaller.
fn noise(seed: u64, bytes: usize) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d ^ seed;
    let letters = std::iter::repeat_with(|| {
        // xorshift64, Marsaglia 2003.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + u8::try_from(state % 90).unwrap())
    });
    letters.take(bytes).collect()
}

/// Fields for a schema, so many that they take this many bytes at least.
fn many_fields(bytes: usize) -> Map<String, Value> {
    let words = "what this field is good for, at length. ".repeat(24);
    let field = json!({ "type": "string", "description": words });
    (0..=bytes / words.len())
        .map(|number| (format!("field{number}"), field.clone()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aggregated_role_keeps_its_rules_r31() {
    let cli = Cli::new().await;
    let ns = &cli.world.ns;
    let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]);
    let part = format!("{ns}-part");
    let role = |name: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": format!("{ns}-{name}"), "labels": { "role": format!("{ns}-{name}") } },
            "rules": [],
        })
    };
    let (mut one, mut all) = (role("part"), role("all"));
    one["rules"] = rules.clone();
    let selectors = json!([{ "matchLabels": { "role": part } }]);
    all["aggregationRule"] = json!({ "clusterRoleSelectors": selectors });
    let output = json!([one, all]);
    let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{ns}-all");
    cli.ok(&["takeoff", "r"], &output).await;
    let role = eventually(LIMIT, "its controller fills the role", || async {
        let role = cli.world.get(&path).await?;
        Ok(role.filter(|role| role["rules"] == rules))
    })
    .await;
    // Neither side takes anything from the other again.
    for force in [&["takeoff", "r"][..], &["takeoff", "-force-conflicts", "r"]] {
        let ran = cli.ok(force, &output).await;
        assert!(ran.stderr.starts_with("warning: "), "{}", ran.stderr);
    }
    never(SILENCE, "the role changes", || async {
        let now = cli.world.get(&path).await?.unwrap();
        Ok(
            (now["metadata"]["resourceVersion"] != role["metadata"]["resourceVersion"])
                .then_some(now),
        )
    })
    .await;
    let ran = cli.ok(&["turbulence", "r"], &Value::Null).await;
    assert_eq!(ran.stdout, "");
    cli.ok(&["mayday", "r"], &Value::Null).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_makes_nothing_that_it_hangs_from() {
    let world = World::new().await;
    // Its own Airway.
    let kind = world.wide().await;
    let airway = kind.airway.build();
    let refused = kind
        .create(
            &format!("own-{}", world.ns),
            &json!({ "objects": [airway] }),
        )
        .await;
    let said = refused.unwrap_err().to_string();
    let words = format!(
        "has /Airway.yoke.cd:{}, which owns this instance",
        kind.airway.name()
    );
    assert!(said.contains(&words), "{said}");
    // One that made it.
    let kind = world.loose().await;
    let outer = kind.airway.instance("outer", &json!({}));
    let inner = kind
        .airway
        .instance("inner", &json!({ "objects": [outer] }));
    kind.create("outer", &json!({ "objects": [inner] }))
        .await
        .unwrap();
    let words = format!("has {}/Loose.tests.atc.dev:outer, which owns", world.ns);
    kind.says("inner", "Error", &words).await;
    kind.until("outer", "waits for the other one", |outer| {
        condition(outer, "Ready").is_some_and(|ready| {
            ready["status"] == "False" && text(&ready["message"]).contains("inner")
        })
    })
    .await;
    kind.delete("outer").await;
    kind.gone("inner").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stages_go_in_reverse_and_wait_for_each_other_r61() {
    let cli = Cli::new().await;
    let world = &cli.world;
    cli.ok(&["takeoff", "r"], &stages("one,two,three", "v"))
        .await;
    let path = world.core("configmaps", "two");
    let hold = |finalizers: Value| json!({ "metadata": { "finalizers": finalizers } });
    world.merge(&path, &hold(json!(["example.dev/hold"]))).await;
    let mayday = cli.ok(&["mayday", "r"], &Value::Null);
    let look = async {
        eventually(LIMIT, "the second stage goes", || async {
            let two = world.get(&path).await?.unwrap();
            Ok((!two["metadata"]["deletionTimestamp"].is_null()).then_some(()))
        })
        .await;
        assert!(world.configmap("three").await.is_none());
        never(SILENCE, "the first stage goes", || async {
            let one = world.configmap("one").await.unwrap();
            Ok((!one["metadata"]["deletionTimestamp"].is_null()).then_some(()))
        })
        .await;
        assert_eq!(world.revisions().await.len(), 1);
        world.merge(&path, &hold(Value::Null)).await;
    };
    tokio::join!(mayday, look);
    assert!(world.configmaps(&world.ns).await.is_empty());
    assert!(world.revisions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fits_no_record_is_not_applied_r65() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let output: Value = (0..12)
        .map(|number| {
            let text = noise(number, 120 << 10);
            configmap(&format!("c{number}"), json!({ "text": text }))
        })
        .collect();
    let words = ["12 objects take", "a Secret holds at most 1048576"];
    let arguments = ["takeoff", "r"];
    cli.fails(&arguments, &output.to_string(), &words).await;
    assert!(world.configmaps(&world.ns).await.is_empty());
    assert!(world.revisions().await.is_empty());
    assert!(cli.intents().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_schema_is_served_without_a_copy_of_it_r71() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Huge", &puppet());
    let kind = world
        .kind_with(airway, |airway| {
            let schema = &mut airway["spec"]["template"]["versions"][0]["schema"];
            let spec = &mut schema["openAPIV3Schema"]["properties"]["spec"];
            spec["properties"] = many_fields(700 << 10).into();
        })
        .await;
    let size = |value: &Value| value.to_string().len();
    let crd = format!("{CRDS}/{}", kind.airway.name());
    let crd = world.get(&crd).await.unwrap().unwrap();
    assert!(size(&crd["spec"]) > 700 << 10);
    let airway = world.get(&kind.airway_path()).await.unwrap().unwrap();
    for object in [&crd, &airway] {
        let annotations = &object["metadata"]["annotations"];
        assert!(size(annotations) < 1 << 10, "{annotations}");
        let status = &object["status"];
        assert!(size(status) < 4 << 10, "{status}");
    }
    kind.make("h", json!({ "field1": "v" })).await;
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn immutable_fields_are_named_before_any_write_r73_r75() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let set = |service: &str| {
        let mut set = deployment("s", 0);
        set["kind"] = "StatefulSet".into();
        set["spec"]["serviceName"] = service.into();
        set
    };
    let work = |image: &str| {
        let mut job = job("j");
        job["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
        job
    };
    let output = |v: &str, service: &str, image: &str| {
        let data = json!({ "v": v });
        let (a, b) = (configmap("a", data.clone()), configmap("b", data));
        json!([a, set(service), work(image), b])
    };
    cli.ok(&["takeoff", "r"], &output("1", "one", "first"))
        .await;
    let job = format!("/apis/batch/v1/namespaces/{}/jobs/j", world.ns);
    eventually(LIMIT, "the Job has completed", || async {
        let job = world.get(&job).await?;
        Ok(job.filter(|job| job["status"]["succeeded"] == 1))
    })
    .await;
    let before = world.revision_names().await;
    let refused = output("2", "two", "second").to_string();
    for force in [&["takeoff", "r"][..], &["takeoff", "-force-conflicts", "r"]] {
        let words = [
            "statefulset/s",
            "spec.serviceName",
            "job/j",
            "spec.template: ",
            "immutable",
        ];
        cli.fails(force, &refused, &words).await;
        for name in ["a", "b"] {
            assert_eq!(world.data(name).await, json!({ "v": "1" }));
        }
    }
    assert_eq!(world.revision_names().await, before);
    cli.ok(&["takeoff", "r"], &output("3", "one", "first"))
        .await;
    assert_eq!(world.data("b").await, json!({ "v": "3" }));
    cli.ok(&["mayday", "r"], &Value::Null).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_unfolded_for_takeoff_prune_and_drift_r77() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let list = |kind: &str, names: &[&str]| json!({ "apiVersion": "v1", "kind": kind, "items": objects(names) });
    let output = json!([
        [list("List", &["a", "b"]), configmap("c", json!({}))],
        [list("ConfigMapList", &["d"]), list("List", &[])],
    ]);
    cli.ok(&["takeoff", "r"], &output).await;
    assert_eq!(world.configmaps(&world.ns).await, ["a", "b", "c", "d"]);
    let again = cli.ok(&["takeoff", "r"], &output).await;
    assert!(again.stderr.starts_with("warning: "), "{}", again.stderr);
    world
        .merge(
            &world.core("configmaps", "b"),
            &json!({ "data": { "k": "w" } }),
        )
        .await;
    let ran = cli.ok(&["turbulence", "r"], &Value::Null).await;
    for words in ["configmap/b: differs", "1 of 4 resources"] {
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    cli.ok(&["turbulence", "-fix", "r"], &Value::Null).await;
    assert_eq!(world.data("b").await, json!({ "k": "v" }));
    cli.ok(&["takeoff", "r"], &list("List", &["b"])).await;
    assert_eq!(world.configmaps(&world.ns).await, ["b"]);
    cli.ok(&["takeoff", "r"], &list("List", &[])).await;
    assert!(world.configmaps(&world.ns).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_is_dropped_stays_where_another_has_it_r160() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let with = |name: &str, replicas: Option<u32>| {
        let mut deployment = deployment(name, 3);
        // Nothing comes up: this is about a field.
        deployment["spec"]["paused"] = true.into();
        if replicas.is_none() {
            deployment["spec"]
                .as_object_mut()
                .unwrap()
                .shift_remove("replicas");
        }
        deployment
    };
    let both = |replicas| json!([with("scaled", replicas), with("alone", replicas)]);
    let path = |name: &str| format!("/apis/apps/v1/namespaces/{}/deployments/{name}", world.ns);
    cli.ok(&["takeoff", "r"], &both(Some(3))).await;
    // An autoscaler takes the field by the scale subresource.
    let ten = json!({ "spec": { "replicas": 10 } });
    world
        .merge(&format!("{}/scale", path("scaled")), &ten)
        .await;
    // That it is dropped is in the diff.
    let ran = cli.ok(&["takeoff", "-diff-only", "r"], &both(None)).await;
    let removed = ran.stdout.lines().filter_map(|line| line.strip_prefix('-'));
    let dropped = removed.filter(|line| line.trim() == "replicas: 3");
    assert_eq!(dropped.count(), 2, "{}", ran.stdout);
    cli.ok(&["takeoff", "r"], &both(None)).await;
    for (name, replicas) in [("scaled", 10), ("alone", 1)] {
        let live = world.get(&path(name)).await.unwrap().unwrap();
        assert_eq!(live["spec"]["replicas"], replicas, "{name}");
    }
    cli.ok(&["mayday", "r"], &Value::Null).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_stage_is_asked_about_before_the_first_write_p12_w29() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let ns = format!("{}-new", world.ns);
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": ns } });
    let crd = free_crd("Late");
    let late = json!({ "apiVersion": "made.dev/v1", "kind": "Late", "metadata": { "name": "l" } });
    // The kind and the namespace of some come with the output itself: they can't be asked about, the others can.
    let output = |last: Value| {
        json!([
            [configmap("first", json!({})), crd, namespace],
            [configmap_in(&ns, "inside", json!({})), late],
            [last],
        ])
    };
    let path = format!("/api/v1/namespaces/{}/configmaps", world.ns);
    world.post(&path, &configmap("theirs", json!({}))).await;
    let arguments = ["takeoff", "-cross-namespace", "r"];
    let mut invalid = deployment("d", 0);
    invalid["spec"]["template"]["metadata"]["labels"] = json!({ "app": "another" });
    for (last, words) in [
        (invalid, ["deployment/d", "selector"]),
        (
            configmap("Not_A_Name", json!({})),
            ["Not_A_Name", "invalid"],
        ),
        (
            configmap("theirs", json!({})),
            ["configmap/theirs", "owned by no release"],
        ),
    ] {
        cli.fails(&arguments, &output(last).to_string(), &words)
            .await;
        assert_eq!(world.configmaps(&world.ns).await, ["theirs"]);
        let path = format!("/api/v1/namespaces/{ns}");
        assert!(world.get(&path).await.unwrap().is_none());
        assert!(world.revisions().await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_and_one_of_it_in_two_stages_pass_admission_w29() {
    let world = World::new().await;
    let kind = world.basic().await;
    let crd = free_crd("Staged");
    let staged =
        json!({ "apiVersion": "made.dev/v1", "kind": "Staged", "metadata": { "name": "s" } });
    let path = format!("{CRDS}/{}", text(&crd["metadata"]["name"]));
    // What can be asked about of a late stage is asked about.
    let late = [staged.clone(), configmap("Not_A_Name", json!({}))];
    let refused = kind.create("s", &json!({ "stages": [[crd], late] })).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("Not_A_Name"), "{refused}");
    assert!(world.get(&path).await.unwrap().is_none());
    kind.make("s", json!({ "stages": [[crd], [staged]] })).await;
    let made = format!("/apis/made.dev/v1/namespaces/{}/stageds/s", world.ns);
    assert!(world.get(&made).await.unwrap().is_some());
    kind.delete("s").await;
    assert!(world.get(&made).await.unwrap().is_none());
    world.delete(&path).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_who_slips_in_before_the_apply_is_noticed_p12() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let proxy = Proxy::start(world.cluster.plane()).await.unwrap();
    let slow = Yoke::through(world.cluster.plane(), &proxy).unwrap();
    let output = |value: &str| json!([configmap("a", json!({ "k": value }))]);
    let patch = format!("PATCH {}?", world.core("configmaps", "a"));
    let begin = async |arguments: &[&str]| {
        let seen = proxy.requests().len();
        proxy.fail_times(&patch, Fault::Hold, 1);
        let run = cli.start(&slow, arguments, &output("late"));
        eventually(LIMIT, "the apply is on its way", || async {
            let requests = proxy.requests();
            Ok(requests[seen..]
                .iter()
                .any(|line| line.starts_with(&patch))
                .then_some(()))
        })
        .await;
        run
    };
    cli.ok(&["takeoff", "r"], &output("1")).await;
    // Somebody else's edit in between is no matter.
    let run = begin(&["takeoff", "r"]).await;
    world
        .merge(
            &world.core("configmaps", "a"),
            &json!({ "data": { "theirs": "1" } }),
        )
        .await;
    proxy.heal();
    let ran = run.end().await.unwrap();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(world.data("a").await, json!({ "k": "late", "theirs": "1" }));
    // Another release is.
    cli.ok(&["takeoff", "r"], &output("2")).await;
    for force in [&["takeoff", "r"][..], &["takeoff", "-force-conflicts", "r"]] {
        let run = begin(force).await;
        cli.ok(&["takeoff", "-force-ownership", "other"], &output("other"))
            .await;
        proxy.heal();
        let ran = run.end().await.unwrap();
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        let words = format!("owned by release \"{}/other\"", world.ns);
        assert!(ran.stderr.contains(&words), "{}", ran.stderr);
        assert_eq!(cli.owner("a").await, "other");
        assert_eq!(world.data("a").await["k"], "other");
        cli.ok(&["takeoff", "-force-ownership", "r"], &output("3"))
            .await;
    }
}
