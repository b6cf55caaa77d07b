#![no_main]
fuzz::target!("charsets");
