#![no_main]
fuzz::target!("client_config");
