//! Resource access matchers: `[namespace/]Kind.group[:name]`, each part a literal or `*`.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use atc_api::{GroupKind, ResourceRef};

/// Which objects a flight may look up besides its own.
///
/// Namespace and name are `*` when left out; kinds of the core group have no dot. Case counts and there are no partial
/// globs. Cluster-scoped objects have the empty namespace: `Kind` and `*/Kind` fit them, `default/Kind` never does.
/// A text that fits nothing (the empty one, `Configmap` for `ConfigMap`) is no error, as in the existing tool.
///
/// ```
/// use atc_access::Matcher;
/// let Ok(matcher) = "default/Deployment.apps".parse::<Matcher>();
/// assert!(matcher.matches(&"default/Deployment.apps:web".parse()?));
/// assert!(!matcher.matches(&"other/Deployment.apps:web".parse()?));
/// # Ok::<(), atc_api::resource_ref::ParseResourceRefError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Matcher {
    text: String,
    namespace: Part,
    kind: Part,
    name: Part,
}

/// One part of a matcher.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    Any,
    Exactly(String),
}

impl Part {
    fn of(text: &str) -> Self {
        if text == "*" {
            Self::Any
        } else {
            Self::Exactly(text.to_owned())
        }
    }

    fn fits(&self, value: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(text) => text == value,
        }
    }

    fn fits_kind(&self, value: &GroupKind) -> bool {
        let Self::Exactly(text) = self else {
            return true;
        };
        match text.split_once('.') {
            None => value.group.is_empty() && text == &value.kind,
            Some((kind, group)) => !group.is_empty() && group == value.group && kind == value.kind,
        }
    }
}

/// The text of the matcher that covers this object and nothing else.
pub(crate) fn naming(target: &ResourceRef) -> String {
    let text = target.to_string();
    // What lies in no namespace is not said to lie in one without a name.
    text.strip_prefix('/').unwrap_or(&text).to_owned()
}

impl Matcher {
    /// Whether there can be an object that it covers. A text with another form covers nothing, and is no error.
    pub fn can_match(&self) -> bool {
        let plain = |text: &str, also: &[char]| {
            text.chars()
                .all(|letter| letter.is_ascii_alphanumeric() || also.contains(&letter))
        };
        let fits = |part: &Part, check: &dyn Fn(&str) -> bool| match part {
            Part::Any => true,
            Part::Exactly(text) => check(text),
        };
        let kind = |text: &str| {
            let (kind, group) = text.split_once('.').unwrap_or((text, "core"));
            !kind.is_empty() && !group.is_empty() && plain(kind, &[]) && plain(group, &['.', '-'])
        };
        let name = |text: &str| {
            let refused =
                |letter: char| letter.is_whitespace() || matches!(letter, '/' | '%' | '*');
            !text.is_empty() && !text.contains(refused)
        };
        fits(&self.namespace, &|text| plain(text, &['-']))
            && fits(&self.kind, &kind)
            && fits(&self.name, &name)
    }

    /// Whether the object is covered.
    pub fn matches(&self, target: &ResourceRef) -> bool {
        !target.name.is_empty()
            && !target.group_kind.kind.is_empty()
            && self.namespace.fits(&target.namespace)
            && self.kind.fits_kind(&target.group_kind)
            && self.name.fits(&target.name)
    }
}

impl FromStr for Matcher {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (namespace, rest) = text
            .split_once('/')
            .map_or((Part::Any, text), |(ns, rest)| (Part::of(ns), rest));
        let (kind, name) = rest
            .split_once(':')
            .map_or((rest, Part::Any), |(kind, name)| (kind, Part::of(name)));
        Ok(Self {
            text: text.to_owned(),
            namespace,
            kind: Part::of(kind),
            name,
        })
    }
}

impl From<&str> for Matcher {
    fn from(text: &str) -> Self {
        let Ok(matcher) = text.parse();
        matcher
    }
}

impl fmt::Display for Matcher {
    /// As it was written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Several matchers: an object is covered when one of them covers it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Matchers(Vec<Matcher>);

impl Matchers {
    /// Those of a command line: each value may hold several, separated by commas; blanks around them do not count.
    pub fn from_flags<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        let mut all = Vec::new();
        for value in values {
            all.extend(
                value
                    .as_ref()
                    .split(',')
                    .map(str::trim)
                    .filter(|text| !text.is_empty())
                    .map(Matcher::from),
            );
        }
        Self(all)
    }

    /// Whether one of them covers the object.
    pub fn matches(&self, target: &ResourceRef) -> bool {
        self.0.iter().any(|matcher| matcher.matches(target))
    }

    /// One by one.
    pub fn iter(&self) -> impl Iterator<Item = &Matcher> {
        self.0.iter()
    }
}

impl<S: AsRef<str>> FromIterator<S> for Matchers {
    /// Those of a manifest's list: one an item, taken as it is written.
    fn from_iter<I: IntoIterator<Item = S>>(texts: I) -> Self {
        Self(
            texts
                .into_iter()
                .map(|text| Matcher::from(text.as_ref()))
                .collect(),
        )
    }
}

#[cfg(test)]
pub(crate) mod tests;
