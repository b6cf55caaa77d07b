//! Runs the target `reader_frames` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("reader_frames");
