#![no_main]
fuzz::target!("cookies");
