//! `cargo xtask publish-check`: what would be published, and a stranger who uses it.

use std::{fs, path::Path};

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
    run(workspace
        .cargo()
        .args(["publish", "--workspace", "--dry-run", "--allow-dirty"]))?;
    eprintln!("==> a crate outside the workspace builds on the packaged atc-engine alone");
    stranger(workspace)
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
