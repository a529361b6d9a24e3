//! Every way of packing, every way of breaking.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

use super::*;

const LIMIT: u64 = 1 << 20;

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Bytes that do not compress to nothing, so that every cut hits something.
fn sample(len: u32) -> Vec<u8> {
    (0..len)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect()
}

#[test]
fn what_is_not_gzip_stays_as_it_is() {
    for data in [&b""[..], b"\0asm\x01\0\0\0", b"\x1f", b"<html>"] {
        assert_eq!(unpack(data.to_vec(), LIMIT, "x").unwrap(), data);
    }
}

#[test]
fn gzip_once_twice_and_in_members_is_unpacked_r127() {
    let data = sample(500);
    let (front, back) = data.split_at(777);
    let members = [gzip(front), gzip(back), gzip(b"")].concat();
    for packed in [
        gzip(&data),
        gzip(&gzip(&data)),
        members.clone(),
        gzip(&members),
    ] {
        assert_eq!(unpack(packed, LIMIT, "x").unwrap(), data);
    }
}

#[test]
fn three_times_is_too_often() {
    let packed = gzip(&gzip(&gzip(b"abc")));
    assert!(matches!(
        unpack(packed, LIMIT, "x"),
        Err(ArtifactError::Nested { limit: 2, .. })
    ));
}

#[test]
fn every_cut_is_an_error_r127() {
    let (a, b) = (gzip(&sample(40)), gzip(&sample(30)));
    let whole = [a.clone(), b].concat();
    for at in 2..whole.len() {
        let result = unpack(whole[..at].to_vec(), LIMIT, "x");
        // Cut exactly between two members it is a whole stream; nobody could tell.
        assert_eq!(
            result.is_ok(),
            at == a.len(),
            "cut at {at} of {}",
            whole.len()
        );
    }
}

#[test]
fn flipped_sums_and_trailing_bytes_are_errors() {
    let good = gzip(&sample(100));
    for (at, bit) in [(good.len() - 1, 1), (good.len() - 5, 8), (20, 64)] {
        let mut bad = good.clone();
        bad[at] ^= bit;
        assert!(unpack(bad, LIMIT, "x").is_err(), "byte {at}");
    }
    assert!(matches!(
        unpack([good, b"junk".to_vec()].concat(), LIMIT, "x"),
        Err(ArtifactError::Gzip { .. })
    ));
}

#[test]
fn the_bound_is_exact_and_stops_bombs() {
    let data = vec![0; 100_000];
    assert_eq!(unpack(gzip(&data), 100_000, "x").unwrap().len(), 100_000);
    let error = unpack(gzip(&data), 99_999, "bomb.gz").unwrap_err();
    assert_eq!(
        error.to_string(),
        "'bomb.gz' is larger than 99999 bytes when unpacked"
    );
    let bomb = gzip(&vec![0; 64 << 20]);
    assert!(matches!(
        unpack(bomb, LIMIT, "x"),
        Err(ArtifactError::TooLarge { unpacked: true, .. })
    ));
}
