#![no_main]
fuzz::target!("relay_preamble");
