//! Expressions made at random, on every native backend that is there; `web.rs` has those of the browser. `LAPIDARY_TRIALS` is how many are made,
//! 60 if it is not set.
#![cfg(not(target_arch = "wasm32"))]

mod devices;
#[path = "trials/mod.rs"]
mod trials;

use devices::everywhere;
use pollster::block_on;

#[test]
fn expressions_are_what_their_steps_are() {
    let count = std::env::var("LAPIDARY_TRIALS").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    let by_steps = block_on(trials::by_steps(count));
    everywhere(|gpu, _| block_on(trials::check(gpu, &by_steps)));
}
