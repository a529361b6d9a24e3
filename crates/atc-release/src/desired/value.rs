//! Builds a JSON value from any format: strict about keys and numbers, bounded in depth and size.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{MAX_DEPTH, MAX_VALUES};

/// What the documents of one output may use together.
#[derive(Debug)]
pub(super) struct Budget {
    pub(super) values: usize,
    /// Whether the document at hand has a number that may have been an integer beyond 64 bits.
    pub(super) has_huge: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            values: MAX_VALUES,
            has_huge: false,
        }
    }
}

/// Builds a value, counting depth and values.
pub(super) struct Seed<'a> {
    pub(super) budget: &'a mut Budget,
    pub(super) depth: usize,
    pub(super) is_yaml: bool,
}

impl Seed<'_> {
    fn inner(&mut self) -> Seed<'_> {
        Seed {
            budget: self.budget,
            depth: self.depth + 1,
            is_yaml: self.is_yaml,
        }
    }

    fn enter<E: serde::de::Error>(&self) -> Result<(), E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(format!(
                "lists and maps are nested more than {MAX_DEPTH} deep"
            )));
        }
        Ok(())
    }

    fn check_key<E: serde::de::Error>(&self, key: &str, map: &Map<String, Value>) -> Result<(), E> {
        let shown = || {
            key.chars()
                .take(100)
                .collect::<String>()
                .escape_debug()
                .to_string()
        };
        if map.contains_key(key) {
            return Err(E::custom(format!("the key \"{}\" occurs twice", shown())));
        }
        if self.is_yaml && key.starts_with('\u{a0}') {
            return Err(E::custom(format!(
                "the key \"{}\" begins with a non-breaking space",
                shown()
            )));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.budget.values.checked_sub(1) {
            Some(left) => self.budget.values = left,
            None => {
                return Err(D::Error::custom(format!(
                    "the output has more than {MAX_VALUES} values"
                )));
            }
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has, too")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        /// 2⁶³: whole floats below it are integers of 64 bits.
        const LIMIT: f64 = 9_223_372_036_854_775_808.0;
        if value.fract() != 0.0 || value.abs() >= LIMIT {
            self.budget.has_huge |= value.abs() >= LIMIT;
            return Number::from_f64(value)
                .map(Value::Number)
                .ok_or_else(|| E::custom("a number is not finite"));
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is whole, and below 2⁶³"
        )]
        Ok(Value::from(value as i64))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    /// `!!binary` of YAML: the text that it encodes.
    fn visit_bytes<E: serde::de::Error>(self, value: &[u8]) -> Result<Value, E> {
        let text = std::str::from_utf8(value)
            .map_err(|_| E::custom("a !!binary value is no UTF-8 text"))?;
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut list = Vec::new();
        while let Some(value) = access.next_element_seed(self.inner())? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            self.check_key(&key, &map)?;
            map.insert(key, access.next_value_seed(self.inner())?);
        }
        Ok(Value::Object(map))
    }
}
