//! The modules that an Airway, a Flight or an instance names: flight, converter, override. All go through the engine, and
//! so through the policy of what may be loaded.

use atc_api::Airway;
use atc_engine::LoadedFlight;
use atc_engine::artifact::Location;
use atc_engine::error::{EngineError, chain};

use crate::control::Control;

/// A module that something names.
pub(crate) struct Named<'a> {
    /// What names it: a field, an annotation.
    pub(crate) field: &'a str,
    /// Where it is.
    pub(crate) url: &'a str,
    /// Hex SHA-256 that it must have.
    pub(crate) checksum: Option<&'a str>,
    /// Whether its registry may be asked over plain HTTP or without a look at its certificate.
    pub(crate) insecure: bool,
}

impl Named<'_> {
    /// Loads it. `fresh` asks its server even if that was asked a moment ago: a location without a checksum may hold
    /// something else by now. Without it, what is cached does when the server is away.
    pub(crate) async fn load(
        &self,
        control: &Control,
        fresh: bool,
    ) -> Result<LoadedFlight, EngineError> {
        let location: Location = self.url.parse().map_err(|error| EngineError::Location {
            text: self.field.to_owned(),
            why: chain(&error),
        })?;
        let location = location.with_insecure(self.insecure);
        control.engine.load(&location, self.checksum, fresh).await
    }
}

/// Loads an Airway's flight.
pub(crate) async fn load(
    control: &Control,
    airway: &Airway,
    fresh: bool,
) -> Result<LoadedFlight, EngineError> {
    let urls = &airway.spec.wasm_urls;
    let flight = Named {
        field: "spec.wasmUrls.flight",
        url: &urls.flight,
        checksum: urls.flight_checksum.as_deref(),
        insecure: airway.spec.insecure,
    };
    flight.load(control, fresh).await
}

/// A converter, and what a run of it may take.
#[derive(Clone, Debug)]
pub(crate) struct Converter {
    pub(crate) module: LoadedFlight,
    /// Bytes.
    pub(crate) memory: u64,
}

impl Converter {
    pub(crate) fn of(module: LoadedFlight, airway: &Airway) -> Self {
        Self {
            module,
            memory: airway.spec.memory_bytes(),
        }
    }
}

/// Loads an Airway's converter, if it has one.
pub(crate) async fn load_converter(
    control: &Control,
    airway: &Airway,
    fresh: bool,
) -> Result<Option<LoadedFlight>, EngineError> {
    let urls = &airway.spec.wasm_urls;
    let Some(url) = urls.converter.as_deref().filter(|url| !url.is_empty()) else {
        return Ok(None);
    };
    let converter = Named {
        field: "spec.wasmUrls.converter",
        url,
        checksum: urls.converter_checksum.as_deref(),
        insecure: airway.spec.insecure,
    };
    converter.load(control, fresh).await.map(Some)
}
