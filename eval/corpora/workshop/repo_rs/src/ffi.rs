//! The C interface. Every function catches panics and checks its pointers.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::slice;

use crate::fit;
use crate::frame::decode_into;
use crate::step::StepDetector;
use crate::{ABI_MAJOR, ABI_MINOR};

/// Code for a panic inside of the library; it is always a bug.
pub const CODE_PANIC: i32 = -99;

/// Code for a null pointer.
pub const CODE_NULL: i32 = -98;

/// Head of a frame as C sees it.
#[repr(C)]
pub struct CFrame {
    station_id: u16,
    flags: u8,
    interval_s: u8,
    sequence: u32,
    logged_at: i64,
    count: u32,
}

fn guarded(body: impl FnOnce() -> i32) -> i32 {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(CODE_PANIC)
}

/// Version of the interface: major part in the upper 16 bits.
#[no_mangle]
pub extern "C" fn thole_abi_version() -> u32 {
    ABI_MAJOR << 16 | ABI_MINOR
}

/// Decodes a frame; `heights` must have room for 255 values.
///
/// # Safety
///
/// `data` must point to `len` bytes, `head` to a `CFrame`, `heights` to 255 values.
#[no_mangle]
pub unsafe extern "C" fn thole_decode(data: *const u8, len: usize, head: *mut CFrame, heights: *mut i32) -> i32 {
    if data.is_null() || head.is_null() || heights.is_null() {
        return CODE_NULL;
    }
    guarded(|| {
        let data = slice::from_raw_parts(data, len);
        let heights = slice::from_raw_parts_mut(heights, 255);
        match decode_into(data, heights) {
            Ok(found) => {
                *head = CFrame {
                    station_id: found.station_id,
                    flags: found.flags,
                    interval_s: found.interval_s,
                    sequence: found.sequence,
                    logged_at: found.logged_at,
                    count: found.count,
                };
                0
            }
            Err(error) => error.code(),
        }
    })
}

/// Index at which a level shift began, or -1 if there is none.
///
/// # Safety
///
/// `residuals` must point to `len` values.
#[no_mangle]
pub unsafe extern "C" fn thole_step_scan(residuals: *const f64, len: usize, drift: f64, limit: f64) -> i32 {
    if residuals.is_null() {
        return CODE_NULL;
    }
    guarded(|| {
        let residuals = slice::from_raw_parts(residuals, len);
        let detector = StepDetector { drift, limit, ..StepDetector::default() };
        detector.scan(residuals).map_or(-1, |shift| shift.start as i32)
    })
}

/// Fits a mean and `m` speeds; `out` gets the mean and then cosine and sine parts.
///
/// # Safety
///
/// `hours` and `heights` must point to `n` values, `speeds` to `m`, `out` to `1 + 2m`.
#[no_mangle]
pub unsafe extern "C" fn thole_fit(
    hours: *const f64,
    heights: *const f64,
    n: usize,
    speeds: *const f64,
    m: usize,
    out: *mut f64,
) -> i32 {
    if hours.is_null() || heights.is_null() || speeds.is_null() || out.is_null() {
        return CODE_NULL;
    }
    guarded(|| {
        let hours = slice::from_raw_parts(hours, n);
        let heights = slice::from_raw_parts(heights, n);
        let speeds = slice::from_raw_parts(speeds, m);
        let out = slice::from_raw_parts_mut(out, 1 + 2 * m);
        match fit::fit(hours, heights, speeds) {
            Ok(found) => {
                out[0] = found.mean;
                for (i, part) in found.parts.iter().enumerate() {
                    out[1 + 2 * i] = part.cosine;
                    out[2 + 2 * i] = part.sine;
                }
                0
            }
            Err(error) => error.code(),
        }
    })
}
