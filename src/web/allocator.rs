//! The npm package's allocator. It keeps few and small objects, for which the standard library's is several times too long.

#[global_allocator]
static ALLOCATOR: rlsf::GlobalTlsf<Brief> = rlsf::GlobalTlsf::new();

/// Without code for growing an allocation in place: it is copied instead.
struct Brief;

impl rlsf::GlobalTlsfOptions for Brief {
    const ENABLE_REALLOCATION: bool = false;
}
