#![no_main]
fuzz::target!("devtools");
