#![no_main]
fuzz::target!("sse");
