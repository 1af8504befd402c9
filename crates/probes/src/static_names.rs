//! Look-ups of names that a static program must not do.
//!
//! The C library does them by modules of the host (NSS), which it loads while it runs. Into a static
//! program it loads those of another C library, and crashes (rust-lang/rust#100711). untax looks names up itself
//! (`untax_host::lookup`) and reads `/etc/passwd` itself, so here these functions say that there is no answer. With
//! them defined, the linker leaves the C library's own out; `scripts/dist.sh` checks that.

use libc::{EAI_FAIL, ENOENT, addrinfo, c_char, c_int, passwd, size_t, uid_t};

/// No address has a name: a caller gets an error.
#[expect(unsafe_code, reason = "takes the place of the C library's function")]
#[unsafe(no_mangle)]
extern "C" fn getaddrinfo(
    _node: *const c_char,
    _service: *const c_char,
    _hints: *const addrinfo,
    _found: *mut *mut addrinfo,
) -> c_int {
    EAI_FAIL
}

/// Nothing was found, so there is nothing to free.
#[expect(unsafe_code, reason = "takes the place of the C library's function")]
#[unsafe(no_mangle)]
extern "C" fn freeaddrinfo(_found: *mut addrinfo) {}

/// No user has a home directory but the one that `HOME` names.
#[expect(unsafe_code, reason = "takes the place of the C library's function")]
#[unsafe(no_mangle)]
extern "C" fn getpwuid_r(
    _uid: uid_t,
    _entry: *mut passwd,
    _buffer: *mut c_char,
    _length: size_t,
    _found: *mut *mut passwd,
) -> c_int {
    ENOENT
}
