//! Time for a frame of sixty samples, without a harness.
//!
//! Prints the median and the 99th percentile of batches of a thousand frames;
//! means were dropped because the boxes' clock governor makes them useless.

use std::hint::black_box;
use std::time::Instant;

use thole::crc::crc16;
use thole::frame::decode_into;

fn sample_frame() -> Vec<u8> {
    let mut out = b"TG\x02\x00\x11\x00\x01\x00\x00\x00\x00\x00\x00\x00\x3c\x3c".to_vec();
    out.extend_from_slice(&1200i16.to_le_bytes());
    for i in 0..59u8 {
        out.push((i % 7) * 2);
    }
    let crc = crc16(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

fn main() {
    let frame = sample_frame();
    let mut heights = [0i32; 255];
    let mut batches: Vec<f64> = (0..400)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..1000 {
                black_box(decode_into(black_box(&frame), &mut heights)).expect("a good frame");
            }
            begin.elapsed().as_secs_f64() * 1e6 / 1000.0
        })
        .collect();
    batches.sort_by(f64::total_cmp);
    println!("median {:.2} us, p99 {:.2} us", batches[200], batches[395]);
}
