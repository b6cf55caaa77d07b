#![no_main]
fuzz::target!("robots");
