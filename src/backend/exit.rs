//! What is done when the process ends.

/// Has something done then, before what the libraries that are loaded by now do: the last who asks is the first. Nothing is done where the
/// system stops all threads before.
pub(crate) fn at_exit(act: extern "C" fn()) {
    #[cfg(unix)]
    {
        unsafe extern "C" {
            fn atexit(act: extern "C" fn()) -> std::ffi::c_int;
        }
        // SAFETY: the function is there as long as the code that calls it, and unwinds nowhere. If there is no room for it, it is not called.
        unsafe { atexit(act) };
    }
    #[cfg(not(unix))]
    let _ = act;
}
