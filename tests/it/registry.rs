//! Modules in a real registry: what `stow` pushes, and whoever pulls it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use atc_tests::{
    AirwayBuilder, Cluster, DockerRegistry, RegistryOptions, Yoke, eventually, guest, never,
};
use serde_json::json;
use tempfile::TempDir;

use crate::solo::Solo;
use crate::world::AIRWAYS;

/// `joe:pw` in base64.
const JOE: &str = "am9lOnB3";

/// A registry, a command line, and a folder for docker configs.
struct Place {
    registry: DockerRegistry,
    cluster: Cluster,
    folder: TempDir,
    module: PathBuf,
}

impl Place {
    async fn new(options: RegistryOptions) -> Option<Self> {
        let cluster = Cluster::shared().await;
        let registry = DockerRegistry::start(cluster.plane(), options)
            .await
            .unwrap()?;
        Some(Self {
            registry,
            cluster,
            folder: tempfile::tempdir().unwrap(),
            module: guest("puppet").unwrap(),
        })
    }

    /// The command line, logged in as this (base64 of `user:password`), and trusting the registry's CA if told so.
    fn yoke(&self, auth: Option<&str>, trusting: bool) -> Yoke {
        let mut yoke = Yoke::new(self.cluster.plane()).unwrap();
        if let Some(auth) = auth {
            let folder = self.folder.path().join(auth);
            std::fs::create_dir_all(&folder).unwrap();
            let config = json!({ "auths": { self.registry.host(): { "auth": auth } } });
            std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
            yoke = yoke.env("DOCKER_CONFIG", folder);
        }
        match self.registry.ca() {
            Some(ca) if trusting => yoke.env("SSL_CERT_FILE", ca),
            _ => yoke,
        }
    }

    /// Pushes; what is said on stderr, or what fails.
    async fn stow(&self, yoke: &Yoke, flags: &[&str], name: &str) -> Result<String, String> {
        let url = self.registry.oci(name);
        let module = self.module.to_str().unwrap();
        let arguments = [&["stow"], flags, &[module, &url]].concat();
        let ran = yoke.run(&arguments).await.unwrap();
        assert_eq!(ran.stdout, "");
        if ran.code == 0 {
            Ok(ran.stderr)
        } else {
            Err(ran.stderr)
        }
    }

