//! All rules there are, by the ConfigMaps that they stand in: which one counts for an object of a release.
//!
//! A rule counts only for releases of the namespace of its ConfigMap; those of one namespace, that of the atc, count for
//! all. So whoever may write ConfigMaps in a namespace decides about readiness there, and nowhere else.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;

use crate::key::Key;
use crate::rule::{self, Rule};

/// Bytes of rules that are held of one namespace: some hundred scripts. One namespace can't take the memory of all.
pub const NAMESPACE_MAX: usize = 256 * 1024;
/// Bytes of rules that are held in all: 256 full namespaces.
pub const TOTAL_MAX: usize = 64 * 1024 * 1024;

/// Why a ConfigMap's rules do not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BookError {
    /// Too many bytes in its namespace.
    #[error(
        "ConfigMap \"{namespace}/{name}\" has {size} bytes of readiness rules, which do not fit: at most {max} bytes are kept {of}"
    )]
    Full {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// What it holds.
        size: usize,
        /// The limit.
        max: usize,
        /// Of what.
        of: &'static str,
    },
}

/// The rule that counts.
#[derive(Clone, Debug)]
pub struct Found {
    /// Namespace and name of its ConfigMap.
    pub source: String,
    /// What it says.
    pub rule: Arc<Rule>,
    /// Tells this rule from another: never 0.
    pub version: u64,
}

/// The rules of one ConfigMap.
#[derive(Clone, Debug, Default, PartialEq)]
struct Page {
    rules: BTreeMap<Key, Arc<Rule>>,
    size: usize,
}

/// The rules of all ConfigMaps.
#[derive(Clone, Debug, Default)]
pub struct Book {
    /// The namespace whose rules count for all.
    shared: Option<String>,
    /// By namespace, then by name.
    pages: BTreeMap<String, BTreeMap<String, Page>>,
}

impl Book {
    /// The rules of this namespace count for all releases.
    pub fn share(&mut self, namespace: Option<String>) {
        self.shared = namespace;
    }

    /// Whether the rules of a namespace count for all releases.
    pub fn is_shared(&self, namespace: &str) -> bool {
        self.shared.as_deref() == Some(namespace)
    }

    /// Takes the rules of a ConfigMap in place of those it had; whether anything changed.
    ///
    /// # Errors
    /// [`BookError::Full`]; then it has none.
    pub fn put(
        &mut self,
        namespace: &str,
        name: &str,
        configmap: &Value,
    ) -> Result<bool, BookError> {
        let before = self.take(namespace, name);
        let rules: BTreeMap<Key, Arc<Rule>> = rule::read(configmap)
            .into_iter()
            .map(|(key, rule)| (key, Arc::new(rule)))
            .collect();
        let page = Page {
            size: rules.values().map(|rule| rule.size()).sum(),
            rules,
        };
        if page.rules.is_empty() {
            return Ok(before.is_some());
        }
        let of =
            |pages: &BTreeMap<String, Page>| pages.values().map(|page| page.size).sum::<usize>();
        let here = self.pages.get(namespace).map_or(0, of);
        let all: usize = self.pages.values().map(of).sum();
        for (held, max, of) in [
            (here, NAMESPACE_MAX, "of one namespace"),
            (all, TOTAL_MAX, "in all"),
        ] {
            if held + page.size > max {
                return Err(BookError::Full {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    size: page.size,
                    max,
                    of,
                });
            }
        }
        let changed = before.as_ref() != Some(&page);
        self.pages
            .entry(namespace.to_owned())
            .or_default()
            .insert(name.to_owned(), page);
        Ok(changed)
    }

    /// Forgets the rules of a ConfigMap; whether it had any.
    pub fn remove(&mut self, namespace: &str, name: &str) -> bool {
        self.take(namespace, name).is_some()
    }

    fn take(&mut self, namespace: &str, name: &str) -> Option<Page> {
        let pages = self.pages.get_mut(namespace)?;
        let page = pages.remove(name);
        if pages.is_empty() {
            self.pages.remove(namespace);
        }
        page
    }

    /// The rule that counts for a kind in releases of a namespace.
    ///
    /// A rule for the kind comes before one for its group, one of the release's namespace before a shared one, and of two
    /// ConfigMaps the one whose name comes first.
    pub fn find(&self, namespace: &str, group: &str, kind: &str) -> Option<Found> {
        let shared = self.shared.as_deref().filter(|shared| *shared != namespace);
        let namespaces = [Some(namespace), shared];
        [Key::exact(group, kind), Key::any(group)]
            .iter()
            .flat_map(|key| {
                namespaces
                    .into_iter()
                    .flatten()
                    .filter_map(move |namespace| self.first(namespace, key))
            })
            .next()
    }

    fn first(&self, namespace: &str, key: &Key) -> Option<Found> {
        let pages = self.pages.get(namespace)?;
        pages.iter().find_map(|(name, page)| {
            let rule = page.rules.get(key)?.clone();
            let mut hasher = DefaultHasher::new();
            (namespace, name, &*rule).hash(&mut hasher);
            Some(Found {
                source: format!("{namespace}/{name}"),
                version: hasher.finish().max(1),
                rule,
            })
        })
    }
}

#[cfg(test)]
mod tests;
