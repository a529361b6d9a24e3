//! Objects whose kind or namespace comes with the same output: judged before anything is written.

use serde_json::{Value, json};

use crate::terminal::Cli;
use crate::world::{CRDS, World, configmap, configmap_in, free_crd};

/// A CRD of `kind` whose spec has these properties.
fn crd(kind: &str, properties: Value) -> Value {
    let mut crd = free_crd(kind);
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({
        "type": "object", "required": ["spec"],
        "properties": { "spec": { "type": "object", "properties": properties } },
    });
    crd
}

fn one(kind: &str, spec: Value) -> Value {
    json!({ "apiVersion": "made.dev/v1", "kind": kind, "metadata": { "name": "one" }, "spec": spec })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_its_own_definition_stops_the_takeoff() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let crd = crd("Misfit", json!({ "size": { "type": "integer" } }));
    let mut versionless = one("Misfit", json!({}));
    versionless["apiVersion"] = json!("made.dev/v2");
    for (custom, words) in [
        (one("Misfit", json!({ "size": "hunter2" })), "spec.size"),
        (one("Misfit", json!({ "sise": 1 })), "declare sise"),
        (
            json!({ "apiVersion": "made.dev/v1", "kind": "Misfit", "metadata": { "name": "one" } }),
            "\"spec\"",
        ),
        (versionless, "served by its definition: v1"),
    ] {
        let all = json!([configmap("a", json!({})), crd, custom]).to_string();
        for flags in [&["takeoff", "-dry", "r"][..], &["takeoff", "r"]] {
            let ran = cli.run(flags, &all).await;
            assert_eq!(ran.code, 1, "{}", ran.stderr);
            for words in [words, "misfit/one"] {
                assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
            }
            assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
        }
        assert!(world.configmap("a").await.is_none());
        let made = world.get(&format!("{CRDS}/misfits.made.dev")).await;
        assert_eq!(made.unwrap(), None);
        assert!(world.revisions().await.is_empty());
        assert!(cli.intents().await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fits_its_own_definition_lands_and_follows_it() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let path = format!("/apis/made.dev/v1/namespaces/{}/fittings/one", world.ns);
    let rule = json!([{ "rule": "self < 9" }]);
    let sized = json!({ "type": "integer", "default": 3, "x-kubernetes-validations": rule });
    let output = json!([
        crd("Fitting", json!({ "size": sized })),
        one("Fitting", json!({ "size": null }))
    ]);
    let dry = cli.ok(&["takeoff", "-dry", "r"], &output).await;
    for words in [
        "Fitting.made.dev:one",
        "not served yet",
        "not checked: its rules in CEL",
        "1 of 2",
    ] {
        assert!(dry.stderr.contains(words), "{words}: {}", dry.stderr);
    }
    assert_eq!(
        world
            .get(&format!("{CRDS}/fittings.made.dev"))
            .await
            .unwrap(),
        None
    );
    cli.ok(&["takeoff", "r"], &output).await;
    assert_eq!(
        world.get(&path).await.unwrap().unwrap()["spec"],
        json!({ "size": 3 })
    );

    // The definition changes, and the object with it: what the server knows by then is the old one.
    let colour = json!({ "type": "string", "enum": ["red"] });
    let changed = crd("Fitting", json!({ "size": sized, "colour": colour }));
    let blue = json!([changed, one("Fitting", json!({ "colour": "blue" }))]).to_string();
    cli.fails(&["takeoff", "r"], &blue, &["spec.colour", "fitting/one"])
        .await;
    let live = world.get(&path).await.unwrap().unwrap();
    assert_eq!(live["spec"], json!({ "size": 3 }));
    let red = json!([changed, one("Fitting", json!({ "colour": "red" }))]);
    let dry = cli.ok(&["takeoff", "-dry", "r"], &red).await;
    assert!(dry.stderr.contains("changes before it"), "{}", dry.stderr);
    cli.ok(&["takeoff", "r"], &red).await;
    let live = world.get(&path).await.unwrap().unwrap();
    assert_eq!(live["spec"], json!({ "colour": "red", "size": 3 }));
    // Served and unchanged: the server's word counts, its rules included.
    let large = json!([changed, one("Fitting", json!({ "size": 9 }))]).to_string();
    cli.fails(&["takeoff", "r"], &large, &["fitting/one", "failed rule"])
        .await;
    // What the server takes by the old definition and the new one forbids.
    let narrowed = crd(
        "Fitting",
        json!({ "size": { "type": "integer", "maximum": 2 } }),
    );
    let output = json!([narrowed, one("Fitting", json!({ "size": 3 }))]).to_string();
    cli.fails(&["takeoff", "r"], &output, &["spec.size", "fitting/one"])
        .await;
    cli.ok(&["mayday", "-remove-crds", "r"], &Value::Null).await;
    world.gone(&format!("{CRDS}/fittings.made.dev")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_namespace_to_come_are_judged_elsewhere() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let namespace = format!("to-come-{}", world.ns);
    let made =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    let good = configmap_in(&namespace, "good", json!({ "k": "v" }));
    let mut bad = configmap_in(&namespace, "bad", json!({}));
    bad["data"] = json!({ "k": { "not": "a text" } });
    let path = format!("/api/v1/namespaces/{namespace}");
    let flags = ["takeoff", "-cross-namespace", "r"];
    let output = json!([made, good, bad]).to_string();
    let object = format!("{namespace}/core/v1/configmap/bad");
    cli.fails(&flags, &output, &[&object]).await;
    assert_eq!(world.get(&path).await.unwrap(), None);
    let output = json!([made, good]);
    let dry = cli
        .ok(&["takeoff", "-dry", "-cross-namespace", "r"], &output)
        .await;
    for words in [
        "not exist yet",
        "ConfigMap:good",
        "\"default\" it would be taken",
    ] {
        assert!(dry.stderr.contains(words), "{words}: {}", dry.stderr);
    }
    assert_eq!(world.get(&path).await.unwrap(), None);
    cli.ok(&flags, &output).await;
    let made = world.get(&format!("{path}/configmaps/good")).await.unwrap();
    assert_eq!(made.unwrap()["data"], json!({ "k": "v" }));
    cli.ok(&["mayday", "-remove-namespaces", "r"], &Value::Null)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_defines_a_kind_is_judged_at_admission() {
    let world = World::new().await;
    let kind = world.basic().await;
    let crd = crd("Admitted", json!({ "size": { "type": "integer" } }));
    let with = |size: Value| json!({ "objects": [crd, one("Admitted", json!({ "size": size }))] });
    let error = kind
        .create("a", &with(json!("large")))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("denied") && error.contains("spec.size"),
        "{error}"
    );
    assert_eq!(
        world
            .get(&format!("{CRDS}/admitteds.made.dev"))
            .await
            .unwrap(),
        None
    );
    kind.make("a", with(json!(1))).await;
    let path = format!("/apis/made.dev/v1/namespaces/{}/admitteds/one", world.ns);
    assert_eq!(
        world.get(&path).await.unwrap().unwrap()["spec"],
        json!({ "size": 1 })
    );
    kind.delete("a").await;
    let path = format!("{CRDS}/admitteds.made.dev");
    world.delete(&path).await;
    world.gone(&path).await;
}

/// A namespace that is to be made is not there in a dry run, and is not made by it.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_takes_a_namespace_for_made_that_it_would_make() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let absent = format!("absent-{}", world.ns);
    let take = async |flags: &[&str], data: Value| {
        let arguments = [&["takeoff", "-namespace", &absent, "r"][..], flags].concat();
        let input = json!([configmap("a", data)]).to_string();
        cli.yoke.with_input(&arguments, &input).await.unwrap()
    };
    let both = ["-dry", "-create-namespace"];
    let ran = take(&both, json!({ "k": "v" })).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    let absence = format!("namespace \"{absent}\" does not exist yet");
    for words in ["can't judge", &absence, "would take 0 of 1 resource"] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    // What no namespace would take is refused, and without the flag it is as it was.
    let ran = take(&both, json!({ "no key": "v" })).await;
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let ran = take(&["-dry"], json!({ "k": "v" })).await;
    assert!(
        ran.code == 1 && ran.stderr.contains(&absent),
        "{}",
        ran.stderr
    );
    let path = format!("/api/v1/namespaces/{absent}");
    assert!(world.get(&path).await.unwrap().is_none());
}
