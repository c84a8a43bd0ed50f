#![no_main]

// The client library panics at some answers, and who asks it catches that: only what is not caught counts.
libfuzzer_sys::fuzz_target!(init: drop(std::panic::take_hook()), |input: &[u8]| vocative_fuzz::run("model_answer", input));
