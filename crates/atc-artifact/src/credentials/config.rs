//! A docker config: which credential is for which registry. Reading it runs nothing.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;

use super::{Credential, CredentialsError};
use crate::lenient;

/// Largest docker config that is read: 1 MiB, as a Secret may have.
pub(super) const MAX_CONFIG: u64 = 1 << 20;

/// All names of Docker Hub in a docker config.
const HUB: [&str; 4] = [
    "index.docker.io",
    "docker.io",
    "registry-1.docker.io",
    "registry.hub.docker.com",
];

/// Base64 with padding or without: both are found in the wild.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The parsed content of a docker `config.json`, of `.dockerconfigjson` or of `.dockercfg`.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DockerConfig {
    #[serde(deserialize_with = "lenient::map")]
    auths: BTreeMap<String, Entry>,
    #[serde(rename = "credHelpers", deserialize_with = "lenient::map")]
    helpers: BTreeMap<String, String>,
    #[serde(rename = "credsStore", deserialize_with = "lenient::or_default")]
    store: String,
}

#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Entry {
    #[serde(deserialize_with = "lenient::or_default")]
    auth: String,
    #[serde(deserialize_with = "lenient::or_default")]
    username: String,
    #[serde(deserialize_with = "lenient::or_default")]
    password: String,
    #[serde(rename = "identitytoken", deserialize_with = "lenient::or_default")]
    identity: String,
    #[serde(rename = "registrytoken", deserialize_with = "lenient::or_default")]
    token: String,
}

/// It shows for whom there are credentials, and nothing else.
impl fmt::Debug for DockerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let registries: Vec<&String> = self.auths.keys().collect();
        f.debug_struct("DockerConfig")
            .field("auths", &registries)
            .finish_non_exhaustive()
    }
}

impl DockerConfig {
    /// Reads `config.json` or `.dockerconfigjson`.
    pub fn parse(text: &[u8]) -> Result<Self, CredentialsError> {
        let config: Self = read(text)?;
        config.check()
    }

    /// Reads the old form, `.dockercfg`: the entries alone.
    pub fn parse_old(text: &[u8]) -> Result<Self, CredentialsError> {
        #[derive(Deserialize)]
        #[serde(transparent)]
        struct Old(#[serde(deserialize_with = "lenient::map")] BTreeMap<String, Entry>);
        let Old(auths) = read(text)?;
        let config = Self {
            auths,
            ..Self::default()
        };
        config.check()
    }

    /// Reads the data of a Secret: `.dockerconfigjson` if it is there, else `.dockercfg`.
    pub fn from_secret<'a>(
        get: impl Fn(&str) -> Option<&'a [u8]>,
    ) -> Result<Self, CredentialsError> {
        match (get(".dockerconfigjson"), get(".dockercfg")) {
            (Some(text), _) => Self::parse(text),
            (None, Some(text)) => Self::parse_old(text),
            (None, None) => Err(CredentialsError::NoKey),
        }
    }

    /// Whatever is wrong with an entry is said when the config comes in, not when a registry asks.
    fn check(self) -> Result<Self, CredentialsError> {
        for (registry, entry) in &self.auths {
            entry.credential(registry)?;
        }
        Ok(self)
    }

    /// Whether an entry has a credential for this repository of this registry (`HOST` or `HOST:PORT`).
    pub fn knows(&self, registry: &str, repository: &str) -> bool {
        self.find(registry, repository)
            .is_ok_and(|found| found.is_some())
    }

    /// The credential of the entry that fits best: the longest path wins, then a name over a pattern.
    ///
    /// As the kubelet has it, an entry may go on with a path (`host/team`), which must be that of the repository or
    /// lead to it, and each part of its host name may hold `*`.
    pub(crate) fn find(
        &self,
        registry: &str,
        repository: &str,
    ) -> Result<Option<Credential>, CredentialsError> {
        let mut best = None;
        for (key, entry) in &self.auths {
            let Some(credential) = entry.credential(key)? else {
                continue;
            };
            if let Some(rank) = fit(key, registry, repository)
                && best.as_ref().is_none_or(|(other, _)| rank > *other)
            {
                best = Some((rank, credential));
            }
        }
        Ok(best.map(|(_, credential)| credential))
    }

