//! Several versions of one kind: the flight sees the stored one, a converter turns one into another.

use anyhow::anyhow;
use atc_tests::{AirwayBuilder, Atc, FileServer, eventually, guest};
use serde_json::{Value, json};

use crate::solo::{Solo, plane};
use crate::world::{CRDS, HOOKS, Kind, LIMIT, World, puppet};

/// The URL of the converter, on a server of its own.
pub(crate) fn converter(files: &FileServer) -> String {
    let module = std::fs::read(guest("converter").unwrap()).unwrap();
    files.put("converter.wasm", module);
    files.url("converter.wasm")
}

/// The template with `v1` and `v2`, of which the second is stored.
fn two_versions(airway: &mut Value) {
    let versions = &mut airway["spec"]["template"]["versions"];
    let mut second = versions[0].clone();
    versions[0]["storage"] = false.into();
    second["name"] = "v2".into();
    let fields = &mut second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    *fields = json!({ "text": { "type": "string" } });
    versions.as_array_mut().unwrap().push(second);
}

/// A kind of two versions with the converter at this URL.
pub(crate) async fn kind<'a>(world: &'a World, name: &str, converter: &str) -> Kind<'a> {
    let airway = AirwayBuilder::new(name, &puppet());
    let urls = json!({ "flight": puppet(), "converter": converter });
    let change = |airway: &mut Value| {
        two_versions(airway);
        airway["spec"]["wasmUrls"] = urls;
    };
    world.kind_with(airway, change).await
}

