//! Asks the processor for memory before it is needed, so that cache misses overlap with work instead of following each other.

/// Bytes that one request loads.
const LINE: usize = 64;

/// Starts to load the first `lines` cache lines of a value, or all of it if it has fewer. It changes nothing that a program can see.
#[inline(always)]
#[allow(unsafe_code)]
pub fn prefetch<T>(value: &T, lines: usize) {
    let start = core::ptr::from_ref(value).cast::<i8>();
    for line in 0..lines.min(size_of::<T>().div_ceil(LINE)) {
        let address = start.wrapping_add(line * LINE);
        // SAFETY: PREFETCHT0 is a hint. It neither reads nor writes as far as the program can tell, and no address makes it fault (Intel
        // SDM volume 2B). The addresses lie within `value`, and `wrapping_add` makes no claim about them anyway.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address);
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = address;
    }
}
