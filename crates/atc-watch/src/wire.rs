//! What is read of an object in a list or a watch: some of its metadata, the rest is dropped while parsing.
//!
//! Labels, annotations, owners and finalizers become hashes on the way in, so that an object nobody asked for costs
//! next to nothing. A field of a wrong type is taken as absent: one bad object must not stop the watch.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};

/// An object, of which only the metadata is looked at.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Object {
    pub(crate) metadata: Metadata,
}

/// The metadata that matters.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    #[serde(deserialize_with = "text")]
    pub(crate) name: String,
    #[serde(deserialize_with = "text")]
    pub(crate) namespace: String,
    #[serde(deserialize_with = "text")]
    pub(crate) uid: String,
    #[serde(deserialize_with = "text")]
    pub(crate) resource_version: String,
    #[serde(deserialize_with = "integer")]
    pub(crate) generation: Option<i64>,
    pub(crate) labels: Labels,
    #[serde(deserialize_with = "annotations")]
    pub(crate) annotations: Digest,
    pub(crate) owner_references: Digest,
    pub(crate) finalizers: Digest,
    #[serde(deserialize_with = "is_text")]
    pub(crate) deletion_timestamp: bool,
}

/// One page of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Page {
    pub(crate) metadata: PageMetadata,
    #[serde(deserialize_with = "items")]
    pub(crate) items: Vec<Object>,
}

/// The metadata of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PageMetadata {
    #[serde(deserialize_with = "text")]
    pub(crate) resource_version: String,
    #[serde(rename = "continue", deserialize_with = "text")]
    pub(crate) next: String,
}

/// A hash of any JSON value in which the order of keys does not matter. Missing, null and empty are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Digest(pub(crate) u64);

/// Labels: their hash, and the pairs for whoever selects by label.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    pub(crate) digest: Digest,
    pub(crate) pairs: Vec<(String, String)>,
}

fn hashed(tag: u8, value: impl Hash) -> Digest {
    let mut hasher = DefaultHasher::new();
    tag.hash(&mut hasher);
    value.hash(&mut hasher);
    Digest(hasher.finish())
}

impl Digest {
    /// Adds an entry of a map; the sum makes the order of entries irrelevant.
    fn add_entry(&mut self, key: &str, value: Self) {
        self.0 = self.0.wrapping_add(hashed(5, (key, value)).0);
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DigestVisitor { without: None })
    }
}

struct DigestVisitor {
    /// Keys of this map that begin so do not count.
    without: Option<&'static str>,
}

impl<'de> Visitor<'de> for DigestVisitor {
    type Value = Digest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Digest, E> {
        Ok(Digest::default())
    }

    fn visit_bool<E>(self, value: bool) -> Result<Digest, E> {
        Ok(hashed(1, value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Digest, E> {
        Ok(hashed(2, i128::from(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Digest, E> {
        Ok(hashed(2, i128::from(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Digest, E> {
        Ok(hashed(3, value.to_bits()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Digest, E> {
        Ok(hashed(4, value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Digest, A::Error> {
        let mut digest = Digest::default();
        while let Some(item) = seq.next_element::<Digest>()? {
            digest = hashed(6, (digest, item));
        }
        Ok(digest)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Digest, A::Error> {
        let mut digest = Digest::default();
        while let Some((key, value)) = map.next_entry::<String, Digest>()? {
            if self.without.is_none_or(|prefix| !key.starts_with(prefix)) {
                digest.add_entry(&key, value);
            }
        }
        Ok(digest)
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Lenient(pairs) = Lenient::<Pairs>::deserialize(deserializer)?;
        let pairs = pairs.unwrap_or_default().0;
        let mut digest = Digest::default();
        for (key, value) in &pairs {
            digest.add_entry(key, hashed(4, value.as_str()));
        }
        Ok(Self { digest, pairs })
    }
}

/// A map of texts; values of other types are left out.
#[derive(Default)]
struct Pairs(Vec<(String, String)>);

impl Kind for Pairs {
    fn of_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        let mut pairs = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, Lenient<String>>()? {
            pairs.extend(value.0.map(|value| (key, value)));
        }
        Ok(Some(Self(pairs)))
    }
}

impl Kind for String {
    fn of_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl Kind for i64 {
    fn of_integer(integer: i64) -> Option<Self> {
        Some(integer)
    }
}

/// A type that is made of one sort of JSON value; of others nothing is made.
trait Kind: Sized {
    fn of_text(_text: &str) -> Option<Self> {
        None
    }

    fn of_integer(_integer: i64) -> Option<Self> {
        None
    }

    fn of_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

/// The value, if it is of the right type. Never an error but for broken JSON.
struct Lenient<T>(Option<T>);

impl<'de, T: Kind> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientVisitor(std::marker::PhantomData))
    }
}

struct LenientVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: Kind> Visitor<'de> for LenientVisitor<T> {
    type Value = Lenient<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Lenient<T>, E> {
        Ok(Lenient(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Lenient<T>, E> {
        Ok(Lenient(None))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Lenient<T>, E> {
        Ok(Lenient(T::of_integer(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Lenient<T>, E> {
        Ok(Lenient(i64::try_from(value).ok().and_then(T::of_integer)))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Lenient<T>, E> {
        Ok(Lenient(None))
    }

    fn visit_str<E>(self, value: &str) -> Result<Lenient<T>, E> {
        Ok(Lenient(T::of_text(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Lenient<T>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Lenient(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Lenient<T>, A::Error> {
        T::of_map(map).map(Lenient)
    }
}

/// Annotations that are no part of what anybody wants but bookkeeping of the Deployment controller, which writes
/// `deployment.kubernetes.io/revision` after each change of a Deployment.
const BOOKKEEPING: &str = "deployment.kubernetes.io/";

fn annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
    deserializer.deserialize_any(DigestVisitor {
        without: Some(BOOKKEEPING),
    })
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Lenient::<String>::deserialize(deserializer)?
        .0
        .unwrap_or_default())
}

fn integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Ok(Lenient::<i64>::deserialize(deserializer)?.0)
}

fn is_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Lenient::<String>::deserialize(deserializer)?.0.is_some())
}

/// Items; `null`, which Go prints for an empty list, is none.
fn items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Object>, D::Error> {
    Option::<Vec<Object>>::deserialize(deserializer)
        .map(Option::unwrap_or_default)
        .map_err(de::Error::custom)
}

#[cfg(test)]
mod tests;
