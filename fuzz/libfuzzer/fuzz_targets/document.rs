#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| vocative_fuzz::run("document", input));
