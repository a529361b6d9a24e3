//! Sorts the values of an output into stages.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use atc_api::ResourceRef;
use serde_json::Value;

use super::{DesiredError, Place};
use crate::object::{Object, Stages, type_name};

/// What has been read so far.
#[derive(Default)]
pub(super) struct Reading {
    /// Objects of no stage.
    loose: Vec<(Object, Place)>,
    /// Objects of lists of lists.
    staged: Vec<Vec<(Object, Place)>>,
    /// Whether something said "nothing" in so many words.
    said_nothing: bool,
    /// Where the first list of lists begins.
    first_stages: Option<Place>,
}

impl Reading {
    pub(super) fn add(&mut self, place: &Place, value: Value) -> Result<(), DesiredError> {
        match value {
            Value::Null => Ok(()),
            Value::Object(map) if map.is_empty() => Err(DesiredError::NotObjects {
                place: place.clone(),
                found: "an empty object",
            }),
            Value::Object(_) => {
                self.no_stages_before(place)?;
                unfold(place, value, &mut self.loose)?;
                self.said_nothing |= self.loose.is_empty();
                Ok(())
            }
            Value::Array(list) if list.is_empty() => {
                self.said_nothing = true;
                Ok(())
            }
            Value::Array(list) if list[0].is_array() => self.add_stages(place, list),
            Value::Array(list) => {
                self.no_stages_before(place)?;
                add_list(place, list, &mut self.loose)
            }
            other => Err(DesiredError::NotObjects {
                place: place.clone(),
                found: type_name(&other),
            }),
        }
    }

    fn no_stages_before(&self, place: &Place) -> Result<(), DesiredError> {
        if self.first_stages.is_some() {
            return Err(DesiredError::Mixed {
                place: place.clone(),
            });
        }
        Ok(())
    }

    fn add_stages(&mut self, place: &Place, list: Vec<Value>) -> Result<(), DesiredError> {
        if !self.loose.is_empty() {
            return Err(DesiredError::Mixed {
                place: place.clone(),
            });
        }
        self.first_stages.get_or_insert_with(|| place.clone());
        self.said_nothing = true;
        for (index, stage) in list.into_iter().enumerate() {
            let place = place.with("stage", index);
            let Value::Array(elements) = stage else {
                return Err(DesiredError::Mixed { place });
            };
            let mut objects = Vec::new();
            add_list(&place, elements, &mut objects)?;
            self.staged.push(objects);
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Stages, DesiredError> {
        if self.first_stages.is_none() {
            self.staged = vec![self.loose];
        }
        let mut firsts = firsts(&self.staged)?.into_iter();
        let mut stages = Vec::new();
        for stage in self.staged {
            let (mut foundations, mut rest) = (Vec::new(), Vec::new());
            for (object, _) in stage {
                if firsts.next() != Some(true) {
                    continue;
                }
                if object.is_foundation() {
                    foundations.push(object);
                } else {
                    rest.push(object);
                }
            }
            stages.extend([foundations, rest]);
        }
        let stages = Stages::new(stages);
        if stages.is_empty() && !self.said_nothing {
            return Err(DesiredError::Empty("is null"));
        }
        Ok(stages)
    }
}

/// Whether each of them occurs for the first time, in their order. One that occurs again and says the same is none.
fn firsts(staged: &[Vec<(Object, Place)>]) -> Result<Vec<bool>, DesiredError> {
    let mut seen: HashMap<ResourceRef, (&Object, &Place)> = HashMap::new();
    let mut firsts = Vec::new();
    for (object, place) in staged.iter().flatten() {
        match seen.entry(object.reference()) {
            Entry::Vacant(entry) => {
                entry.insert((object, place));
                firsts.push(true);
            }
            Entry::Occupied(entry) => {
                let (first, at) = *entry.get();
                if !says_the_same(first, object) {
                    return Err(DesiredError::Duplicate {
                        object: object.canonical(),
                        first: at.clone(),
                        second: place.clone(),
                    });
                }
                firsts.push(false);
            }
        }
    }
    Ok(firsts)
}

/// Whether two objects ask for the same. What only the server sets does not count; a status does, which may be the
/// parent's.
fn says_the_same(one: &Object, two: &Object) -> bool {
    let asked = |object: &Object| {
        let mut object = object.clone();
        object.strip_server_fields();
        object
    };
    one == two || (one.status() == two.status() && asked(one) == asked(two))
}

/// Adds the elements of a flat list. One that is null or a list is an error: it can only be a slip.
fn add_list(
    place: &Place,
    list: Vec<Value>,
    into: &mut Vec<(Object, Place)>,
) -> Result<(), DesiredError> {
    for (index, element) in list.into_iter().enumerate() {
        unfold(&place.with("element", index), element, into)?;
    }
    Ok(())
}

/// Adds an object, or the items of a list of a kind.
fn unfold(
    place: &Place,
    value: Value,
    into: &mut Vec<(Object, Place)>,
) -> Result<(), DesiredError> {
    let Some((items, item_kind, api_version)) = items_of(&value) else {
        let object = Object::try_from(value).map_err(|source| DesiredError::Object {
            place: place.clone(),
            source,
        })?;
        into.push((object, place.clone()));
        return Ok(());
    };
    for (index, mut item) in items.into_iter().enumerate() {
        // Typed Go programs leave API version and kind out of the items of a typed list.
        if let (Some(kind), Value::Object(map)) = (&item_kind, &mut item)
            && !map.contains_key("kind")
            && !map.contains_key("apiVersion")
        {
            map.insert("apiVersion".to_owned(), api_version.clone().into());
            map.insert("kind".to_owned(), kind.clone().into());
        }
        // As deep as lists may nest, which the depth bound of reading limits.
        unfold(&place.with("item", index), item, into)?;
    }
    Ok(())
}

/// The items of a `List` or a typed list, which has a kind that ends in `List`, items, and no name of its own; for a typed
/// list also the kind of its items.
fn items_of(value: &Value) -> Option<(Vec<Value>, Option<String>, String)> {
    let kind = value["kind"].as_str()?;
    let item_kind = kind.strip_suffix("List")?;
    let api_version = value["apiVersion"].as_str()?;
    if !matches!(value["metadata"]["name"], Value::Null) {
        return None;
    }
    let items = match value.get("items")? {
        Value::Array(items) => items.clone(),
        Value::Null => Vec::new(),
        _ => return None,
    };
    let item_kind = (!item_kind.is_empty()).then(|| item_kind.to_owned());
    Some((items, item_kind, api_version.to_owned()))
}
