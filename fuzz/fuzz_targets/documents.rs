#![no_main]
fuzz::target!("documents");
