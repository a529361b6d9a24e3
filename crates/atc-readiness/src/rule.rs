//! What a ConfigMap says about readiness: rules by kind.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::key::Key;
use crate::script::Script;

/// The label that makes a ConfigMap one of rules, and says of which sort.
pub const LABEL: &str = "resource.yoke.cd/readiness";
/// Value of [`LABEL`]: condition types, with blanks between.
pub const CONDITIONS: &str = "conditions";
/// Value of [`LABEL`]: Lua scripts.
pub const LUA: &str = "lua";

/// When an object of a kind is ready.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// When these conditions are True.
    Conditions(Vec<String>),
    /// When this script says so.
    Script(Script),
}

impl Rule {
    /// Bytes of what it says.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Conditions(kinds) => kinds.iter().map(String::len).sum(),
            Self::Script(script) => script.text().len(),
        }
    }
}

/// The rules of a ConfigMap; none if it is not labelled as one of rules. Keys that name no kind are left out.
pub fn read(configmap: &Value) -> BTreeMap<Key, Rule> {
    let sort = configmap["metadata"]["labels"][LABEL].as_str();
    let rule = |key: &str, value: &str| match sort {
        Some(CONDITIONS) => Some(Rule::Conditions(
            value.split_whitespace().map(str::to_owned).collect(),
        )),
        Some(LUA) => Some(Rule::Script(Script::new(key, value))),
        _ => None,
    };
    let data = configmap["data"].as_object().into_iter().flatten();
    data.filter_map(|(key, value)| Some((Key::parse(key)?, rule(key, value.as_str()?)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn configmap(sort: &str) -> Value {
        json!({
            "metadata": { "labels": { LABEL: sort } },
            "data": { "App.x.dev": " Synced\n Ready ", "_.y.dev": "", ".bad": "Ready" },
        })
    }

    #[test]
    fn configmaps() {
        let conditions = read(&configmap(CONDITIONS));
        let two = Rule::Conditions(vec!["Synced".into(), "Ready".into()]);
        assert_eq!(conditions.get(&Key::exact("x.dev", "App")), Some(&two));
        assert_eq!(
            conditions.get(&Key::any("y.dev")),
            Some(&Rule::Conditions(Vec::new()))
        );
        assert_eq!(conditions.len(), 2);
        let scripts = read(&configmap(LUA));
        let script = Rule::Script(Script::new("App.x.dev", " Synced\n Ready "));
        assert_eq!(scripts.get(&Key::exact("x.dev", "App")), Some(&script));
        assert!(read(&configmap("other")).is_empty());
        assert!(read(&json!({ "data": { "App.x.dev": "Ready" } })).is_empty());
    }
}
