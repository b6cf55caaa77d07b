#![no_main]
fuzz::target!("provider_formats");
