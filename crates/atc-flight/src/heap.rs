//! The heap after a compile.

/// Gives what the compiler has freed back to the system: 60 to 100 MB after a Go flight, which glibc would keep.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "glibc's function has no safe wrapper, and its effect belongs to the keeping of compiled modules"
)]
pub(crate) fn give_back() {
    // SAFETY: malloc_trim takes no pointer and may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other C libraries give back by themselves, or have no way to be asked.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back() {}
