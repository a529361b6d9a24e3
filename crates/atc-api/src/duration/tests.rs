use super::*;
use proptest::prelude::*;

/// Parses; prints as Go would; the printed text means the same again.
fn check(text: &str, nanos: i64, printed: &str) {
    let duration: GoDuration = text.parse().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(duration.as_nanos(), nanos, "{text}");
    assert_eq!(duration.to_string(), printed, "{text}");
    assert_eq!(printed.parse(), Ok(duration), "{text}");
}

#[test]
fn parses_and_prints_as_go() {
    check("0", 0, "0s");
    check("-0", 0, "0s");
    check("+0", 0, "0s");
    check("0h", 0, "0s");
    check("1ns", 1, "1ns");
    check("999ns", 999, "999ns");
    check("1100ns", 1_100, "1.1µs");
    check("11us", 11_000, "11µs");
    check("12µs", 12_000, "12µs");
    check("12μs10ns", 12_010, "12.01µs");
    check("500ms", 500_000_000, "500ms");
    check("2200us", 2_200_000, "2.2ms");
    check("3.3s", 3_300_000_000, "3.3s");
    check("5s", 5_000_000_000, "5s");
    check("+5s", 5_000_000_000, "5s");
    check("-1s", -1_000_000_000, "-1s");
    check("-1.5h", -5_400_000_000_000, "-1h30m0s");
    check("1m30s", 90_000_000_000, "1m30s");
    check("90s", 90_000_000_000, "1m30s");
    check("1.5h", 5_400_000_000_000, "1h30m0s");
    check("4m5.001s", 245_001_000_000, "4m5.001s");
    check("5h6m7.001s", 18_367_001_000_000, "5h6m7.001s");
    check("8m0.000000001s", 480_000_000_001, "8m0.000000001s");
    check("10.5s4m", 250_500_000_000, "4m10.5s");
    check("-2m3.4s", -123_400_000_000, "-2m3.4s");
    check("39h9m14.425s", 140_954_425_000_000, "39h9m14.425s");
    check("52763797000ns", 52_763_797_000, "52.763797s");
    check(".5s", 500_000_000, "500ms");
    check("1.s", 1_000_000_000, "1s");
    check("00001s", 1_000_000_000, "1s");
    check(
        "0.3333333333333333333h",
        1_200_000_000_000 - 1,
        "19m59.999999999s",
    );
    check("0.100000000000000000000h", 360_000_000_000, "6m0s");
    check(
        "9223372036854775807ns",
        i64::MAX,
        "2562047h47m16.854775807s",
    );
    check(
        "-9223372036854775808ns",
        i64::MIN,
        "-2562047h47m16.854775808s",
    );
    check(
        "9223372036854775.807us",
        i64::MAX,
        "2562047h47m16.854775807s",
    );
}

#[test]
fn refuses_as_go() {
    let check = |text: &str, why: &str| {
        let error = text.parse::<GoDuration>().unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{text:?} is no duration: ")) && error.contains(why),
            "{error}"
        );
    };
    check("", "it is empty");
    check("-", "it is empty");
    check("3", "lacks its unit");
    check("00", "lacks its unit");
    check("s", "a number is expected");
    check(".", "a number is expected");
    check("-.", "a number is expected");
    check(".s", "a number is expected");
    check("+.s", "a number is expected");
    check("--1s", "a number is expected");
    check("1 s", "its unit is none of");
    check("1d", "its unit is none of");
    check("1S", "its unit is none of");
    check("1s ", "its unit is none of");
    check("1\u{221e}", "its unit is none of");
    check("1e3s", "its unit is none of");
    check("٣s", "a number is expected");
    check("9223372036854775808ns", "out of range");
    check("-9223372036854775809ns", "out of range");
    check("9223372036854ms775us808ns", "out of range");
    check("99999999999999999999999h", "out of range");
    check("3000000h", "out of range");
}

#[test]
fn wire() {
    assert_eq!(
        serde_json::from_str::<GoDuration>("\"1m\"").unwrap(),
        GoDuration::from_nanos(60_000_000_000)
    );
    assert_eq!(
        serde_json::to_string(&GoDuration::from(Duration::from_millis(1_500))).unwrap(),
        "\"1.5s\""
    );
    for wrong in ["5", "\"5\"", "null", "{}"] {
        assert!(
            serde_json::from_str::<GoDuration>(wrong).is_err(),
            "{wrong}"
        );
    }
    assert_eq!(GoDuration::from(Duration::MAX).as_nanos(), i64::MAX);
}

#[test]
fn positive_spans() {
    for (nanos, expect) in [
        (1, Some(Duration::from_nanos(1))),
        (0, None),
        (-1, None),
        (i64::MIN, None),
    ] {
        assert_eq!(GoDuration::from_nanos(nanos).positive(), expect);
    }
}

proptest! {
    #[test]
    fn printing_then_parsing_is_identity(nanos: i64) {
        let duration = GoDuration::from_nanos(nanos);
        prop_assert_eq!(duration.to_string().parse(), Ok(duration));
    }

    #[test]
    fn no_text_panics(text in "[-+]?([0-9.]{0,25}(ns|us|µs|ms|s|m|h|x)?){0,4}") {
        if let Ok(duration) = text.parse::<GoDuration>() {
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }
    }

    #[test]
    fn any_text_is_survived(text: String) {
        let _ = text.parse::<GoDuration>();
    }
}
