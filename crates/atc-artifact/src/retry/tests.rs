//! Tables: what is tried again, and when.

use super::*;

fn status(status: u16) -> ArtifactError {
    ArtifactError::Status {
        url: "http://h/m".to_owned(),
        status,
    }
}

#[test]
fn only_trouble_that_passes_is_tried_again() {
    for (code, again) in [
        (429, true),
        (500, true),
        (502, true),
        (503, true),
        (504, true),
        (408, true),
        (400, false),
        (401, false),
        (403, false),
        (404, false),
        (501, false),
    ] {
        let left = Duration::from_mins(1);
        let pause = pause(&status(code).into(), 1, 3, left, 0.0);
        assert_eq!(pause.is_some(), again, "{code}");
    }
    let slow = ArtifactError::Timeout {
        location: "x".to_owned(),
        limit: Duration::from_secs(1),
    };
    assert_eq!(pause(&slow.into(), 1, 3, Duration::from_mins(1), 0.0), None);
}

#[test]
fn pauses_grow_vary_and_end() {
    let busy = |after: Option<u64>| Failure {
        error: status(503),
        after: after.map(Duration::from_secs),
    };
    let ms = |n| Some(Duration::from_millis(n));
    let minute = Duration::from_mins(1);
    for (after, nth, random, expect) in [
        (None, 1, 0.0, ms(250)),
        (None, 2, 0.0, ms(1000)),
        (None, 2, 1.0, ms(750)),
        (None, 3, 0.0, None),
        (Some(0), 1, 0.0, ms(250)),
        (Some(7), 1, 0.0, ms(7000)),
        (Some(59), 1, 0.0, ms(59_000)),
        (Some(60), 1, 0.0, None),
        (Some(u64::MAX), 1, 0.0, None),
    ] {
        assert_eq!(
            pause(&busy(after), nth, 3, minute, random),
            expect,
            "{after:?} {nth}"
        );
    }
    assert_eq!(
        pause(&busy(None), u32::MAX - 1, u32::MAX, Duration::ZERO, 0.0),
        None
    );
}

#[test]
fn what_the_server_asks_for_is_read() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
    for (text, seconds) in [
        ("1", Some(1)),
        (" 120 ", Some(120)),
        ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
        ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
        ("-1", None),
        ("soon", None),
        ("", None),
    ] {
        assert_eq!(
            retry_after(text, now),
            seconds.map(Duration::from_secs),
            "{text}"
        );
    }
}
