//! `cargo xtask publish-check`: what would be published, and a stranger who uses it.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{
    Workspace,
    workspace::{output, run},
};

/// A stranger's program: names one thing of the front door, so that it must link.
const STRANGER: &str =
    "fn main() {\n    println!(\"{}\", std::any::type_name::<atc_engine::Engine>());\n}\n";

pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    eprintln!("==> every published crate packages and builds from its package");
    forget_the_last(workspace)?;
    run(workspace
        .cargo()
        .args(["publish", "--workspace", "--dry-run", "--allow-dirty"]))?;
    eprintln!("==> a crate outside the workspace builds on the packaged atc-engine alone");
    stranger(workspace)
}

/// Removes what cargo keeps of packages of the same version from the last time. To cargo a version never changes: it would build
/// each crate against the others as they were then.
fn forget_the_last(workspace: &Workspace) -> Result<()> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let registry = home
        .context("neither CARGO_HOME nor HOME is set")?
        .join("registry");
    let built = entries(&workspace.target().join("debug/.fingerprint"))?;
    // Registries are folders named by their host; that of packages which are not published yet has none.
    let mut unpacked = entries(&registry.join("src"))?;
    unpacked.extend(entries(&registry.join("cache"))?);
    unpacked.retain(|folder| name_of(folder).starts_with('-'));
    for package in workspace.packages() {
        let (Some(name), Some(version)) = (package["name"].as_str(), package["version"].as_str())
        else {
            continue;
        };
        let parts = built.iter().filter(|path| is_of(&name_of(path), name));
        for path in parts {
            remove(path)?;
        }
        for folder in &unpacked {
            remove(&folder.join(format!("{name}-{version}")))?;
            remove(&folder.join(format!("{name}-{version}.crate")))?;
        }
    }
    Ok(())
}

/// Whether a folder is that of a package's build: its name and a hash.
fn is_of(folder: &str, package: &str) -> bool {
    let hash = folder
        .strip_prefix(package)
        .and_then(|rest| rest.strip_prefix('-'));
    hash.is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// What is in a folder, which need not be there.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.with_context(|| format!("read \"{}\"", folder.display()))?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    Ok(paths.collect::<io::Result<_>>()?)
}

/// Removes a folder or a file, which need not be there.
fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.with_context(|| format!("remove \"{}\"", path.display())),
    }
}

/// A crate in an empty folder that depends on `atc-engine`, found among the packages instead of on crates.io.
fn stranger(workspace: &Workspace) -> Result<()> {
    let folder = workspace.target().join("stranger");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("remove \"{}\"", folder.display()))?;
    }
    fs::create_dir_all(folder.join("src"))?;
    let mut patches = Vec::new();
    for package in workspace.packages() {
        // `publish` is null where a crate may be published anywhere, an empty list where nowhere.
        let (Some(name), Some(version)) = (package["name"].as_str(), package["version"].as_str())
        else {
            continue;
        };
        let file = format!("{name}-{version}.crate");
        // Newer versions of cargo leave them in a folder of their own when nothing is published.
        let places = ["package", "package/tmp-crate"]
            .map(|place| workspace.target().join(place).join(&file));
        let archive = places.into_iter().find(|path| path.is_file());
        let (true, Some(archive)) = (package["publish"].is_null(), archive) else {
            continue;
        };
        unpack(&archive, &folder)?;
        patches.push(format!("{name} = {{ path = \"{name}-{version}\" }}\n"));
    }
    let version = env!("CARGO_PKG_VERSION");
    let manifest = format!(
        "[package]\nname = \"stranger\"\nedition = \"2024\"\n\n[dependencies]\natc-engine = \"={version}\"\n\n\
         [workspace]\n\n[patch.crates-io]\n{}",
        patches.concat()
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::write(folder.join("src/main.rs"), STRANGER)?;
    let mut command = workspace.cargo();
    command
        .current_dir(&folder)
        .args(["run", "--quiet", "--target-dir"])
        .arg(workspace.target().join("stranger-build"));
    print!("{}", output(&mut command)?);
    Ok(())
}

fn unpack(archive: &Path, folder: &Path) -> Result<()> {
    run(std::process::Command::new("tar")
        .arg("-xzf")
        .arg(archive)
        .arg("-C")
        .arg(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_told_by_name_and_hash() {
        assert!(is_of("atc-api-0535bac5fe2f9d16", "atc-api"));
        for other in [
            "atc-api-x-0535bac5fe2f9d16",
            "atc-api",
            "atc-apis-0535bac5fe2f9d16",
        ] {
            assert!(!is_of(other, "atc-api"), "{other}");
        }
    }
}
