//! Where the programs of the control plane are: `KUBEBUILDER_ASSETS`, else the user's cache, else built into it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{cache::Cache, gobuild};

/// Folder of the environment that holds ready programs, in the layout of controller-runtime's envtest.
const ASSETS: &str = "KUBEBUILDER_ASSETS";
/// File of kwok's stages beside the programs.
const STAGES: &str = "kwok-stages.yaml";
/// Environment variable that names a stage file, for assets without one.
const STAGES_VARIABLE: &str = "KWOK_STAGES";

/// The programs of a control plane, found or built.
#[derive(Debug, Clone)]
pub struct Programs {
    folder: PathBuf,
    helper: PathBuf,
    stages: Option<PathBuf>,
}

impl Programs {
    /// Finds the programs: first in `KUBEBUILDER_ASSETS`, else in the cache, else builds them into the cache.
    ///
    /// The cache is `$ATC_CONTROLPLANE_CACHE`, else `$XDG_CACHE_HOME/atc-controlplane`, else
    /// `~/.cache/atc-controlplane`. The first build takes minutes (twelve on two cores with nothing cached); its
    /// progress goes to standard error. Two processes that ask at the same time build once.
    ///
    /// With `full`, kube-controller-manager, kube-scheduler, kwok and its stages are required as well.
    ///
    /// # Errors
    ///
    /// When `KUBEBUILDER_ASSETS` lacks a program (it is named), or Go is missing or too old, or a build fails.
    pub fn find(full: bool) -> Result<Self> {
        let cache = Cache::of_user()?;
        let helper = gobuild::helper(&cache)?;
        let Some(folder) = std::env::var_os(ASSETS)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
        else {
            let folder = gobuild::kubernetes(&cache)?;
            let stages = Some(folder.join(STAGES));
            return Ok(Self {
                folder,
                helper,
                stages,
            });
        };
        let mut needed = vec!["etcd", "kube-apiserver"];
        if full {
            needed.extend(["kube-controller-manager", "kube-scheduler", "kwok"]);
        }
        needed.retain(|name| !folder.join(name).is_file());
        if !needed.is_empty() {
            bail!(
                "{ASSETS} is \"{}\", which lacks {}",
                folder.display(),
                needed.join(", ")
            );
        }
        let stages = if full {
            Some(stages(&folder, &cache)?)
        } else {
            None
        };
        Ok(Self {
            folder,
            helper,
            stages,
        })
    }

    /// The path of a program, for instance `etcd` or `kubectl`.
    ///
    /// # Errors
    ///
    /// When it is not there; kubectl is optional in `KUBEBUILDER_ASSETS`.
    pub fn path(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        if !path.is_file() {
            bail!("no \"{name}\" in \"{}\"", self.folder.display());
        }
        Ok(path)
    }

    /// The folder that holds the programs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn helper(&self) -> &Path {
        &self.helper
    }

    pub(crate) fn stages(&self) -> Result<&Path> {
        self.stages
            .as_deref()
            .context("the control plane was not asked for with kwok")
    }
}

/// Assets of envtest have no stages: take `KWOK_STAGES`, else read them from kwok's module.
fn stages(assets: &Path, cache: &Cache) -> Result<PathBuf> {
    let beside = assets.join(STAGES);
    if beside.is_file() {
        return Ok(beside);
    }
    match std::env::var_os(STAGES_VARIABLE).map(PathBuf::from) {
        Some(file) if file.is_file() => Ok(file),
        Some(file) => bail!(
            "{STAGES_VARIABLE} is \"{}\", which is no file",
            file.display()
        ),
        None => gobuild::stages_only(cache),
    }
}
