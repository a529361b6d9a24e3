//! The credentials of whoever runs this process.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::PathBuf;

use super::config::{DockerConfig, MAX_CONFIG};
use super::{Credential, CredentialsError, helper};
use crate::reference::OciLocation;

/// What the user's docker config has for this artifact: from the helper that it names, else from the file.
pub(super) async fn find(at: &OciLocation) -> Result<Option<Credential>, CredentialsError> {
    let Some(config) = read(|name| std::env::var_os(name))? else {
        return Ok(None);
    };
    if let Some((name, server)) = config.helper(at.registry())
        && let Some(credential) = helper::get(name, &server).await?
    {
        return Ok(Some(credential));
    }
    config.find(at.registry(), at.repository())
}

/// The first of the usual files that is there.
fn read(env: impl Fn(&str) -> Option<OsString>) -> Result<Option<DockerConfig>, CredentialsError> {
    for path in places(env) {
        let failed = |source| CredentialsError::File {
            path: path.clone(),
            source,
        };
        let file = match std::fs::File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        let mut text = Vec::new();
        file.take(MAX_CONFIG + 1)
            .read_to_end(&mut text)
            .map_err(failed)?;
        return DockerConfig::parse(&text).map(Some);
    }
    Ok(None)
}

/// Where a docker config may lie. One that the environment names is the only one.
fn places(env: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let set = |name: &str| {
        env(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(folder) = set("DOCKER_CONFIG") {
        return vec![folder.join("config.json")];
    }
    [
        set("HOME").map(|home| home.join(".docker/config.json")),
        set("REGISTRY_AUTH_FILE"),
        set("XDG_RUNTIME_DIR").map(|folder| folder.join("containers/auth.json")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_docker_s_then_podman_s() {
        let with = |set: &'static [(&str, &str)]| {
            let found = places(|name| {
                set.iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| value.into())
            });
            found
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            with(&[("DOCKER_CONFIG", "/d"), ("HOME", "/h")]),
            ["/d/config.json"]
        );
        assert_eq!(
            with(&[
                ("HOME", "/h"),
                ("REGISTRY_AUTH_FILE", "/r"),
                ("XDG_RUNTIME_DIR", "/x"),
                ("DOCKER_CONFIG", "")
            ]),
            ["/h/.docker/config.json", "/r", "/x/containers/auth.json"]
        );
        assert!(with(&[]).is_empty());
    }

    #[test]
    fn the_first_file_that_is_there_counts() {
        let dir = tempfile::tempdir().unwrap();
        let read = |home: PathBuf, other: PathBuf| {
            read(|name| match name {
                "HOME" => Some(home.clone().into()),
                "REGISTRY_AUTH_FILE" => Some(other.clone().into()),
                _ => None,
            })
        };
        let other = dir.path().join("auth.json");
        assert!(read(dir.path().into(), other.clone()).unwrap().is_none());
        std::fs::write(&other, r#"{"auths":{"other.io":{"registrytoken":"t"}}}"#).unwrap();
        let config = read(dir.path().into(), other.clone()).unwrap().unwrap();
        assert!(config.find("other.io", "a").unwrap().is_some());
        std::fs::create_dir(dir.path().join(".docker")).unwrap();
        std::fs::write(dir.path().join(".docker/config.json"), "{}").unwrap();
        let config = read(dir.path().into(), other.clone()).unwrap().unwrap();
        assert!(config.find("other.io", "a").unwrap().is_none());
        std::fs::write(dir.path().join(".docker/config.json"), "{").unwrap();
        assert!(read(dir.path().into(), other).is_err());
    }
}
