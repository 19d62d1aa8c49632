//! What tests may not pass over; the crate's own tests have it too.

use lapidary::BackendId;

/// Whether what is missing, a backend or what else has such a name, is a failure.
pub fn is_required(name: &str) -> bool {
    let required = std::env::var("LAPIDARY_REQUIRE").unwrap_or_default();
    let mut names = required.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.any(|other| {
        // What is mistyped would require nothing.
        let is_known = ["nvrtc", "onnx"].contains(&other) || BackendId::ALL.iter().any(|backend| backend.name() == other);
        assert!(is_known, "LAPIDARY_REQUIRE has {other:?}, which is no backend");
        other == name
    })
}