    /// Pulls and runs it; what fails.
    async fn takeoff(&self, yoke: &Yoke, flags: &[&str], url: &str) -> Result<(), String> {
        let arguments = [&["takeoff", "-stdout"], flags, &["r", url]].concat();
        let input =
            json!({ "apiVersion": "v1", "kind": "X", "metadata": { "name": "r" }, "spec": {} });
        let ran = yoke
            .with_input(&arguments, &input.to_string())
            .await
            .unwrap();
        if ran.code == 0 {
            Ok(())
        } else {
            Err(ran.stderr)
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stowed_takes_off_from_every_tag() {
    let Some(place) = Place::new(RegistryOptions::default()).await else {
        return;
    };
    let yoke = place.yoke(None, false);
    let report = place
        .stow(&yoke, &["-tag", "b,c", "-tag=alt"], "team/app:v1")
        .await
        .unwrap();
    let (host, lines) = (place.registry.host(), report.lines().collect::<Vec<_>>());
    let [digest_url, sum, "tags:", tags @ ..] = &lines[..] else {
        panic!("{report}")
    };
    let digest_url = digest_url
        .strip_prefix("digestUrl: ")
        .unwrap()
        .trim_matches(['"', '\'']);
    let sum = sum
        .strip_prefix("moduleSHA: ")
        .unwrap()
        .trim_matches(['"', '\'']);
    assert!(
        digest_url.starts_with(&format!("oci://{host}/team/app@sha256:")),
        "{report}"
    );
    let named = format!("sha256_{sum}");
    let tags: Vec<&str> = tags
        .iter()
        .map(|tag| tag.trim_start_matches([' ', '-']))
        .collect();
    assert_eq!(tags, ["alt", "b", "c", "latest", &named, "v1"]);
    for tag in tags {
        let url = place.registry.oci(&format!("team/app:{tag}"));
        place
            .takeoff(&yoke, &["-checksum", sum], &url)
            .await
            .unwrap();
    }
    place.takeoff(&yoke, &[], digest_url).await.unwrap();
    place
        .takeoff(&yoke, &[], &place.registry.oci("team/app"))
        .await
        .unwrap();

    let again = place.stow(&yoke, &[], "team/app:v2").await.unwrap();
    assert!(
        again.contains(digest_url),
        "the same module is the same artifact: {again}"
    );

    let wrong = "0".repeat(64);
    let error = place
        .takeoff(
            &yoke,
            &["-checksum", &wrong],
            &place.registry.oci("team/app:v1"),
        )
        .await;
    let error = error.unwrap_err();
    assert!(error.contains(&wrong) && error.contains(sum), "{error}");
    let error = place
        .takeoff(&yoke, &[], &place.registry.oci("team/app:none"))
        .await
        .unwrap_err();
    assert!(
        error.contains("404") && error.contains("team/app:none"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_with_tls_and_passwords_is_used_by_who_may() {
    let options = RegistryOptions {
        tls: true,
        password: true,
        ..RegistryOptions::default()
    };
    let Some(place) = Place::new(options).await else {
        return;
    };
    let joe = place.yoke(Some(JOE), true);
    place.stow(&joe, &[], "app:v1").await.unwrap();
    let url = place.registry.oci("app:v1");
    place.takeoff(&joe, &[], &url).await.unwrap();

    let unknown_ca = place.yoke(Some(JOE), false);
    let error = place.takeoff(&unknown_ca, &[], &url).await.unwrap_err();
    assert!(error.contains("certificate"), "{error}");
    assert!(place.stow(&unknown_ca, &[], "app:v2").await.is_err());
    place
        .takeoff(&unknown_ca, &["-insecure"], &url)
        .await
        .unwrap();
    place
        .stow(&unknown_ca, &["-insecure"], "app:v2")
        .await
        .unwrap();

    for auth in [None, Some("am9lOm5v")] {
        let other = place.yoke(auth, true);
        let error = place.takeoff(&other, &[], &url).await.unwrap_err();
        assert!(error.contains("401"), "{error}");
        let error = place.stow(&other, &[], "other:v1").await.unwrap_err();
        assert!(error.contains("401"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pull_secret_is_followed_r129() {
    let options = RegistryOptions {
        password: true,
        ..RegistryOptions::default()
    };
    let Some(place) = Place::new(options).await else {
        return;
    };
    place
        .stow(&place.yoke(Some(JOE), false), &[], "app:v1")
        .await
        .unwrap();
    let solo = Solo::begin().await;
    let api = &solo.world.cluster.api;
    let (secrets, pull) = (
        "/api/v1/namespaces/atc/secrets",
        "/api/v1/namespaces/atc/secrets/pull",
    );
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "atc" } });
    api.apply("/api/v1/namespaces/atc", &namespace)
        .await
        .unwrap();
    let logged_in = |auth: &str| {
        let entry = json!({ place.registry.host(): { "auth": auth } });
        json!({ ".dockerconfigjson": json!({ "auths": entry }).to_string() })
    };
    let first = json!({ "metadata": { "name": "pull" }, "stringData": logged_in(JOE) });
    api.post(secrets, &first).await.unwrap();
    let _atc = solo.atc(&[("DOCKER_CONFIG_SECRET_NAME", "pull")]).await;

    // The review asks the registry each time.
    let airway = AirwayBuilder::new("Pulled", &place.registry.oci("app:v1")).build();
    let review = format!("{AIRWAYS}?dryRun=All");
    let admitted = || async {
        let answer = api.post(&review, &airway).await;
        answer.map(drop).map_err(|error| format!("{error:#}"))
    };
    let becomes = |wanted: bool| {
        eventually(
            Duration::from_secs(5),
            "the Secret counts",
            move || async move { Ok((admitted().await.is_ok() == wanted).then_some(())) },
        )
    };
    let change = |data: &serde_json::Value| {
        let edit = json!({ "stringData": data });
        async move { api.merge(pull, &edit).await.unwrap() }
    };
    admitted().await.unwrap();
    change(&logged_in("am9lOm5v")).await;
    becomes(false).await;
    let error = admitted().await.unwrap_err();
    assert!(
        error.contains("401") && error.contains("pull Secret"),
        "{error}"
    );
    change(&logged_in(JOE)).await;
    becomes(true).await;

    change(&json!({ ".dockerconfigjson": "{ no json" })).await;
    let refused = || async { Ok(admitted().await.err()) };
    never(
        Duration::from_secs(2),
        "the last good Secret is dropped",
        refused,
    )
    .await;

    api.delete(pull).await.unwrap();
    becomes(false).await;
    // The old form, in a new Secret.
    let old = json!({ place.registry.host(): { "auth": JOE } }).to_string();
    let old = json!({ "metadata": { "name": "pull" }, "stringData": { ".dockercfg": old } });
    api.post(secrets, &old).await.unwrap();
    becomes(true).await;
    api.delete(pull).await.unwrap();
}

/// Whoever shows no certificate is not listened to.
#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_demands_a_client_certificate_is_used_by_who_has_one() {
    let options = RegistryOptions {
        tls: true,
        client_certificate: true,
        ..RegistryOptions::default()
    };
    let Some(place) = Place::new(options).await else {
        return;
    };
    let url = place.registry.oci("app:v1");
    let trusting = place.yoke(None, true);
    // The server closes the connection right behind its alert, so that the alert may be lost.
    eventually(
        Duration::from_mins(1),
        "the error says what is demanded",
        || async {
            let error = place.takeoff(&trusting, &[], &url).await.unwrap_err();
            let told = error.contains("demands a client certificate") && error.contains("certs.d");
            assert!(told || error.contains("connection"), "{error}");
            Ok(told.then_some(()))
        },
    )
    .await;

    // As docker has them: a folder of the host's name.
    let docker = place.folder.path().join("docker");
    let own = docker.join("certs.d").join(place.registry.host());
    std::fs::create_dir_all(&own).unwrap();
    let put = |from: &Path, to: &str| std::fs::copy(from, own.join(to)).map(drop).unwrap();
    put(&place.registry.client().join("server.crt"), "client.cert");
    let yoke = || place.yoke(None, false).env("DOCKER_CONFIG", &docker);
    let error = place.takeoff(&yoke(), &[], &url).await.unwrap_err();
    assert!(
        error.contains("there is no key") && error.contains("client.key"),
        "{error}"
    );
    put(&place.registry.client().join("server.key"), "client.key");
    let error = place.takeoff(&yoke(), &[], &url).await.unwrap_err();
    assert!(
        error.contains("certificate") && error.contains(&url),
        "{error}"
    );
    put(place.registry.ca().unwrap(), "ca.crt");
    place.stow(&yoke(), &[], "app:v1").await.unwrap();
    place.takeoff(&yoke(), &[], &url).await.unwrap();
    // A key of another certificate.
    let other = place
        .cluster
        .plane()
        .certificate("other-client", &["client"])
        .unwrap();
    put(&other.join("server.key"), "client.key");
    let error = place.takeoff(&yoke(), &[], &url).await.unwrap_err();
    assert!(error.contains("are no certificate and its key"), "{error}");
    std::fs::remove_file(own.join("client.cert")).unwrap();
    let error = place.takeoff(&yoke(), &[], &url).await.unwrap_err();
    assert!(error.contains("there is no client certificate"), "{error}");

    put(&place.registry.client().join("server.crt"), "client.cert");
    put(&place.registry.client().join("server.key"), "client.key");
    let solo = Solo::begin().await;
    let certs = docker.join("certs.d");
    let _atc = solo
        .atc(&[("REGISTRY_CERTS_PATH", &certs.to_string_lossy())])
        .await;
    let airway = AirwayBuilder::new("Mutual", &url).build();
    let api = &solo.world.cluster.api;
    api.post(&format!("{AIRWAYS}?dryRun=All"), &airway)
        .await
        .unwrap();
    std::fs::remove_file(own.join("client.key")).unwrap();
    let refused = api
        .post(&format!("{AIRWAYS}?dryRun=All"), &airway)
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("there is no key"), "{refused}");
}

/// Signatures beside artifacts, as cosign puts them there, in a real registry.
#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_that_is_signed_by_cosign_is_proven() {
    let Some(place) = Place::new(RegistryOptions::default()).await else {
        return;
    };
    let yoke = place.yoke(None, false);
    let report = place.stow(&yoke, &[], "app:v1").await.unwrap();
    let digest = report.lines().next().and_then(|line| line.split_once('@'));
    let digest = digest.unwrap().1.trim_matches(['"', '\'']).to_owned();
    let url = place.registry.oci("app:v1");
    let key = crate::policy::key("p256.pub.pem");
    let key = key.to_str().unwrap();
    let verify = async |url: &str, key: &str| {
        let ran = yoke.run(&["verify", "-key", key, url]).await.unwrap();
        if ran.code == 0 {
            Ok(ran.stderr)
        } else {
            Err(ran.stderr)
        }
    };
    let error = verify(&url, key).await.unwrap_err();
    assert!(
        error.contains("unsigned") && error.contains("has no cosign signature"),
        "{error}"
    );
    let error = place
        .takeoff(&yoke, &["-verify", key], &url)
        .await
        .unwrap_err();
    assert!(error.contains("has no cosign signature"), "{error}");

    let solo = Solo::begin().await;
    let _atc = solo.atc(&[("MODULE_VERIFICATION_KEYS_PATH", key)]).await;
    let api = &solo.world.cluster.api;
    let airway = AirwayBuilder::new("Cosigned", &url).build();
    let review = format!("{AIRWAYS}?dryRun=All");
    let refused = api.post(&review, &airway).await.unwrap_err().to_string();
    assert!(refused.contains("has no cosign signature"), "{refused}");

    crate::cosign::sign(
        place.cluster.plane(),
        place.registry.host(),
        "app",
        &digest,
        "p256",
    )
    .await;
    let said = verify(&url, key).await.unwrap();
    assert!(
        said.contains("the artifact of") && said.contains("is signed by the key"),
        "{said}"
    );
    place.takeoff(&yoke, &["-verify", key], &url).await.unwrap();
    api.post(&review, &airway).await.unwrap();
    // Of another key, and of another artifact.
    let other = crate::policy::key("ed25519.pub.pem");
    let error = verify(&url, other.to_str().unwrap()).await.unwrap_err();
    assert!(error.contains("none of the 1 known keys"), "{error}");
    let error = place
        .takeoff(&yoke, &["-verify", other.to_str().unwrap()], &url)
        .await
        .unwrap_err();
    assert!(
        error.contains("must be signed with one of the keys"),
        "{error}"
    );
}
