//! Get a program's bytes from a file, over HTTP or from a registry, within bounds, and prove them by checksum or signature;
//! push programs to registries.
//!
//! A [`Location`] is parsed once, at the edge. A [`Fetcher`] turns it into an [`Artifact`]: unpacked bytes and their
//! digests. A [`ModulePolicy`] says which of them may run. This crate knows nothing of Kubernetes, and of
//! WebAssembly only where custom sections begin and end: what the bytes mean is the caller's matter.
//!
//! ```no_run
//! # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
//! use atc_artifact::{FetchOptions, Fetcher, Location};
//!
//! let fetcher = Fetcher::new(FetchOptions::default());
//! let location: Location = "https://example.com/flights/app_v1.wasm.gz".parse()?;
//! let artifact = fetcher.fetch(&location, None).await?;
//! println!("{} bytes, sha256 {}", artifact.bytes.len(), artifact.sha256);
//! # Ok(())
//! # }
//! ```

mod allow_list;
mod artifact;
mod cache;
mod certificates;
mod cosign;
mod credentials;
mod error;
mod fetcher;
mod figures;
mod file;
mod former;
mod gate;
mod glob;
mod http;
mod joined;
mod key;
mod key_set;
mod lenient;
mod location;
mod memory;
mod oci;
mod options;
mod policy;
mod proof;
mod reference;
mod remote;
mod retry;
mod schematic;
mod section;
mod signature;
mod store;
mod unpack;
mod verify;

pub use allow_list::{AllowList, AllowListError};
pub use artifact::{Artifact, Origin};
pub use cache::{CachedFile, CachedFiles};
pub use certificates::{
    CertificateError, Certificates, MAX_CERTIFICATE_BYTES, MAX_CERTIFICATE_FILES,
};
pub use cosign::{CosignError, MAX_PAYLOAD_BYTES, verify_cosign};
pub use credentials::{Credentials, CredentialsError, DockerConfig, PullSecret};
pub use error::{ArtifactError, ErrorKind};
pub use fetcher::{Fetcher, MAX_FILES_AT_ONCE, REFRESH_WAIT, STALE_FOR, Signatures};
pub use figures::FetchFigures;
pub use file::FILE_TIMEOUT;
pub use gate::{MAX_AT_ONCE, MAX_AT_ONCE_PER_HOST};
pub use glob::{Glob, GlobError};
pub use http::{DEFAULT_CONNECT_TIMEOUT, DEFAULT_STALL_TIMEOUT, DEFAULT_TIMEOUT, MAX_REDIRECTS};
pub use key::{KeyError, PrivateKey, PublicKey};
pub use key_set::{KeyFileError, KeySet, MAX_KEY_FILE_BYTES, MAX_KEY_FILES};
pub use location::{HttpLocation, Location, LocationError};
pub use memory::MAX_KNOWN_URLS;
pub use oci::{
    Blob, Challenge, CosignLayer, CosignSignature, MAX_MANIFEST, MAX_SIGNATURES, Manifest,
    ManifestError, PUSH_TIMEOUT, Pushed, Pusher, cosign_layers, cosign_referrers,
};
pub use options::{DEFAULT_FRESH_FOR, FetchOptions};
pub use policy::{ModulePolicy, PolicyError, PolicyOptions};
pub use proof::{Proof, ProofError, prove};
pub use reference::{OciLocation, ReferenceError, Tag};
pub use retry::DEFAULT_TRIES;
pub use schematic::{
    MAX_COMMAND_WORDS, MAX_SCHEMATIC_BYTES, MAX_SCHEMATICS, Schematic, SchematicError,
    parse_command, schematic, schematic_names, set_schematic,
};
pub use section::SectionError;
pub use signature::{SIGNATURE_NAME, SignatureError, sign, verify};
pub use store::{DEFAULT_CACHE_BYTES, MAX_INDEXED_URLS};
pub use unpack::{DEFAULT_MAX_BYTES, MAX_PACKINGS};
pub use verify::{sha1_hex, sha256_hex};
