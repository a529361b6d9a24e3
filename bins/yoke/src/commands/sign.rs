//! `yoke sign` and `yoke verify`: the signature that a module carries, or that lies beside its artifact.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use atc_engine::artifact::{
    KeySet, MAX_KEY_FILE_BYTES, PrivateKey, Proof, SignatureError, prove, sign,
};

use crate::cli::{Sign, Verify, given};
use crate::module;
use crate::render::{self, Hinted};

/// Signs a local module.
pub(super) async fn run(args: &Sign) -> anyhow::Result<()> {
    let key = private_key(&args.key)?;
    let path = &args.module;
    let unsigned = module::read(path).await?;
    let signed = sign(&unsigned, &key, args.force).map_err(|error| match error {
        SignatureError::AlreadySigned => anyhow::Error::new(Hinted::new(
            format!("\"{}\" is already signed", path.display()),
            "-f replaces the signature",
        )),
        error => anyhow::Error::new(error).context(format!("cannot sign \"{}\"", path.display())),
    })?;
    let target = given(args.output.as_ref()).map_or(path.as_path(), AsRef::as_ref);
    module::write(target, signed).await?;
    let fingerprint = key.public().fingerprint();
    render::message(format!(
        "\"{}\" is signed with the key of fingerprint {fingerprint}",
        target.display()
    ));
    Ok(())
}

/// Proves a module, wherever it lies.
pub(super) async fn check(args: &Verify) -> anyhow::Result<()> {
    let keys = Arc::new(KeySet::read(&args.key)?);
    let (fetcher, location) = (module::fetcher(), args.module.parse()?);
    let artifact = fetcher.fetch(&location, None).await?;
    let proven = prove(&fetcher, &location, &artifact, &keys).await;
    let proof = proven.with_context(|| format!("\"{location}\" is not proven"))?;
    render::message(match proof {
        Proof::Module(key) => format!("\"{location}\" is signed by the key of fingerprint {key}"),
        Proof::Artifact(key) => {
            format!("the artifact of \"{location}\" is signed by the key of fingerprint {key}")
        }
    });
    Ok(())
}

fn private_key(path: &Path) -> anyhow::Result<PrivateKey> {
    let shown = path.display();
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_KEY_FILE_BYTES + 1).read_to_end(&mut text))
        .with_context(|| format!("cannot read key file \"{shown}\""))?;
    if text.len() as u64 > MAX_KEY_FILE_BYTES {
        bail!("key file \"{shown}\" is larger than {MAX_KEY_FILE_BYTES} bytes");
    }
    PrivateKey::from_pem(&text).with_context(|| format!("there is no usable key in \"{shown}\""))
}
