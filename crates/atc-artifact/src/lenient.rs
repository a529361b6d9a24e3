//! JSON as Go programs read it: null is as good as nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// A value whose null is its default.
pub(crate) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A map that may be null, and so may its values.
pub(crate) fn map<'de, D, T>(from: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    let map: Option<BTreeMap<String, Option<T>>> = Option::deserialize(from)?;
    let filled = map.unwrap_or_default().into_iter();
    Ok(filled
        .map(|(key, value)| (key, value.unwrap_or_default()))
        .collect())
}
