#![no_main]
fuzz::target!("html");
