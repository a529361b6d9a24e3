//! Which locations modules may come from: globs over what is requested, not over what was typed.

use std::str::FromStr;

use url::{Position, Url};

use crate::glob::{Glob, GlobError};
use crate::location::Location;

/// Globs, one of which must match the location of a module. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowList {
    globs: Vec<Glob>,
}

/// Why a text is no allow list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllowListError {
    /// A part of it is no glob.
    #[error(transparent)]
    Glob(#[from] GlobError),
    /// It says nothing.
    #[error("the allow list is empty")]
    Empty,
}

impl FromStr for AllowList {
    type Err = AllowListError;

    /// Globs between commas; spaces around them do not count.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words = text.split(',').map(str::trim);
        let globs: Vec<Glob> = words
            .filter(|word| !word.is_empty())
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        if globs.is_empty() {
            return Err(AllowListError::Empty);
        }
        Ok(Self { globs })
    }
}

impl AllowList {
    /// Whether a module may come from there.
    ///
    /// - Of an `http` or `https` URL that is matched which is requested: host in lower case, dots in the path resolved,
    ///   without user name, password and fragment; its port may stand in the glob or not if it is the usual one. So
    ///   nobody gets to another host by what a star takes for a port or a folder.
    ///   A path with an encoded slash, backslash or dot is never allowed: servers read it in more than one way.
    /// - Of an `oci` URL the text as it was written; with a digest, which alone decides what is pulled, without the tag.
    /// - Of a file its path, dots resolved, with `file://` in front or without.
    pub fn allows(&self, location: &Location) -> bool {
        let forms = match location {
            Location::Http(http) if hides_steps(http.url()) => return false,
            Location::Http(http) => http_forms(http.url()),
            Location::Oci(artifact) => vec![artifact.decisive()],
            Location::File(_) => {
                let canonical = location.canonical();
                let path = canonical.strip_prefix("file://").map(str::to_owned);
                path.into_iter().chain([canonical]).collect()
            }
        };
        let matched = |form: &String| self.globs.iter().any(|glob| glob.matches(form));
        forms.iter().any(matched)
    }
}

/// Whether the path holds, encoded, what leads to another folder for who decodes it.
fn hides_steps(url: &Url) -> bool {
    let path = url.path().to_ascii_lowercase();
    ["%2f", "%5c", "%2e"].iter().any(|code| path.contains(code))
}

fn http_forms(url: &Url) -> Vec<String> {
    let (scheme, host) = (url.scheme(), url.host_str().unwrap_or_default());
    let rest = &url[Position::BeforePath..Position::AfterQuery];
    let mut forms = Vec::new();
    if let Some(port) = url.port_or_known_default() {
        forms.push(format!("{scheme}://{host}:{port}{rest}"));
    }
    if url.port().is_none() {
        forms.push(format!("{scheme}://{host}{rest}"));
    }
    forms
}

#[cfg(test)]
mod tests;