pub(crate) fn in_v2(path: &str) -> String {
    path.replacen("/v1/", "/v2/", 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_comes_with_a_converter() {
    let world = World::new().await;
    let files = FileServer::start().unwrap();
    let url = converter(&files);
    let airway = AirwayBuilder::new("Upgraded", &puppet());
    let kind = world.kind(airway).await;
    kind.make("old", json!({ "note": "a" })).await;
    world.has("old", json!({ "note": "a" })).await;

    let mut wanted = kind.airway.build();
    two_versions(&mut wanted);
    kind.update(json!({
        "template": wanted["spec"]["template"],
        "wasmUrls": { "flight": puppet(), "converter": url },
    }))
    .await;
    let crd = world
        .get(&format!("{CRDS}/{}", kind.airway.name()))
        .await
        .unwrap()
        .unwrap();
    let conversion = &crd["spec"]["conversion"];
    assert_eq!(conversion["strategy"], "Webhook");
    assert_eq!(
        conversion["webhook"]["clientConfig"]["service"]["path"],
        format!("/crdconvert/{}", kind.airway.name())
    );

    // What was stored as v1 reads as v2; the flight, which knows `note` only, sees the stored version.
    let path = kind.path("old");
    eventually(LIMIT, "it reads as v2", || async {
        let found = world.get(&in_v2(&path)).await?;
        Ok(found
            .filter(|found| found["spec"] == json!({ "text": "a" }))
            .map(|_| ()))
    })
    .await;
    world.has("old", json!({ "note": "" })).await;
    kind.make("new", json!({ "note": "b" })).await;
    let new = world.get(&in_v2(&kind.path("new"))).await.unwrap().unwrap();
    assert_eq!(new["spec"], json!({ "text": "b" }));
    assert_eq!(kind.instance("new").await["spec"], json!({ "note": "b" }));
    assert_eq!(world.configmaps(&world.ns).await, ["new", "old"]);

    // The rest of the metadata is the API server's, whatever the converter says.
    kind.make("m", json!({ "note": "meddle" })).await;
    let (first, second) = (
        kind.instance("m").await,
        world.get(&in_v2(&kind.path("m"))).await,
    );
    let second = second.unwrap().unwrap();
    assert_eq!(first["metadata"]["uid"], second["metadata"]["uid"]);
    assert_eq!(second["metadata"]["name"], "m");

    // What the converter makes of the status is what readers see.
    let status = json!({ "status": { "old": "s" } });
    world
        .merge(&format!("{}/status", kind.path("m")), &status)
        .await;
    let second = world.get(&in_v2(&kind.path("m"))).await.unwrap().unwrap();
    assert_eq!(second["status"]["new"], "s");
    assert_eq!(second["status"]["old"], Value::Null);
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_converted_says_so_harms_nobody_and_can_be_removed() {
    let world = World::new().await;
    let files = FileServer::start().unwrap();
    let airway = AirwayBuilder::new("Stubborn", &puppet());
    let kind = world.kind(airway).await;
    for (name, note) in [("fine", "x"), ("bad", "fail"), ("worse", "fail")] {
        kind.make(name, json!({ "note": note })).await;
    }
    let mut wanted = kind.airway.build();
    two_versions(&mut wanted);
    let urls = json!({ "flight": puppet(), "converter": converter(&files) });
    kind.update(json!({ "template": wanted["spec"]["template"], "wasmUrls": urls }))
        .await;

    // Read as v2 it says why; in its own version it reads as ever; the others are converted.
    let bad = in_v2(&kind.path("bad"));
    let why = |object: &Value| object["metadata"]["annotations"]["atc.yoke.cd/unconverted"].clone();
    let found = world.get(&bad).await.unwrap().unwrap();
    assert!(
        why(&found)
            .as_str()
            .unwrap()
            .contains("\"bad\" is not convertible"),
        "{found}"
    );
    let own = kind.instance("bad").await;
    assert_eq!(
        (&own["spec"]["note"], why(&own)),
        (&json!("fail"), Value::Null)
    );
    let list = world
        .get(&in_v2(&kind.airway.path(&world.ns)))
        .await
        .unwrap()
        .unwrap();
    let items = list["items"].as_array().unwrap();
    let marked: Vec<_> = items.iter().filter(|item| !why(item).is_null()).collect();
    assert_eq!((items.len(), marked.len()), (3, 2));
    // The flight is not run on what is left of it: its ConfigMap stays as it was.
    let fine = world
        .get(&in_v2(&kind.path("fine")))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(fine["spec"], json!({ "text": "x" }));
    world.has("fine", json!({ "note": "" })).await;
    world.has("bad", json!({ "note": "fail" })).await;

    // Nobody can store it so, in no version and not by its status.
    let path = format!("{bad}/status");
    for (path, body) in [
        (&*bad, json!({ "metadata": { "labels": { "x": "y" } } })),
        (
            &*bad,
            json!({ "metadata": { "annotations": { "atc.yoke.cd/unconverted": "no" } } }),
        ),
        // Nor without the mark: who edits it here has seen nothing of it.
        (
            &*bad,
            json!({ "metadata": { "annotations": { "atc.yoke.cd/unconverted": null } } }),
        ),
        (
            &*kind.path("bad"),
            json!({ "metadata": { "labels": { "x": "y" } } }),
        ),
        (&*path, json!({ "status": { "new": "s" } })),
    ] {
        let said = world
            .cluster
            .api
            .merge(path, &body)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("it can't be changed, only deleted"),
            "{path}: {said}"
        );
    }
    assert_eq!(kind.instance("bad").await["spec"]["note"], "fail");

    // It can be removed, and is as it should be once the converter can do it.
    kind.delete("bad").await;
    world.gone(&world.core("configmaps", "bad")).await;
    kind.edit("worse", json!({ "note": "mended" })).await;
    let worse = in_v2(&kind.path("worse"));
    assert_eq!(
        world.get(&worse).await.unwrap().unwrap()["spec"],
        json!({ "text": "mended" })
    );
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_converter_must_be_there_at_admission() {
    let world = World::new().await;
    let files = FileServer::start().unwrap();
    let airway = AirwayBuilder::new("Hollow", &puppet());
    let mut body = airway.build();
    two_versions(&mut body);
    body["spec"]["wasmUrls"]["converter"] = files.url("none.wasm").into();
    let said = world
        .cluster
        .api
        .post(crate::world::AIRWAYS, &body)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("spec.wasmUrls.converter") && said.contains("404"),
        "{said}"
    );
    // What is stored but not served could never be reviewed or followed.
    body["spec"]["wasmUrls"]["converter"] = Value::Null;
    body["spec"]["template"]["versions"][1]["served"] = false.into();
    let said = world
        .cluster
        .api
        .post(crate::world::AIRWAYS, &body)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("\"v2\" is stored, so it must be served"),
        "{said}"
    );
}

/// A converter that is not there keeps nobody from finding an atc that is somewhere else by now.
#[tokio::test(flavor = "multi_thread")]
async fn a_converter_that_is_missing_does_not_hide_the_atc_r109() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let mut old = solo.atc(&[]).await;
    let files = FileServer::start().unwrap();
    let kind = kind(world, "Missing", &converter(&files)).await;
    kind.make("a", json!({ "note": "x" })).await;
    old.kill();
    let environment = [("MODULE_ALLOW_LIST", puppet())];
    let environment = environment
        .each_ref()
        .map(|(name, value)| (*name, &**value));
    let next = Atc::start(plane(), &world.cluster.api, "solo-next", &environment).await;
    let next = next.unwrap();
    eventually(LIMIT, "it is asked, and says what is missing", || async {
        let found = world.get(&kind.path("a")).await?.unwrap_or_default();
        let why = found["metadata"]["annotations"]["atc.yoke.cd/unconverted"].as_str();
        let why = why.ok_or_else(|| anyhow!("{found}"))?;
        Ok(why.contains("allow list").then_some(()))
    })
    .await;
    let crd = format!("{CRDS}/{}", kind.airway.name());
    let crd = world.get(&crd).await.unwrap().unwrap();
    let versions = crd["spec"]["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 2, "all else stays as it was");
    let hook = format!("{HOOKS}/{}", kind.airway.name());
    let hook = world.get(&hook).await.unwrap().unwrap();
    let service = &hook["webhooks"][0]["clientConfig"]["service"];
    assert_eq!(service["name"], "solo-next");
    kind.delete("a").await;
    world.gone(&world.core("configmaps", "a")).await;
    kind.finish().await;
    drop(next);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_atc_the_stored_version_reads_and_all_drains_later_r109() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let mut atc = solo.atc(&[]).await;
    let files = FileServer::start().unwrap();
    let kind = kind(world, "Paused", &converter(&files)).await;
    kind.make("a", json!({ "note": "x" })).await;
    let other = world.namespace().await;
    let path = kind.airway.path(&other);
    world
        .post(&path, &kind.airway.instance("b", &json!({ "note": "y" })))
        .await;
    let child = format!("/api/v1/namespaces/{other}/configmaps/b");
    eventually(LIMIT, "the child is there", || world.get(&child)).await;
    let all = kind.airway.path(&world.ns);
    assert!(world.get(&all).await.unwrap().is_some());
    let downloads = files.hits("converter.wasm");
    atc.kill();

    // The stored version is read by everybody; the other one needs us, and says so. (Lists of it may come from the API
    // server's cache.)
    let items = world.cluster.api.list(&in_v2(&all)).await.unwrap();
    assert_eq!(items[0]["spec"], json!({ "text": "x" }));
    let said = world.get(&kind.path("a")).await.unwrap_err().to_string();
    assert!(said.contains("conversion webhook"), "{said}");
    // Nothing in the namespace of another is in its way but our own finalizer.
    let namespace = format!("/api/v1/namespaces/{other}");
    world.delete(&in_v2(&kind.path("a"))).await;
    world.delete(&namespace).await;
    world.gone(&child).await;

    // From the start on all goes by itself, and the converter is there already.
    atc.restart().await.unwrap();
    kind.gone("a").await;
    world.gone(&namespace).await;
    kind.make("c", json!({ "note": "z" })).await;
    for _ in 0..10 {
        let items = world.cluster.api.list(&all).await.unwrap();
        assert_eq!(items[0]["spec"], json!({ "note": "z" }));
    }
    let again = files.hits("converter.wasm") - downloads;
    assert!(again <= 1, "{again} downloads");
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_objects_are_converted_in_one_go() {
    let world = World::new().await;
    let files = FileServer::start().unwrap();
    let kind = kind(&world, "Plenty", &converter(&files)).await;
    for at in 0..100 {
        kind.create(&format!("p{at}"), &json!({ "note": at.to_string() }))
            .await
            .unwrap();
    }
    let list = world
        .get(&kind.airway.path(&world.ns))
        .await
        .unwrap()
        .unwrap();
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 100);
    for item in items {
        let name = item["metadata"]["name"].as_str().unwrap();
        assert_eq!(
            item["spec"],
            json!({ "note": name.trim_start_matches('p') })
        );
    }
    kind.finish().await;
}
