//! `-out`: the resources as YAML, one file each or all in one nested map.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail};
use atc_engine::release::drift;
use atc_engine::release::object::{Stages, canonical_parts};

use crate::{output, render};

/// Writes `<out>/<release>/<namespace or _>/<group or core>/<version>/<kind>/<name>.yaml` for each resource, or with `-`
/// one map with a level for each of these parts to stdout.
///
/// The folder of the release is replaced as a whole, and only when all files are written.
pub(super) async fn write(out: &Path, release: &str, stages: &Stages) -> anyhow::Result<()> {
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    let mut seen: HashMap<PathBuf, String> = HashMap::new();
    for object in stages.objects() {
        let path = file(&canonical_parts(&object.reference(), object.version()))?;
        // Names are in lower case there, and some kinds allow capitals.
        if let Some(other) = seen.insert(path.clone(), object.reference().to_string()) {
            bail!(
                "\"{other}\" and \"{}\" have the same canonical name",
                object.reference()
            );
        }
        files.push((path, drift::yaml(&drift::sorted(object.value().clone()))?));
    }
    if out == Path::new("-") {
        return output::write(drift::yaml(&drift::nested(stages.objects()))?).await;
    }
    let folder = out.join(release_folder(release)?);
    // A few small files, and not to be left half done: it stands on this very task.
    replace(out, &folder, &files)?;
    render::message(format!(
        "{} written to \"{}\"",
        super::super::counted(files.len()),
        folder.display()
    ));
    Ok(())
}

fn replace(out: &Path, folder: &Path, files: &[(PathBuf, String)]) -> anyhow::Result<()> {
    let says = |what: &str, path: &Path| format!("cannot {what} \"{}\"", path.display());
    fs::create_dir_all(out).with_context(|| says("create the folder", out))?;
    // All happens in here first; it goes with what is left in it, whatever the end.
    let work = tempfile::Builder::new()
        .prefix(".yoke-")
        .tempdir_in(out)
        .with_context(|| says("create a folder in", out))?;
    let (new, old) = (work.path().join("new"), work.path().join("old"));
    fs::create_dir(&new).with_context(|| says("create the folder", &new))?;
    for (path, text) in files {
        let path = new.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| says("create the folder", parent))?;
        }
        fs::write(&path, text).with_context(|| says("write", &path))?;
    }
    match fs::symlink_metadata(folder) {
        Ok(there) if there.is_dir() => {
            fs::rename(folder, &old).with_context(|| says("replace", folder))?;
        }
        Ok(_) => bail!("\"{}\" is there and is no folder", folder.display()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => (),
        Err(error) => return Err(error).with_context(|| says("look at", folder)),
    }
    if let Err(error) = fs::rename(&new, folder) {
        // What was there comes back; where even that fails, there is nothing left to try.
        let _ = fs::rename(&old, folder);
        return Err(error).with_context(|| says("replace", folder));
    }
    Ok(())
}

/// The name of a release as that of a folder.
fn release_folder(release: &str) -> anyhow::Result<&Path> {
    let path = Path::new(release);
    if !is_plain(release) {
        bail!("release \"{release}\" cannot be the name of a folder");
    }
    Ok(path)
}

/// The file of a resource, below the folder of its release.
fn file(parts: &[impl AsRef<str>]) -> anyhow::Result<PathBuf> {
    let mut path = PathBuf::new();
    for part in parts {
        let part = part.as_ref();
        if !is_plain(part) {
            bail!("\"{part}\" in the name of a resource cannot be part of the name of a file");
        }
        path.push(part);
    }
    path.as_mut_os_string().push(".yaml");
    Ok(path)
}

/// Whether it names something right in the folder that it is joined to.
fn is_plain(name: &str) -> bool {
    let mut components = Path::new(name).components();
    matches!(components.next(), Some(Component::Normal(only)) if only == name)
        && components.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_folder() {
        for good in ["r", "my.rel", "...", "a b", "-", "r.wasm"] {
            assert!(release_folder(good).is_ok(), "{good}");
        }
        for bad in [
            "", ".", "..", "/", "/etc", "a/b", "a/", "../a", "./a", "a/..", "a//b",
        ] {
            assert!(release_folder(bad).is_err(), "{bad}");
        }
        assert_eq!(
            file(&["_", "core", "v1", "configmap", "a.b"]).expect("path"),
            Path::new("_/core/v1/configmap/a.b.yaml")
        );
        assert!(file(&["_", "core", "v1", "configmap", "../../x"]).is_err());
    }

    #[test]
    fn the_folder_is_replaced_as_a_whole() {
        let out = tempfile::tempdir().expect("folder");
        let folder = out.path().join("r");
        let names = |path: &Path| {
            let mut names: Vec<_> = fs::read_dir(path)
                .expect("list")
                .map(|e| e.expect("entry").file_name())
                .collect();
            names.sort();
            names
        };
        fs::create_dir_all(folder.join("stale")).expect("folder");
        replace(
            out.path(),
            &folder,
            &[("_/a.yaml".into(), "a: 1\n".to_owned())],
        )
        .expect("written");
        assert_eq!(
            fs::read_to_string(folder.join("_/a.yaml")).expect("file"),
            "a: 1\n"
        );
        assert_eq!(names(&folder), ["_"]);
        assert_eq!(names(out.path()), ["r"]);
        let below = out.path().join("new/and/deep");
        replace(&below, &below.join("r"), &[]).expect("written");
        assert_eq!(names(&below), ["r"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed() {
        let (out, other) = (
            tempfile::tempdir().expect("folder"),
            tempfile::tempdir().expect("folder"),
        );
        fs::write(other.path().join("keep"), "").expect("file");
        std::os::unix::fs::symlink(other.path(), out.path().join("r")).expect("link");
        let error = replace(out.path(), &out.path().join("r"), &[]).expect_err("a link");
        assert!(error.to_string().contains("no folder"), "{error}");
        assert!(other.path().join("keep").exists());
        assert_eq!(fs::read_dir(out.path()).expect("list").count(), 1);
    }
}
