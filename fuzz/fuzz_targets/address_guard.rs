#![no_main]
fuzz::target!("address_guard");
