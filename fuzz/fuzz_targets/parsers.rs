//! Every parser of `/proc`, `/sys` and control groups, fed with the same bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| untax_host::fuzz_parsers(bytes));
