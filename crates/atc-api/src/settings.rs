//! What the numbers in a spec mean: zero is a default and a negative number no limit. Shared by Airways and Flights.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::duration::GoDuration;

/// Revisions kept when the spec says 0 or nothing; from the existing tool.
pub const DEFAULT_HISTORY_CAP: usize = 2;
/// How long a flight may run when the spec says 0 or nothing; from the existing tool.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The memory that a 32-bit WebAssembly module can address: 65,536 pages of 64 KiB.
pub const MAX_MEMORY_BYTES: u64 = 4 << 30;
/// What a shorter drift interval counts as: nothing is evaluated more often than every second though nothing changed.
const MIN_DRIFT_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes of a mebibyte.
const MIB: u64 = 1 << 20;

/// Revisions kept: 0 is [`DEFAULT_HISTORY_CAP`], a negative number is no limit (`None`).
pub(crate) fn history_cap(size: i64) -> Option<usize> {
    match size {
        0 => Some(DEFAULT_HISTORY_CAP),
        _ => usize::try_from(size).ok(),
    }
}

/// Every how often something is evaluated though nothing changed: [`MIN_DRIFT_INTERVAL`] at least; nothing, 0 and a negative
/// span are never (`None`).
pub(crate) fn drift_interval(every: Option<GoDuration>) -> Option<Duration> {
    let every = every.and_then(GoDuration::positive)?;
    Some(every.max(MIN_DRIFT_INTERVAL))
}

/// Time of a run: nothing and 0 are [`DEFAULT_TIMEOUT`], a negative span is no limit (`None`).
pub(crate) fn time_limit(timeout: Option<GoDuration>) -> Option<Duration> {
    match timeout {
        Some(negative) if negative.is_negative() => None,
        other => Some(
            other
                .and_then(GoDuration::positive)
                .unwrap_or(DEFAULT_TIMEOUT),
        ),
    }
}

/// Memory of a run in bytes: 0 (and what the schema refuses, a negative number) is [`MAX_MEMORY_BYTES`], which is also
/// the most.
pub(crate) fn memory_bytes(mib: i64) -> u64 {
    match u64::try_from(mib) {
        Ok(mib) if mib > 0 => mib.saturating_mul(MIB).min(MAX_MEMORY_BYTES),
        _ => MAX_MEMORY_BYTES,
    }
}

/// Reads an explicit `null` as if the field were absent, which is how Go reads it and what kubectl may send.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Whether a field need not be written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if passes references"
)]
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if passes references"
)]
pub(crate) fn is_zero(value: &i64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_caps() {
        for (size, expect) in [
            (0, Some(2)),
            (1, Some(1)),
            (7, Some(7)),
            (-1, None),
            (i64::MIN, None),
        ] {
            assert_eq!(history_cap(size), expect, "{size}");
        }
    }

    #[test]
    fn drift_intervals() {
        for (text, expect) in [
            (None, None),
            (Some("0s"), None),
            (Some("-1m"), None),
            (Some("1ns"), Some(Duration::from_secs(1))),
            (Some("1s"), Some(Duration::from_secs(1))),
            (Some("90s"), Some(Duration::from_secs(90))),
        ] {
            assert_eq!(
                drift_interval(text.map(|text| text.parse().unwrap())),
                expect,
                "{text:?}"
            );
        }
    }

    #[test]
    fn time_limits() {
        let check = |text: Option<&str>, expect: Option<Duration>| {
            assert_eq!(
                time_limit(text.map(|t| t.parse().unwrap())),
                expect,
                "{text:?}"
            );
        };
        check(None, Some(Duration::from_secs(10)));
        check(Some("0"), Some(Duration::from_secs(10)));
        check(Some("0s"), Some(Duration::from_secs(10)));
        check(Some("30ms"), Some(Duration::from_millis(30)));
        check(Some("-1s"), None);
        check(Some("-1ns"), None);
    }

    #[test]
    fn memory_limits() {
        let gib4 = 4_294_967_296;
        for (mib, expect) in [
            (0, gib4),
            (1, 1_048_576),
            (4096, gib4),
            (4097, gib4),
            (i64::MAX, gib4),
            (-1, gib4),
        ] {
            assert_eq!(memory_bytes(mib), expect, "{mib}");
        }
    }
}
