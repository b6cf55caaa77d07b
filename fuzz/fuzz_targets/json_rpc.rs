#![no_main]
fuzz::target!("json_rpc");
