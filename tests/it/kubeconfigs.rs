//! Kubeconfigs as kubectl reads them, before a server that wants TLS and a token. What can be seen without a server is tested
//! beside the command line itself.

use std::fs;

use atc_tests::YokeOutput;
use serde_json::{Value, json};

use crate::terminal::{Cli, objects};

#[tokio::test(flavor = "multi_thread")]
async fn files_contexts_and_names_r119() {
    let cli = Cli::new().await;
    let (plane, ns) = (cli.world.cluster.plane(), &cli.world.ns);
    let whole: Value = serde_json::from_slice(&fs::read(plane.kubeconfig()).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let config = |name: &str, mut rest: Value| {
        rest["apiVersion"] = "v1".into();
        rest["kind"] = "Config".into();
        put(name, rest.to_string().as_bytes())
    };
    // What is relative is so to its own file.
    put("one/pki/ca.crt", &fs::read(plane.ca()).unwrap());
    put(
        "two/token",
        whole["users"][0]["user"]["token"]
            .as_str()
            .unwrap()
            .as_bytes(),
    );
    let cluster = |name: &str, server_name: Value| {
        let mut cluster =
            json!({ "server": plane.server(), "certificate-authority": "pki/ca.crt" });
        cluster["tls-server-name"] = server_name;
        json!({ "name": name, "cluster": cluster })
    };
    let clusters = json!({ "clusters": [
        cluster("plain", Value::Null),
        cluster("named", "kubernetes.default.svc".into()),
        cluster("misnamed", "elsewhere.example.dev".into()),
    ] });
    let context = |name: &str, context: Value| json!({ "name": name, "context": context });
    let contexts = json!({
        "users": [
            { "name": "admin", "user": { "tokenFile": "token" } },
            { "name": "empty", "user": {} },
        ],
        "contexts": [
            context("plain", json!({ "cluster": "plain", "user": "admin", "namespace": ns })),
            context("named", json!({ "cluster": "named", "user": "admin" })),
            context("misnamed", json!({ "cluster": "misnamed", "user": "admin" })),
            context("empty", json!({ "cluster": "plain", "user": "empty" })),
            context("nobody", json!({ "cluster": "plain" })),
        ],
        "current-context": "plain",
    });
    let one = config("one/config", clusters);
    let two = config("two/config", contexts.clone());
    let mut without = contexts;
    without
        .as_object_mut()
        .unwrap()
        .shift_remove("current-context");
    let three = config("two/without", without);
    let yoke = |files: &[&str]| {
        let yoke = atc_tests::Yoke::new(plane).unwrap();
        yoke.env("KUBECONFIG", files.join(":"))
    };
    let both = yoke(&[&one, "/no/such/file", &two]);
    let at = async |context: &str| -> YokeOutput {
        let arguments = ["-kube-context", context, "blackbox", "-namespace", ns];
        both.run(&arguments).await.unwrap()
    };

    // Two files, the current context, and its namespace.
    let ran = both
        .with_input(&["takeoff", "r"], &objects(&["a"]).to_string())
        .await
        .unwrap();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(cli.world.configmap("a").await.is_some());
    let ran = at("named").await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for (context, words) in [
        ("misnamed", "elsewhere.example.dev"),
        // Whoever has no credentials is anonymous, and the server says so.
        ("empty", "system:anonymous"),
        ("nobody", "system:anonymous"),
        ("lost", "\"lost\""),
    ] {
        let ran = at(context).await;
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (1, ""),
            "{context}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(words), "{context}: {}", ran.stderr);
    }
    let ran = yoke(&[&one, &three]).run(&["blackbox"]).await.unwrap();
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("current context"), "{}", ran.stderr);
    cli.ok(&["mayday", "r"], &Value::Null).await;
}
