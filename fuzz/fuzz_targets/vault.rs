#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| runvault_fuzz::run("vault", data));
