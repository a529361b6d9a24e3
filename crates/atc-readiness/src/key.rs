//! Which kinds a rule is for: `Kind.group`, or `_.group` for all kinds of a group. Core kinds have no group.

/// The word that stands for any kind.
const ANY: &str = "_";

/// A key of a ConfigMap of rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Everything behind the first dot; empty for core.
    group: String,
    /// The kind; `None` for all of the group.
    kind: Option<String>,
}

impl Key {
    /// The key that a text says; `None` for one without a kind.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        (!kind.is_empty()).then(|| Self {
            group: group.to_owned(),
            kind: (kind != ANY).then(|| kind.to_owned()),
        })
    }

    /// The key of one kind.
    pub fn exact(group: &str, kind: &str) -> Self {
        Self {
            group: group.to_owned(),
            kind: Some(kind.to_owned()),
        }
    }

    /// The key of all kinds of a group.
    pub fn any(group: &str) -> Self {
        Self {
            group: group.to_owned(),
            kind: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn keys() {
        for (text, expect) in [
            ("App.x.dev", Some(Key::exact("x.dev", "App"))),
            ("_.x.dev", Some(Key::any("x.dev"))),
            ("ConfigMap", Some(Key::exact("", "ConfigMap"))),
            ("ConfigMap.", Some(Key::exact("", "ConfigMap"))),
            ("_", Some(Key::any(""))),
            (".x.dev", None),
            ("", None),
        ] {
            assert_eq!(Key::parse(text), expect, "{text}");
        }
    }
}
