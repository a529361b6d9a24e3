//! Certificates of the atc's own making, and an atc that the API server reaches by a URL.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use atc_tests::{AirwayBuilder, Atc, FileServer, eventually};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};

use crate::hooks::is_reviewed;
use crate::solo::Solo;
use crate::versions;
use crate::world::{AIRWAYS, CRDS, HOOKS, Kind, LIMIT, World, puppet, text};

const SECRETS: &str = "/api/v1/namespaces/atc/secrets";
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
/// No certificate is given.
const NONE: [(&str, &str); 3] = [
    ("TLS_CA_CERT", ""),
    ("TLS_SERVER_CERT", ""),
    ("TLS_SERVER_KEY", ""),
];

async fn secret(world: &World, name: &str) -> Result<Option<Value>> {
    world.get(&format!("{SECRETS}/{name}")).await
}

/// The CAs in a Secret, in base64 as a webhook configuration has them.
fn bundle(secret: &Value) -> String {
    text(&secret["data"]["ca.crt"]).to_owned()
}

fn decoded(base64: &str) -> String {
    let bytes: k8s_openapi::ByteString = serde_json::from_value(json!(base64)).unwrap();
    String::from_utf8(bytes.0).unwrap()
}

/// Waits until it is ready, by the CAs in its Secret.
async fn ready(world: &World, atc: &mut Atc<'_>, name: &str) -> Value {
    let found = eventually(LIMIT, "the Secret is there", || secret(world, name)).await;
    atc.trust(&decoded(&bundle(&found))).unwrap();
    atc.wait_ready().await.unwrap();
    found
}

