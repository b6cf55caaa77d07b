//! Runs the target `redaction` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("redaction");
