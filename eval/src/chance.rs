// SPDX-License-Identifier: PostgreSQL

//! Chance that can be repeated.

use std::time::Duration;

/// Numbers that look random and are the same in each run (xorshift; Marsaglia 2003, section 3).
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    /// A row of numbers of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number from 0 to below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound.max(1)
    }

    /// Sleeps for a time between two bounds in milliseconds.
    pub fn sleep(&mut self, from: u64, to: u64) {
        std::thread::sleep(Duration::from_millis(from + self.below(to - from)));
    }

    /// One of some things.
    pub fn pick<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.below(things.len() as u64) as usize]
    }
}