/// Edits an instance again and again until all configurations name these CAs and the newest one's certificate is served.
/// No edit may fail.
async fn edit_until_renewed(kind: &Kind<'_>, atc: &Atc<'_>, name: &str, before: &str) -> String {
    let (edits, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let now = eventually(LIMIT, "the certificate is renewed", || async {
        let note = edits.fetch_add(1, Ordering::Relaxed).to_string();
        if let Err(error) = kind.try_edit("a", json!({ "note": note })).await {
            failed.lock().unwrap().push(format!("{error:#}"));
        }
        let Some(found) = secret(kind.world, name).await? else {
            return Ok(None);
        };
        let now = bundle(&found);
        let told = now != before && are_told(kind, &now).await?;
        Ok((told && is_served(atc, &now).await).then_some(now))
    })
    .await;
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{failed:?}");
    now
}

/// Whether all configurations name these CAs.
async fn are_told(kind: &Kind<'_>, bundle: &str) -> Result<bool> {
    let own = kind.airway.name();
    for hook in ["atc-airway", "atc-flight", "flight-accounts.yoke.cd", &own] {
        let hook = kind.world.get(&format!("{HOOKS}/{hook}")).await?;
        let hook = hook.unwrap_or_default();
        if hook["webhooks"][0]["clientConfig"]["caBundle"] != *bundle {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The first of these CAs.
fn newest(bundle: &str) -> String {
    let all = decoded(bundle);
    let first = all.split(BEGIN).nth(1).unwrap();
    format!("{BEGIN}{first}")
}

/// Whether what is served is known by the first of these CAs, which knows no certificate but the newest.
async fn is_served(atc: &Atc<'_>, bundle: &str) -> bool {
    atc.trust(&newest(bundle)).unwrap();
    let answer = atc.get("/live").await;
    answer.is_ok_and(|(status, _)| status == 200)
}

/// A Secret as the atc keeps it, whose certificate ends in ten days, but for its label and of another type.
fn ending(name: &str) -> Value {
    let dated = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        let now = SystemTime::now();
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        params.not_before = epoch + now - Duration::from_hours(24);
        params.not_after = epoch + (now + Duration::from_hours(240));
        params
    };
    let mut ca = dated(&[]);
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let cert = dated(&["solo.atc.svc", "solo.atc", "solo", "localhost"]);
    let cert = cert.signed_by(&key, &ca).unwrap();
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": { "name": name, "namespace": "atc" },
        "stringData": { "ca.crt": ca.pem(), "tls.crt": cert.pem(), "tls.key": key.serialize_pem() },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_its_own_is_kept_and_renewed_without_a_failed_review_w32() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let name = "solo-certificate";
    let path = format!("{SECRETS}/{name}");
    // The namespace comes with the Service; an atc with given files makes no certificate.
    solo.atc(&[]).await.terminate().unwrap();
    assert_eq!(secret(world, name).await.unwrap(), None);
    let old = world.cluster.api.apply(&path, &ending(name)).await.unwrap();

    let mut atc = solo.launch(&NONE);
    // Somebody else's is not touched, and that is said.
    eventually(LIMIT, "it says that the Secret is not its own", || async {
        let said = |line: &Value| line.to_string().contains("is neither used nor overwritten");
        Ok(atc.log().iter().any(said).then_some(()))
    })
    .await;
    let version = |secret: &Value| secret["metadata"]["resourceVersion"].clone();
    let still = secret(world, name).await.unwrap().unwrap();
    assert_eq!(version(&still), version(&old));
    let label = json!({ "metadata": { "labels": { "atc.yoke.cd/kind": "certificate" } } });
    let old = world.cluster.api.merge(&path, &label).await.unwrap();
    ready(world, &mut atc, name).await;
    let kind = solo.kind().await;
    kind.make("a", json!({ "note": "first" })).await;
    // It ends soon: another one takes its place, and both are known.
    let second = edit_until_renewed(&kind, &atc, name, &bundle(&old)).await;
    assert_eq!(decoded(&second).matches(BEGIN).count(), 2);
    let typed = secret(world, name).await.unwrap().unwrap();
    assert_eq!(typed["type"], "kubernetes.io/tls");

    // Somebody deletes it: the same.
    world.delete(&path).await;
    let third = edit_until_renewed(&kind, &atc, name, &second).await;
    assert_eq!(decoded(&third).matches(BEGIN).count(), 2);

    // A restart goes on with it.
    let kept = secret(world, name).await.unwrap().unwrap();
    assert!(text(&kept["data"]["tls.key"]).len() > 100);
    atc.restart().await.unwrap();
    kind.edit("a", json!({ "note": "last" })).await;
    world.has("a", json!({ "note": "last" })).await;
    let now = secret(world, name).await.unwrap().unwrap();
    assert_eq!(
        now["metadata"]["resourceVersion"],
        kept["metadata"]["resourceVersion"]
    );
    kind.delete("a").await;
    let key = text(&kept["data"]["tls.key"]);
    let plain = decoded(key);
    let line = plain.lines().nth(1).unwrap();
    let log = atc.log();
    assert!(!log.is_empty());
    for word in ["PRIVATE KEY", key, line] {
        assert!(!log.iter().any(|said| said.to_string().contains(word)));
    }
    atc.terminate().unwrap();
    world.delete(&path).await;
}

/// Two processes with one Service: both find no Secret, both see it end or go, at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn two_atcs_serve_one_certificate_and_renew_it_once_w13() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let name = "solo-certificate";
    let path = format!("{SECRETS}/{name}");
    // The namespace comes with the Service.
    let mut alone = solo.atc(&[]).await;
    alone.terminate().unwrap();
    let earlier = alone.log().len();
    world.delete(&path).await;
    let shared: Vec<_> = NONE.into_iter().chain([("SVC_NAME", "solo")]).collect();
    let (mut one, mut two) = (solo.launch(&shared), solo.launch_as("twin", &shared));
    let first = bundle(&ready(world, &mut one, name).await);
    assert_eq!(bundle(&ready(world, &mut two, name).await), first);
    assert_eq!(decoded(&first).matches(BEGIN).count(), 1);
    both_serve([&one, &two], &first, "the first one").await;

    // It ends soon, it is gone, it is no certificate any more: one of them makes another one, and both serve that.
    let mut ends = ending(name);
    ends["type"] = "Opaque".into();
    ends["metadata"]["labels"] = json!({ "atc.yoke.cd/kind": "certificate" });
    let (ending_ca, mut before) = (text(&ends["stringData"]["ca.crt"]).to_owned(), first);
    for what in ["ending", "deleted", "broken"] {
        match what {
            "ending" => {
                world.cluster.api.apply(&path, &ends).await.unwrap();
            }
            "deleted" => world.delete(&path).await,
            _ => {
                let broken = json!({ "data": { "tls.key": null } });
                world.merge(&path, &broken).await;
            }
        }
        let now = eventually(LIMIT, &format!("{what}: another one is kept"), || async {
            let Some(found) = secret(world, name).await? else {
                return Ok(None);
            };
            let is_whole = text(&found["data"]["tls.key"]).len() > 100;
            let now = bundle(&found);
            let known = [ending_ca.trim(), newest(&before).trim()].contains(&newest(&now).trim());
            Ok((is_whole && !known).then_some(now))
        })
        .await;
        both_serve([&one, &two], &now, what).await;
        let found = secret(world, name).await.unwrap().unwrap();
        assert_eq!(bundle(&found), now, "{what}: it was made twice");
        assert_eq!(decoded(&now).matches(BEGIN).count(), 2, "{what}");
        before = now;
    }

    for (atc, earlier) in [(&mut one, earlier), (&mut two, 0)] {
        refuses(atc).await;
        assert!(atc.alive());
        for line in atc.log().iter().skip(earlier) {
            let said = line.to_string();
            for words in [
                "there is no certificate to be asked by",
                "the certificate is not looked after",
            ] {
                assert!(!said.contains(words), "{said}");
            }
        }
    }
    eventually(LIMIT, "Airways are reviewed", || is_reviewed(world)).await;
    two.terminate().unwrap();
    eventually(LIMIT, "they are by the other", || is_reviewed(world)).await;
    one.terminate().unwrap();
    world.delete(&path).await;
}

/// Waits until both serve the certificate that the first of these CAs knows.
async fn both_serve(atcs: [&Atc<'_>; 2], bundle: &str, what: &str) {
    eventually(LIMIT, &format!("{what}: both serve it"), || async {
        for atc in atcs {
            if !is_served(atc, bundle).await {
                return Ok(None);
            }
        }
        Ok(Some(()))
    })
    .await;
}

/// Has an atc review an Airway that nobody would take, as the API server asks for it.
async fn refuses(atc: &Atc<'_>) {
    let mut bad = AirwayBuilder::new("Bad", "none").build();
    bad["metadata"]["name"] = "another.name".into();
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": { "uid": "u", "operation": "CREATE", "object": bad },
    });
    let path = "/validations/airways.yoke.cd";
    let (status, body) = atc.post(path, &review).await.unwrap();
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["response"]["allowed"], false, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_atc_outside_of_the_cluster_is_reached_by_its_url() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let url = ("WEBHOOK_URL", "https://localhost:$PORT/team/atc/");
    let nothing = [("SVC_NAME", ""), ("SVC_NAMESPACE", "atc"), ("SVC_PORT", "")];
    let environment: Vec<_> = NONE.into_iter().chain(nothing).chain([url]).collect();
    let name = "atc-certificate-localhost";
    // The namespace is there already if another test was here.
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "atc" } });
    let api = &world.cluster.api;
    api.apply("/api/v1/namespaces/atc", &namespace)
        .await
        .unwrap();
    let mut atc = solo.launch(&environment);
    ready(world, &mut atc, name).await;
    let asked = |config: &Value, path: &str| {
        assert!(config["service"].is_null(), "{config}");
        let url = text(&config["url"]);
        assert!(
            url.starts_with("https://localhost:") && url.ends_with(&format!("/team/atc{path}")),
            "{url}"
        );
    };
    for (hook, path) in [
        ("atc-airway", "/validations/airways.yoke.cd"),
        ("atc-flight", "/validations/flights.yoke.cd"),
        ("flight-accounts.yoke.cd", "/validations/accounts"),
    ] {
        let hook = world
            .get(&format!("{HOOKS}/{hook}"))
            .await
            .unwrap()
            .unwrap();
        asked(&hook["webhooks"][0]["clientConfig"], path);
    }
    // Airways are reviewed.
    let mut bad = AirwayBuilder::new("Bad", "none").build();
    bad["metadata"]["name"] = "another.name".into();
    let refused = api.post(AIRWAYS, &bad).await.unwrap_err().to_string();
    assert!(refused.contains("airways.yoke.cd\" denied"), "{refused}");

    // Instances are reviewed, and converted.
    let files = FileServer::start().unwrap();
    let kind = versions::kind(world, "Outside", &versions::converter(&files)).await;
    let crd = world.get(&format!("{CRDS}/{}", kind.airway.name())).await;
    let crd = crd.unwrap().unwrap();
    let conversion = &crd["spec"]["conversion"]["webhook"]["clientConfig"];
    asked(conversion, &format!("/crdconvert/{}", kind.airway.name()));
    kind.make("a", json!({ "note": "x" })).await;
    let path = versions::in_v2(&kind.path("a"));
    let second = world.get(&path).await.unwrap().unwrap();
    assert_eq!(second["spec"], json!({ "text": "x" }));
    let reviewed = world.kind(AirwayBuilder::new("Reached", &puppet())).await;
    let refused = reviewed.create("b", &json!({ "fail": "not this" })).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("not this"), "{refused}");
    reviewed.finish().await;
    kind.finish().await;
    atc.terminate().unwrap();
    world.delete(&format!("{SECRETS}/{name}")).await;
}
