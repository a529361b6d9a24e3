//! The modules that an Airway or an instance names: flight, converter, override.

use atc_api::Airway;
use atc_engine::LoadedFlight;
use atc_engine::artifact::Location;
use atc_engine::error::{EngineError, chain};

use crate::control::Control;

/// Loads the Airway's flight. `fresh` asks its server even if that was asked a moment ago: a location without a checksum
/// may hold something else by now. Without it, what is cached does when the server is away.
pub(crate) async fn load(
    control: &Control,
    airway: &Airway,
    fresh: bool,
) -> Result<LoadedFlight, String> {
    let urls = &airway.spec.wasm_urls;
    let checksum = urls.flight_checksum.as_deref();
    module(
        control,
        "spec.wasmUrls.flight",
        &urls.flight,
        checksum,
        fresh,
    )
    .await
}

/// Loads the Airway's converter, if it has one.
pub(crate) async fn load_converter(
    control: &Control,
    airway: &Airway,
    fresh: bool,
) -> Result<Option<LoadedFlight>, String> {
    let urls = &airway.spec.wasm_urls;
    let Some(url) = urls.converter.as_deref().filter(|url| !url.is_empty()) else {
        return Ok(None);
    };
    let checksum = urls.converter_checksum.as_deref();
    let field = "spec.wasmUrls.converter";
    module(control, field, url, checksum, fresh)
        .await
        .map(Some)
        .map_err(|why| format!("{field}: {why}"))
}

/// Loads the module that a field or an annotation names.
pub(crate) async fn module(
    control: &Control,
    field: &str,
    url: &str,
    checksum: Option<&str>,
    fresh: bool,
) -> Result<LoadedFlight, String> {
    let location: Location = url
        .parse()
        .map_err(|error| format!("{field} is no location: {}", chain(&error)))?;
    control
        .engine
        .load(&location, checksum, fresh)
        .await
        .map_err(|error: EngineError| error.chain())
}
