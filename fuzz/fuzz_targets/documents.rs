//! Runs the target `documents` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("documents");
