#![no_main]
fuzz::target!("reader_frames");
