//! Overrides: annotations by which one instance is served in another way than its Airway says.
//!
//! Who may set them is decided at admission; here they only count. An override of the flight is loaded as any other
//! module is: cached, and under the same rules of where it may come from. The Airway's checksum is that of the Airway's
//! flight and says nothing of another one.

use std::borrow::Cow;

use atc_api::{AirwayMode, names};
use atc_engine::LoadedFlight;
use atc_engine::instance::InstanceSettings;
use serde_json::Value;

use crate::control::Control;
use crate::flights;
use crate::kinds::Setup;
use crate::modules::Named;

/// The annotations.
const ANNOTATIONS: [&str; 2] = [
    names::ANNOTATION_OVERRIDE_FLIGHT,
    names::ANNOTATION_OVERRIDE_MODE,
];

fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][name]
        .as_str()
        .filter(|text| !text.is_empty())
}

/// What an instance overrides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overrides<'a> {
    /// URL of another flight.
    pub(crate) flight: Option<&'a str>,
    /// Another mode. Words that are no mode count for nothing, as in the existing tool.
    pub(crate) mode: Option<AirwayMode>,
}

impl<'a> Overrides<'a> {
    /// Of an object.
    pub(crate) fn of(object: &'a Value) -> Self {
        let word = annotation(object, names::ANNOTATION_OVERRIDE_MODE);
        Self {
            flight: annotation(object, names::ANNOTATION_OVERRIDE_FLIGHT),
            mode: word.and_then(|word| {
                let mut all = AirwayMode::ALL.into_iter();
                all.find(|mode| mode.as_str() == word)
            }),
        }
    }
}

/// The first override annotation that differs between two states of an object. Taking one away changes it, too.
pub(crate) fn changed(old: &Value, new: &Value) -> Option<&'static str> {
    ANNOTATIONS
        .into_iter()
        .find(|name| annotation(old, name) != annotation(new, name))
}

/// How an instance is served, its overrides counted in.
pub(crate) struct Served<'a> {
    pub(crate) settings: Cow<'a, InstanceSettings>,
    pub(crate) flight: Result<Cow<'a, LoadedFlight>, String>,
    /// The flight is named by the object itself: nothing but another try or an edit mends what is wrong with it.
    pub(crate) overridden: bool,
}

impl Served<'_> {
    /// An object that says all of it itself.
    pub(crate) fn of(settings: InstanceSettings, flight: LoadedFlight) -> Self {
        Self {
            settings: Cow::Owned(settings),
            flight: Ok(Cow::Owned(flight)),
            overridden: true,
        }
    }

    /// The same, and its flight can't run.
    pub(crate) fn refused(settings: InstanceSettings, why: String) -> Self {
        Self {
            settings: Cow::Owned(settings),
            flight: Err(why),
            overridden: true,
        }
    }
}

/// What is done about the flight of an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// Nothing: the flight will not run.
    Not,
    /// What is cached does.
    Cached,
    /// Its server is asked even if it was a moment ago.
    Fresh,
}

/// How an object is served.
pub(crate) async fn served<'a>(
    control: &Control,
    setup: &'a Setup,
    object: &Value,
    load: Load,
) -> Served<'a> {
    if flights::is_kind(&setup.settings.mapping.kind) && setup.settings.owner.is_none() {
        return flights::served(control, setup, object, load).await;
    }
    let overrides = Overrides::of(object);
    let mut settings = Cow::Borrowed(&setup.settings);
    if let Some(mode) = overrides.mode
        && mode != settings.mode
    {
        settings.to_mut().mode = mode;
    }
    let flight = match overrides.flight {
        None => match &setup.flight {
            Ok(flight) => Ok(Cow::Borrowed(flight)),
            Err(why) => Err(why.clone()),
        },
        Some(_) if load == Load::Not => Err("its flight was not loaded".into()),
        Some(url) => {
            let flight = Named {
                field: names::ANNOTATION_OVERRIDE_FLIGHT,
                url,
                checksum: None,
                insecure: setup.insecure,
            };
            let loaded = flight.load(control, load == Load::Fresh).await;
            loaded.map(Cow::Owned).map_err(|error| error.chain())
        }
    };
    Served {
        settings,
        overridden: overrides.flight.is_some() && flight.is_err() && load != Load::Not,
        flight,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(flight: &Value, mode: &Value) -> Value {
        json!({"metadata": {"annotations": {
            names::ANNOTATION_OVERRIDE_FLIGHT: flight, names::ANNOTATION_OVERRIDE_MODE: mode,
        }}})
    }

    #[test]
    fn what_counts() {
        let check = |flight: Value, mode: Value, wanted: (Option<&str>, Option<AirwayMode>)| {
            let object = object(&flight, &mode);
            let overrides = Overrides::of(&object);
            assert_eq!((overrides.flight, overrides.mode), wanted, "{object}");
        };
        let dynamic = Some(AirwayMode::Dynamic);
        check(
            json!("http://x/y"),
            json!("dynamic"),
            (Some("http://x/y"), dynamic),
        );
        check(json!(""), json!(""), (None, None));
        check(json!(1), json!(null), (None, None));
        check(Value::Null, json!("Dynamic"), (None, None));
        check(
            Value::Null,
            json!("static"),
            (None, Some(AirwayMode::Static)),
        );
        // Labels of these names are none, as are objects without annotations.
        let labels = json!({"metadata": {"labels": {names::ANNOTATION_OVERRIDE_MODE: "dynamic"}}});
        assert_eq!(Overrides::of(&labels), Overrides::default());
        assert_eq!(Overrides::of(&Value::Null), Overrides::default());
    }

    #[test]
    fn what_is_a_change() {
        let none = json!({"metadata": {}});
        let flight = object(&json!("a"), &Value::Null);
        assert_eq!(changed(&Value::Null, &none), None);
        assert_eq!(changed(&flight, &flight), None);
        assert_eq!(
            changed(&none, &flight),
            Some(names::ANNOTATION_OVERRIDE_FLIGHT)
        );
        assert_eq!(
            changed(&flight, &none),
            Some(names::ANNOTATION_OVERRIDE_FLIGHT)
        );
        assert_eq!(
            changed(&flight, &object(&json!("a"), &json!("x"))),
            Some(names::ANNOTATION_OVERRIDE_MODE)
        );
        assert_eq!(changed(&none, &object(&json!(""), &json!(""))), None);
    }
}
