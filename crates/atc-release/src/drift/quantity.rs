//! Kubernetes quantities, as far as "are these two the same amount" goes: `1000m` is `1`, `512.0Mi` is `512Mi`.

/// An amount in its only form: the digits do not end in a zero.
#[derive(Debug, PartialEq, Eq)]
struct Amount {
    negative: bool,
    digits: u128,
    /// Power of ten that the digits are to be multiplied with.
    power: i32,
}

/// Largest exponent that is read, either way. The API server itself keeps amounts below 2^63 and above a billionth.
const MAX_EXPONENT: i32 = 40;

/// Whether two texts are quantities of the same amount. What is no quantity, or has more digits than any API server
/// takes, is the same as nothing.
pub(super) fn same(one: &str, two: &str) -> bool {
    parse(one).is_some_and(|one| parse(two).is_some_and(|two| one == two))
}

fn parse(text: &str) -> Option<Amount> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let mut digits: u128 = format!("0{whole}{fraction}").parse().ok()?;
    let (ten, two) = exponents(suffix)?;
    digits = digits.checked_mul(1 << two)?;
    let mut power = ten - i32::try_from(fraction.len()).ok()?;
    if digits == 0 {
        return Some(Amount {
            negative: false,
            digits,
            power: 0,
        });
    }
    while digits.is_multiple_of(10) {
        digits /= 10;
        power += 1;
    }
    Some(Amount {
        negative,
        digits,
        power,
    })
}

/// The powers of ten and of two that a suffix stands for.
fn exponents(suffix: &str) -> Option<(i32, u32)> {
    Some(match suffix {
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "" => (0, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        other => {
            let exponent = other.strip_prefix(['e', 'E'])?;
            let exponent: i32 = exponent.parse().ok()?;
            (-MAX_EXPONENT..=MAX_EXPONENT)
                .contains(&exponent)
                .then_some((exponent, 0))?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_amount() {
        for (one, two) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1000M", "1G"),
            ("512.0Mi", "512Mi"),
            ("1024Mi", "1Gi"),
            ("1Ki", "1024"),
            ("1e3", "1k"),
            ("1E3", "1000"),
            ("1E", "1000P"),
            ("+1", "1.0"),
            ("0", "0Gi"),
            ("-0", "0"),
            (".5", "500m"),
            ("5.", "5"),
            ("100u", "0.1m"),
        ] {
            assert!(same(one, two) && same(two, one), "{one} {two}");
        }
    }

    #[test]
    fn another_amount_or_none() {
        for (one, two) in [
            ("1", "2"),
            ("1", "-1"),
            ("1M", "1Mi"),
            ("1", "1x"),
            ("x", "x"),
            ("", ""),
            (".", "."),
            ("1e999999999999", "1e999999999999"),
            ("1..2", "1..2"),
            ("1 ", "1"),
            ("99999999999999999999999999999999999999999", "1"),
        ] {
            assert!(!same(one, two), "{one:?} {two:?}");
        }
    }
}
