//! Blocks and frames come back as they went in.

use thole::block::{self, BLOCK_SAMPLES};
use thole::frame::{decode_into, resync};
use thole::{TholeError, NO_ECHO};

fn tide(samples: usize) -> Vec<i32> {
    (0..samples).map(|i| (2500.0 + 1800.0 * (i as f64 * 0.00843).sin()) as i32).collect()
}

#[test]
fn calm_day_is_small() {
    let heights = tide(BLOCK_SAMPLES);
    let packed = block::encode(&heights).unwrap();
    assert_eq!(block::decode(&packed).unwrap(), heights);
    assert!(packed.len() < BLOCK_SAMPLES / 2, "{} bytes", packed.len());
}

#[test]
fn holes_at_both_ends_and_in_between() {
    let mut heights = tide(300);
    heights[..5].fill(NO_ECHO);
    heights[100..160].fill(NO_ECHO);
    heights[299] = NO_ECHO;
    assert_eq!(block::decode(&block::encode(&heights).unwrap()).unwrap(), heights);
}

#[test]
fn only_holes() {
    let heights = vec![NO_ECHO; 40];
    let packed = block::encode(&heights).unwrap();
    assert_eq!(packed, [40, 1, 0, 40]);
    assert_eq!(block::decode(&packed).unwrap(), heights);
}

#[test]
fn extreme_heights() {
    let heights = vec![i32::MAX, i32::MIN + 1, 0, i32::MAX];
    assert_eq!(block::decode(&block::encode(&heights).unwrap()).unwrap(), heights);
}

#[test]
fn hole_beyond_the_end_is_an_error() {
    assert_eq!(block::decode(&[10, 1, 8, 5]), Err(TholeError::BlockIndex));
}

#[test]
fn one_sample_too_many() {
    let heights = vec![0; BLOCK_SAMPLES + 1];
    assert_eq!(block::encode(&heights), Err(TholeError::TooMany(BLOCK_SAMPLES + 1)));
}

#[test]
fn resync_finds_the_next_magic() {
    assert_eq!(resync(b"xxTGTG\x02rest"), 4);
    assert_eq!(resync(b"nothing"), 7);
}

#[test]
fn short_input_is_truncated_and_not_a_panic() {
    let mut heights = [0; 255];
    for len in 0..20 {
        assert!(matches!(decode_into(&vec![b'T'; len], &mut heights), Err(TholeError::Truncated { .. })));
    }
}
