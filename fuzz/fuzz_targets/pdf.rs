#![no_main]
fuzz::target!("pdf");
