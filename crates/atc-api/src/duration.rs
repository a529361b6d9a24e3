//! Durations as Go prints and reads them: `500ms`, `1m30s`, `1.5h`, `-1s`, `0`.
//!
//! They are what the custom resources and the command line of the existing tool take, so every text that
//! Go's `time.ParseDuration` accepts is accepted here, means the same, and prints as `Duration.String` would.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;
/// The units of Go's `time.ParseDuration` and their nanoseconds. Both micro signs (U+00B5, U+03BC) are known.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3_600 * SECOND),
];
/// What the API server checks before it stores a duration (RE2 and ECMAScript): the grammar, not the range.
const PATTERN: &str = r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";

/// A signed span of time in nanoseconds (at most about 292 years), written as a Go duration string.
///
/// ```
/// use atc_api::GoDuration;
/// let duration: GoDuration = "1m30s".parse()?;
/// assert_eq!(duration.positive(), Some(std::time::Duration::from_secs(90)));
/// assert_eq!(duration.to_string(), "1m30s");
/// # Ok::<(), atc_api::duration::ParseDurationError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GoDuration(i64);

impl GoDuration {
    /// No time at all; most fields read it as "use the default".
    pub const ZERO: Self = Self(0);

    /// A span of so many nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// The span in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// True for `0`, in whatever unit it was written.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// True below zero; fields with a limit read it as "no limit".
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The span, if it is longer than zero.
    pub fn positive(self) -> Option<Duration> {
        u64::try_from(self.0)
            .ok()
            .filter(|nanos| *nanos > 0)
            .map(Duration::from_nanos)
    }
}

impl From<Duration> for GoDuration {
    /// Spans over 292 years become 292 years.
    fn from(value: Duration) -> Self {
        Self(i64::try_from(value.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no duration: {why}; write it like \"500ms\" or \"1m30s\"")]
pub struct ParseDurationError {
    text: String,
    why: Why,
}

/// The reasons, apart from the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Why {
    #[error("it is empty")]
    Empty,
    #[error("a number is expected")]
    Number,
    #[error("a number lacks its unit (ns, us, ms, s, m or h)")]
    NoUnit,
    #[error("its unit is none of ns, us, ms, s, m and h")]
    Unit,
    #[error("it is out of range, which is about 292 years")]
    Range,
}

impl FromStr for GoDuration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        magnitude(unsigned)
            .and_then(|nanos| signed(negative, nanos))
            .map(Self)
            .map_err(|why| ParseDurationError {
                text: text.to_owned(),
                why,
            })
    }
}

/// The nanoseconds of a text without its sign.
fn magnitude(text: &str) -> Result<u64, Why> {
    if text == "0" {
        return Ok(0);
    }
    if text.is_empty() {
        return Err(Why::Empty);
    }
    let mut rest = text;
    let mut total = 0_u64;
    while !rest.is_empty() {
        let (nanos, after) = term(rest)?;
        total = total
            .checked_add(nanos)
            .filter(|sum| *sum <= 1 << 63)
            .ok_or(Why::Range)?;
        rest = after;
    }
    Ok(total)
}

/// One number with its unit at the beginning of the text, and what follows it.
fn term(text: &str) -> Result<(u64, &str), Why> {
    let (whole_digits, rest) = digits(text);
    let (fraction_digits, rest) = rest.strip_prefix('.').map_or(("", rest), digits);
    if whole_digits.is_empty() && fraction_digits.is_empty() {
        return Err(Why::Number);
    }
    let end = rest
        .find(|c: char| c == '.' || c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    if unit.is_empty() {
        return Err(Why::NoUnit);
    }
    let scale = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or(Why::Unit)?
        .1;
    let whole = match whole_digits {
        "" => 0,
        some => some.parse::<u64>().map_err(|_| Why::Range)?,
    };
    let nanos = whole.checked_mul(scale).ok_or(Why::Range)?;
    let nanos = nanos
        .checked_add(fraction(fraction_digits, scale))
        .ok_or(Why::Range)?;
    Ok((nanos, rest))
}

/// The ASCII digits at the beginning of the text, and what follows them.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    )
}

/// `0.<digits>` of a unit in whole nanoseconds, cut, not rounded. No unit has more than 3.6e12 nanoseconds, so 18
/// digits decide every one of them.
fn fraction(digits: &str, scale: u64) -> u64 {
    let significant = &digits[..digits.len().min(18)];
    let numerator = significant
        .bytes()
        .fold(0_u128, |sum, b| sum * 10 + u128::from(b - b'0'));
    let denominator = significant.bytes().fold(1_u128, |power, _| power * 10);
    u64::try_from(numerator * u128::from(scale) / denominator).unwrap_or(u64::MAX)
}

/// Adds the sign; one more nanosecond fits below zero than above.
fn signed(negative: bool, nanos: u64) -> Result<i64, Why> {
    match (negative, i64::try_from(nanos)) {
        (false, value) => value.map_err(|_| Why::Range),
        (true, Ok(value)) => Ok(-value),
        (true, Err(_)) => Ok(i64::MIN),
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => decimal(f, nanos, 1_000, "\u{b5}s"),
            1_000_000..SECOND => decimal(f, nanos, 1_000_000, "ms"),
            _ => {
                let (minutes, rest) = (nanos / (60 * SECOND), nanos % (60 * SECOND));
                if minutes >= 60 {
                    write!(f, "{}h", minutes / 60)?;
                }
                if minutes > 0 {
                    write!(f, "{}m", minutes % 60)?;
                }
                decimal(f, rest, SECOND, "s")
            }
        }
    }
}

/// `nanos` in a unit of `scale` (a power of ten) nanoseconds, without trailing zeros.
fn decimal(f: &mut fmt::Formatter<'_>, nanos: u64, scale: u64, unit: &str) -> fmt::Result {
    write!(f, "{}", nanos / scale)?;
    if !nanos.is_multiple_of(scale) {
        let width = scale.ilog10() as usize;
        let part = format!("{:0width$}", nanos % scale);
        write!(f, ".{}", part.trim_end_matches('0'))?;
    }
    f.write_str(unit)
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = GoDuration;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration like \"500ms\" or \"1m30s\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<GoDuration, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl JsonSchema for GoDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "GoDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": PATTERN })
    }
}

#[cfg(test)]
mod tests;