    /// The credential helper for a registry, and the name by which it must be asked.
    pub(super) fn helper(&self, registry: &str) -> Option<(&str, String)> {
        for (key, helper) in &self.helpers {
            if fit(key, registry, "").is_some() {
                return Some((helper, key.clone()));
            }
        }
        let hub = HUB.contains(&registry);
        let name = if hub {
            "https://index.docker.io/v1/"
        } else {
            registry
        };
        (!self.store.is_empty()).then(|| (self.store.as_str(), name.to_owned()))
    }
}

impl Entry {
    fn credential(&self, registry: &str) -> Result<Option<Credential>, CredentialsError> {
        if !self.token.is_empty() {
            return Ok(Some(Credential::Token(self.token.clone())));
        }
        if !self.identity.is_empty() {
            return Ok(Some(Credential::Identity(self.identity.clone())));
        }
        let (user, password) = if self.auth.is_empty() {
            (self.username.clone(), self.password.clone())
        } else {
            let wrong = || CredentialsError::Entry {
                registry: registry.to_owned(),
            };
            let plain = BASE64.decode(self.auth.trim()).map_err(|_| wrong())?;
            let plain = String::from_utf8(plain).map_err(|_| wrong())?;
            let (user, password) = plain.split_once(':').ok_or_else(wrong)?;
            // Some versions of docker end the password with zeros.
            (user.to_owned(), password.trim_end_matches('\0').to_owned())
        };
        if user.is_empty() && password.is_empty() {
            // `docker login` with a credential store leaves empty entries behind.
            return Ok(None);
        }
        Ok(Some(Credential::Password { user, password }))
    }
}

/// How well an entry's name fits: letters of the path, then whether the host is written out. Nothing if it does not.
fn fit(key: &str, registry: &str, repository: &str) -> Option<(usize, bool)> {
    let bare = key
        .strip_prefix("https://")
        .or_else(|| key.strip_prefix("http://"))
        .unwrap_or(key);
    let (host, path) = bare.split_once('/').unwrap_or((bare, ""));
    // Docker's own names end with the version of the protocol.
    let path = match path.trim_matches('/') {
        "v1" | "v2" => "",
        path => path,
    };
    let leads = path.is_empty()
        || repository
            .strip_prefix(path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let host = host.to_ascii_lowercase();
    let exact = host == registry || (HUB.contains(&host.as_str()) && HUB.contains(&registry));
    (leads && (exact || host_fits(&host, registry))).then_some((path.len(), exact))
}

/// Whether each part of a host name fits the pattern at its place; the ports must be the same.
fn host_fits(pattern: &str, host: &str) -> bool {
    if !pattern.contains('*') {
        return false;
    }
    let split = |text: &str| {
        let (name, port) = text.split_once(':').unwrap_or((text, ""));
        let parts: Vec<String> = name.split('.').map(str::to_owned).collect();
        (parts, port.to_owned())
    };
    let ((patterns, port), (parts, own_port)) = (split(pattern), split(host));
    port == own_port
        && patterns.len() == parts.len()
        && patterns
            .iter()
            .zip(&parts)
            .all(|(pattern, part)| part_fits(pattern, part))
}

/// `*` stands for any letters.
fn part_fits(pattern: &str, part: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == part;
    };
    let Some(mut left) = part.strip_prefix(start) else {
        return false;
    };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let end = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match left.find(piece) {
            Some(at) => left = left.get(at + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    left.ends_with(end)
}

fn read<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, CredentialsError> {
    if text.len() as u64 > MAX_CONFIG {
        return Err(CredentialsError::TooLarge { limit: MAX_CONFIG });
    }
    serde_json::from_slice(text).map_err(|error| CredentialsError::Form {
        // The error's own words may quote what it found.
        reason: if error.is_data() {
            "a value of another type"
        } else {
            "no JSON"
        },
        line: error.line(),
        column: error.column(),
    })
}

#[cfg(test)]
mod tests;
