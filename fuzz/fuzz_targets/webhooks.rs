//! Runs the target `webhooks` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("webhooks");
