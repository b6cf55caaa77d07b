//! PDF. The library below may panic, which is an answer; the stack and the memory that it takes are bounded by the reader
//! process of the product, and by the limits of the fuzzer here.

use super::documents::check;

pub fn run(data: &[u8]) {
    check(matsu_reader::read(data, "application/pdf"));
}
