use proptest::prelude::*;

use super::*;

fn check(packed: u64, size: usize, expect: Option<(usize, usize)>) {
    assert_eq!(
        Packed::from(packed)
            .within("it", size)
            .ok()
            .map(|range| (range.start, range.end)),
        expect,
        "{packed:#x} in {size}"
    );
}

#[test]
fn ranges_within_memory() {
    check(0, 0, Some((0, 0)));
    check(0x10_0000_0004, 20, Some((16, 20)));
    check(0x10_0000_0005, 20, None);
    check(0x14_0000_0000, 20, Some((20, 20)));
    check(0x15_0000_0000, 20, None);
    check(u64::MAX, 1 << 32, None);
    check(0xffff_ffff_0000_0001, 1 << 32, Some((0xffff_ffff, 1 << 32)));
}

#[test]
fn length_zero_is_empty_at_any_address() {
    for address in [0, 1, 0x55, u64::from(u32::MAX)] {
        assert_eq!(Packed::from(address << 32).read("it", &[]), Ok(Vec::new()));
    }
}

proptest! {
    #[test]
    fn packing_is_reversible(packed: u64) {
        prop_assert_eq!(u64::from(Packed::from(packed)), packed);
    }

    #[test]
    fn reading_never_panics(packed: u64, memory in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _ = Packed::from(packed).read("it", &memory);
        let near = packed & 0x7f_0000_007f;
        if let Ok(read) = Packed::from(near).read("it", &memory) {
            let (start, length) = ((near >> 32) as usize, (near & 0xff) as usize);
            prop_assert_eq!(&read[..], memory.get(start..start + length).unwrap_or_default());
        }
    }
}
