//! Durations as the existing tool prints them: `30ms`, `1s`, `1m30s`, `1.5s`.

use std::fmt;
use std::time::Duration;

/// Prints a duration the way Go does, rounded to whole milliseconds when it has any.
pub(crate) struct GoDuration(pub(crate) Duration);

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        if micros < 1_000 {
            return if micros == 0 {
                f.write_str("0s")
            } else {
                write!(f, "{micros}µs")
            };
        }
        let millis = (micros + 500) / 1_000;
        if millis < 1_000 {
            return write!(f, "{millis}ms");
        }
        let (hours, minutes, seconds) = (
            millis / 3_600_000,
            millis / 60_000 % 60,
            millis / 1_000 % 60,
        );
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        write!(f, "{seconds}")?;
        let part = millis % 1_000;
        if part > 0 {
            let digits = format!("{part:03}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str("s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_like_go() {
        for (micros, expect) in [
            (0, "0s"),
            (250, "250µs"),
            (1_000, "1ms"),
            (10_000, "10ms"),
            (30_400, "30ms"),
            (999_600, "1s"),
            (1_000_000, "1s"),
            (1_500_000, "1.5s"),
            (1_050_000, "1.05s"),
            (10_000_000, "10s"),
            (60_000_000, "1m0s"),
            (90_000_000, "1m30s"),
            (3_600_000_000, "1h0m0s"),
            (5_025_500_000, "1h23m45.5s"),
        ] {
            assert_eq!(
                GoDuration(Duration::from_micros(micros)).to_string(),
                expect
            );
        }
        assert!(!GoDuration(Duration::MAX).to_string().is_empty());
    }
}
