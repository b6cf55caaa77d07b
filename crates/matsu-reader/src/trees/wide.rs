//! Eight rows in one instruction instead of four, where the processor can.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "the compiler cannot know what the processor has"))]

use super::{LANES, Trees};

pub fn as_wide_as_possible(trees: &Trees, columns: &[[f32; LANES]]) -> [f32; LANES] {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, which is all that the function asks for.
        return unsafe { with_avx2(trees, columns) };
    }
    trees.odds(columns)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(trees: &Trees, columns: &[[f32; LANES]]) -> [f32; LANES] {
    trees.odds(columns)
}
