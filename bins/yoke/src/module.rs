//! The module that a command works on: fetched from wherever it lies, or a local file that is read as it is and replaced
//! whole.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use atc_engine::artifact::{
    Artifact, Certificates, Credentials, DEFAULT_MAX_BYTES, FetchOptions, Fetcher, Location,
};

/// A module's unpacked bytes, from a path or a URL, and where that is, as it may be shown.
pub(crate) async fn fetch(location: &str) -> anyhow::Result<(Location, Artifact)> {
    let location: Location = location.parse()?;
    let artifact = fetcher().fetch(&location, None).await?;
    Ok((location, artifact))
}

/// What fetches modules for commands that run none.
pub(crate) fn fetcher() -> Fetcher {
    Fetcher::new(options())
}

/// As the user who runs this: modules of private registries are read too.
fn options() -> FetchOptions {
    FetchOptions {
        credentials: Credentials::User,
        certificates: Certificates::User,
        ..FetchOptions::default()
    }
}

/// A local module's bytes, as they are.
pub(crate) async fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || read_now(&path)).await?
}

fn read_now(path: &Path) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    let cannot = || format!("cannot read \"{shown}\"");
    // Opening a pipe would wait for whoever writes to it.
    if !fs::metadata(path).with_context(cannot)?.is_file() {
        bail!("\"{shown}\" is not a file");
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(DEFAULT_MAX_BYTES + 1).read_to_end(&mut bytes))
        .with_context(cannot)?;
    if bytes.len() as u64 > DEFAULT_MAX_BYTES {
        bail!("\"{shown}\" is larger than {DEFAULT_MAX_BYTES} bytes");
    }
    Ok(bytes)
}

/// Writes a module. Whoever reads the file meanwhile, or finds it after a crash, has the old one or the new one.
pub(crate) async fn write(path: &Path, bytes: Vec<u8>) -> anyhow::Result<()> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || {
        write_now(&path, &bytes).with_context(|| format!("cannot write \"{}\"", path.display()))
    })
    .await?
}

fn write_now(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    // A link stays a link: the file that it leads to is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let before = fs::metadata(&path).ok();
    if before.as_ref().is_some_and(|before| !before.is_file()) {
        // `-o /dev/stdout` and the like.
        return Ok(fs::write(&path, bytes)?);
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut aside = tempfile::Builder::new();
    let permissions = before.map(|before| before.permissions());
    #[cfg(unix)]
    if permissions.is_none() {
        // As any new file has them, the user's mask taken off.
        aside.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let mut aside = aside.tempfile_in(folder)?;
    aside.write_all(bytes)?;
    if let Some(permissions) = permissions {
        aside.as_file().set_permissions(permissions)?;
    }
    aside.persist(&path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_registries_are_asked_as_the_user() {
        assert!(matches!(options().credentials, Credentials::User));
        assert_eq!(options().certificates, Certificates::User);
    }
}
