//! Who proves to registries who we are: nobody, the docker config of whoever runs this, or a pull Secret.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

mod config;
mod helper;
mod user;

pub use config::DockerConfig;

use crate::reference::OciLocation;

/// Where credentials for registries come from.
#[derive(Clone, Debug, Default)]
pub enum Credentials {
    /// Nowhere: only what everybody may read can be had.
    #[default]
    Anonymous,
    /// The docker config of whoever runs this process: `$DOCKER_CONFIG/config.json`, else `~/.docker/config.json`, else
    /// podman's `$REGISTRY_AUTH_FILE` or `$XDG_RUNTIME_DIR/containers/auth.json`. It is read when a registry asks, and
    /// the credential helpers that it names are run: for a command line, never for a server.
    User,
    /// What a Secret of the cluster holds. No helper is ever run.
    Secret(PullSecret),
}

/// The docker config of a Secret, which may be exchanged while it is in use. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct PullSecret(Arc<RwLock<Option<Arc<DockerConfig>>>>);

/// What proves to a registry who we are. There is no way to print it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Credential {
    /// A user and a password.
    Password { user: String, password: String },
    /// What a token service gives tokens for.
    Identity(String),
    /// A token for the registry itself.
    Token(String),
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password { .. } => "Password(***)",
            Self::Identity(_) => "Identity(***)",
            Self::Token(_) => "Token(***)",
        })
    }
}

/// Why credentials could not be read. Nothing of what they hold is in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// The file could not be read.
    #[error("cannot read docker config '{}'", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It is larger than any such file.
    #[error("the docker config has more than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// It is no JSON, or its parts have other types than they should.
    #[error("the docker config is not of the right form: {reason} in line {line}, column {column}")]
    Form {
        /// What is wrong, without a word of the text.
        reason: &'static str,
        /// Where: the line.
        line: usize,
        /// And the column.
        column: usize,
    },
    /// An entry is no `user:password` in base64.
    #[error("the entry for '{registry}' in the docker config is not user:password in base64")]
    Entry {
        /// The entry's name.
        registry: String,
    },
    /// A Secret has neither of the two keys.
    #[error("the Secret has neither '.dockerconfigjson' nor '.dockercfg'")]
    NoKey,
    /// A credential helper is named as no program is.
    #[error("'{helper}' in the docker config is no name of a credential helper")]
    HelperName {
        /// The name.
        helper: String,
    },
    /// A credential helper could not be run.
    #[error("cannot run credential helper '{program}': install it, or log in anew")]
    Helper {
        /// The program.
        program: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A credential helper failed.
    #[error("credential helper '{program}' failed: {said}")]
    HelperFailed {
        /// The program.
        program: String,
        /// What it said.
        said: String,
    },
    /// A credential helper took too long.
    #[error("credential helper '{program}' gave no answer within {limit:?}")]
    HelperTimeout {
        /// The program.
        program: String,
        /// The limit.
        limit: Duration,
    },
}

impl PullSecret {
    /// From now on this config counts. Whether it is another one than before.
    pub fn set(&self, config: DockerConfig) -> bool {
        self.put(Some(Arc::new(config)))
    }

    /// From now on there are no credentials. Whether there were any.
    pub fn clear(&self) -> bool {
        self.put(None)
    }

    fn put(&self, config: Option<Arc<DockerConfig>>) -> bool {
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let changed = *held != config;
        *held = config;
        changed
    }

    pub(crate) fn get(&self) -> Option<Arc<DockerConfig>> {
        let config = self.0.read().unwrap_or_else(PoisonError::into_inner);
        config.clone()
    }
}

impl fmt::Debug for PullSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PullSecret").field(&self.get()).finish()
    }
}

impl Credentials {
    /// The credential for this artifact, if there is one.
    pub(crate) async fn find(
        &self,
        at: &OciLocation,
    ) -> Result<Option<Credential>, CredentialsError> {
        match self {
            Self::Anonymous => Ok(None),
            Self::Secret(secret) => match secret.get() {
                Some(config) => config.find(at.registry(), at.repository()),
                None => Ok(None),
            },
            Self::User => user::find(at).await,
        }
    }

    /// What whoever lacks a credential can do about it.
    pub(crate) fn advice(&self) -> &'static str {
        match self {
            Self::Anonymous | Self::User => "log in with 'docker login' or an equal of it",
            Self::Secret(_) => "put them into the pull Secret",
        }
    }
}
