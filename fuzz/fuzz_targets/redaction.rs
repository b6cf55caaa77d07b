#![no_main]
fuzz::target!("redaction");
