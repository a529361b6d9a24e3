//! When a served Airway is due again by itself: where a tag such as `latest` names its flight, which may mean another one
//! by then.

use std::time::Duration;

use atc_engine::artifact::Location;
use atc_engine::disposition::Disposition;
use serde_json::Value;

/// How often a registry is asked what a moving tag means: each 5 min, a request without a body. A new flight that must
/// be there at once is named by another tag, or the Airway is touched.
const TAG_INTERVAL: Duration = Duration::from_mins(5);

/// When an Airway with these `wasmUrls` is due again.
pub(super) fn next(urls: &Value) -> Disposition {
    let flight = urls["flight"].as_str().unwrap_or_default();
    let checksum = urls["flightChecksum"].as_str().unwrap_or_default();
    match flight.parse::<Location>() {
        Ok(location) if location.is_moving() && checksum.is_empty() => {
            Disposition::After(TAG_INTERVAL)
        }
        _ => Disposition::Wait,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_moving_tags_are_asked_for_again() {
        for (urls, again) in [
            (json!({ "flight": "oci://h.io/app" }), true),
            (
                json!({ "flight": "oci://h.io/app:latest", "flightChecksum": "" }),
                true,
            ),
            (
                json!({ "flight": "oci://h.io/app:latest", "flightChecksum": "ab" }),
                false,
            ),
            (json!({ "flight": "oci://h.io/app:v1" }), false),
            (json!({ "flight": "https://h.io/latest.wasm" }), false),
            (json!({ "flight": "ftp://h.io/x" }), false),
            (json!({}), false),
        ] {
            let next = next(&urls);
            assert_eq!(
                matches!(next, Disposition::After(_)),
                again,
                "{urls}: {next:?}"
            );
        }
    }
}
