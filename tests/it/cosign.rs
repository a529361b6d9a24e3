//! Signs artifacts in a registry as cosign does with a key: a text that names the artifact's digest, and its signature as an
//! annotation, under the tag `sha256-<digest>.sig`.

use atc_engine::artifact::sha256_hex;
use controlplane::ControlPlane;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Puts a signature with this key of the tests beside the artifact, through a registry without TLS.
pub(crate) async fn sign(
    plane: &ControlPlane,
    host: &str,
    repository: &str,
    digest: &str,
    key: &str,
) {
    let payload = json!({
        "critical": {
            "identity": { "docker-reference": format!("{host}/{repository}") },
            "image": { "docker-manifest-digest": digest },
            "type": "cosign container image signature",
        },
        "optional": null,
    })
    .to_string();
    let key = crate::policy::key(&format!("{key}.pem"));
    let signature = plane.sign(&key, payload.as_bytes()).unwrap();
    let kind = "application/vnd.dev.cosign.simplesigning.v1+json";
    let mut layer = put_blob(host, repository, kind, payload.as_bytes()).await;
    layer["annotations"] = json!({ "dev.cosignproject.cosign/signature": signature });
    let config = "application/vnd.oci.image.config.v1+json";
    let config = put_blob(host, repository, config, b"{}").await;
    let manifest =
        json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer] });
    let path = format!(
        "/v2/{repository}/manifests/{}.sig",
        digest.replace(':', "-")
    );
    let (status, _) = ask(
        host,
        "PUT",
        &path,
        MANIFEST,
        manifest.to_string().as_bytes(),
    )
    .await;
    assert_eq!(status, 201);
}

/// Uploads a blob; its descriptor.
async fn put_blob(host: &str, repository: &str, kind: &str, bytes: &[u8]) -> Value {
    let (status, head) = ask(
        host,
        "POST",
        &format!("/v2/{repository}/blobs/uploads/"),
        "",
        b"",
    )
    .await;
    assert_eq!(status, 202);
    let at = head
        .lines()
        .find_map(|line| line.strip_prefix("Location: "))
        .unwrap();
    let path = at.split_once(host).map_or(at, |(_, path)| path);
    let digest = format!("sha256:{}", sha256_hex(bytes));
    let path = format!("{path}&digest={digest}");
    let (status, _) = ask(host, "PUT", &path, "application/octet-stream", bytes).await;
    assert_eq!(status, 201);
    json!({ "mediaType": kind, "digest": digest, "size": bytes.len() })
}

/// One request: the status and the head of the answer.
async fn ask(host: &str, method: &str, path: &str, kind: &str, body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(host).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all(&[head.as_bytes(), body].concat())
        .await
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).replace("\r\n", "\n");
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let head = answer.split_once("\n\n").map_or(&*answer, |(head, _)| head);
    (status, head.to_owned())
}
