//! Manifests: which layer is the module, which entry of an index fits, and how our own are written.

use serde::Deserialize;
use serde_json::Value;

use crate::reference::parse_digest;

/// The manifest of one artifact.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// What is asked for: all forms that are understood.
pub(super) const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.docker.distribution.manifest.list.v2+json";

/// The configuration of our artifacts.
pub(super) const CONFIG: &str = "application/vnd.yoke.config.v1+json";
/// The layer of our artifacts: the module, packed with gzip.
pub(super) const LAYER: &str = "application/vnd.yoke.wasm.gzip";

/// Configurations of artifacts that may hold a flight: ours, the wasm artifact of the CNCF, and none at all.
const CONFIGS: [&str; 3] = [
    CONFIG,
    "application/vnd.wasm.config.v0+json",
    "application/vnd.oci.empty.v1+json",
];
/// Layers that may be a module, the best first.
const LAYERS: [&str; 2] = [LAYER, "application/wasm"];

/// How many entries of an index are looked at: 8. Indexes have an entry for each platform, and a module has one.
const MAX_ENTRIES: usize = 8;

/// What is written by who writes artifacts: an image configuration with nothing in it, byte for byte always the same.
pub(super) const CONFIG_CONTENT: &str = r#"{"architecture":"","created":"0001-01-01T00:00:00Z","os":"","rootfs":{"type":"layers","diff_ids":null},"config":{}}"#;

/// A manifest as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manifest {
    /// Of a module: its layer.
    Module(Blob),
    /// An index: digests of manifests that may be a module's, the best first.
    Index(Vec<Blob>),
}

/// Something by digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// `sha256:…`, in lower case.
    pub digest: String,
    /// Its size in bytes, as the manifest has it.
    pub size: u64,
}

/// Why something is no manifest that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct ManifestError {
    why: String,
}

impl From<String> for ManifestError {
    fn from(why: String) -> Self {
        Self { why }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: Option<u64>,
    media_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
}

/// What a manifest or an index says of something that it names by digest.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    #[serde(default)]
    pub(super) media_type: String,
    digest: String,
    size: u64,
    pub(super) artifact_type: Option<String>,
    platform: Option<Platform>,
    /// Texts by name. Most are nobody's business here, so what is none does not make a manifest unreadable.
    #[serde(default)]
    annotations: Value,
}

#[derive(Deserialize)]
struct Platform {
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    os: String,
}

impl Manifest {
    /// Reads a manifest or an index, as it came with this content type.
    pub fn parse(content_type: &str, bytes: &[u8]) -> Result<Self, ManifestError> {
        Ok(read(content_type, bytes)?)
    }
}

/// The error says what is wrong with it.
fn read(content_type: &str, bytes: &[u8]) -> Result<Manifest, String> {
    let document: Document = serde_json::from_slice(bytes)
        .map_err(|error| format!("its manifest is not of the right form ({error})"))?;
    if document.schema_version.is_some_and(|version| version != 2) {
        return Err("its manifest has a schema version other than 2".to_owned());
    }
    if document.layers.is_some() && document.manifests.is_some() {
        return Err("its manifest is an index and the manifest of an artifact at once".to_owned());
    }
    let sent = content_type.split(';').next().unwrap_or_default().trim();
    let kind = document.media_type.as_deref().unwrap_or(sent);
    match (document.layers, document.manifests) {
        (Some(layers), None) if [MANIFEST, DOCKER_MANIFEST].contains(&kind) => {
            module(document.config.as_ref(), &layers).map(Manifest::Module)
        }
        (None, Some(entries)) if [INDEX, DOCKER_LIST].contains(&kind) => {
            entries_that_fit(entries).map(Manifest::Index)
        }
        _ => Err(format!(
            "the media type of its manifest is '{kind}', which is not one of an artifact"
        )),
    }
}

fn module(config: Option<&Descriptor>, layers: &[Descriptor]) -> Result<Blob, String> {
    let config = config.map_or("", |config| &config.media_type);
    if !CONFIGS.contains(&config) {
        return Err(format!(
            "it is no flight: the media type of its configuration is '{config}', not '{CONFIG}'"
        ));
    }
    let layer = LAYERS
        .iter()
        .find_map(|kind| layers.iter().find(|layer| layer.media_type == *kind))
        .ok_or_else(|| {
            format!(
                "it is no flight: it has no layer of media type '{LAYER}' or 'application/wasm'"
            )
        })?;
    layer.blob()
}

fn entries_that_fit(entries: Vec<Descriptor>) -> Result<Vec<Blob>, String> {
    let mut ranked: Vec<(u8, Descriptor)> = entries
        .into_iter()
        .filter_map(|entry| Some((entry.rank()?, entry)))
        .collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    if ranked.is_empty() {
        return Err(
            "it is an index, and none of its entries is for WebAssembly or for no platform at all"
                .to_owned(),
        );
    }
    ranked
        .iter()
        .take(MAX_ENTRIES)
        .map(|(_, entry)| entry.blob())
        .collect()
}

impl Descriptor {
    /// An annotation, if it is there and is a text.
    pub(super) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name)?.as_str()
    }

    /// What it names; an error that says so if its digest is none.
    pub(super) fn blob(&self) -> Result<Blob, String> {
        let digest = parse_digest(&self.digest).ok_or_else(|| {
            "its manifest names a digest that is not sha256: and 64 hex digits".to_owned()
        })?;
        Ok(Blob {
            digest,
            size: self.size,
        })
    }

    /// Of an entry of an index: how well it fits, 0 best; nothing if it is something else.
    fn rank(&self) -> Option<u8> {
        if ![MANIFEST, DOCKER_MANIFEST].contains(&self.media_type.as_str()) {
            return None;
        }
        let kind = self.artifact_type.as_deref();
        if kind.is_some_and(|kind| !CONFIGS.contains(&kind) && !LAYERS.contains(&kind)) {
            return None;
        }
        match &self.platform {
            Some(platform) if platform.architecture == "wasm" => Some(match platform.os.as_str() {
                "wasip1" => 0,
                _ => 1,
            }),
            None => Some(2),
            Some(platform) if platform.architecture.is_empty() => Some(2),
            Some(_) => None,
        }
    }
}

/// The manifest of a module, byte for byte the same for the same layer.
pub(super) fn write(config: &Blob, layer: &Blob) -> String {
    serde_json::json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": { "mediaType": CONFIG, "size": config.size, "digest": config.digest },
        "layers": [{ "mediaType": LAYER, "size": layer.size, "digest": layer.digest }],
    })
    .to_string()
}

#[cfg(test)]
mod tests;
