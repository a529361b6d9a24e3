//! The time as objects say it.

/// Now, as conditions say it: RFC 3339, UTC, whole seconds.
pub fn now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
