//! Numbers and packing, as the ABI says.

use super::*;

#[test]
fn buffers_are_packed_address_first() {
    assert_eq!(pack(0x1234, 7), 0x0000_1234_0000_0007);
    assert_eq!(pack(u32::MAX, u32::MAX), u64::MAX);
    assert_eq!(
        (pack(0, 0), address(pack(0x8000_0000, 9))),
        (0, 0x8000_0000)
    );
}

#[test]
fn unknown_states_are_errors() {
    for (number, state) in [
        (0, State::Ok),
        (1, State::FeatureNotGranted),
        (2, State::Error),
        (3, State::NotFound),
        (4, State::Unauthenticated),
        (5, State::Forbidden),
        (6, State::Error),
        (OUTSIDE, State::OutsideHost),
    ] {
        assert_eq!(State::from(number), state);
    }
}
