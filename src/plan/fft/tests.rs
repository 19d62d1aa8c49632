//! What every plan of a transform keeps to.

use super::*;
use crate::plan::Params;

#[test]
fn steps_are_few_and_of_the_length() {
    for (n, count) in [(1, 1), (2, 1), (1024, 1), (2048, 2), (1 << 20, 2), (1 << 21, 3), (5040, 2), (823_543, 3)] {
        let steps = factors(n, ELEMENTS).unwrap();
        assert_eq!((steps.iter().product::<u32>(), steps.len()), (n, count), "{steps:?}");
        for step in steps {
            assert_eq!(eights(step).iter().product::<u32>(), step);
            assert_eq!(balanced(step).iter().product::<u32>(), step);
        }
    }
    assert_eq!(factors(11, ELEMENTS), None);
    assert_eq!((balanced(1024), balanced(512), balanced(1)), (vec![16, 8, 8], vec![8, 8, 8], vec![1]));
}

#[test]
fn no_step_reads_where_it_writes() {
    for length in [11, 1 << 9, 1 << 12, 1 << 21, 2011, 1_000_003] {
        let problem = Problem { outer: 2, length, inner: 3, input: length, inverse: true, reads: Form::Complex, gives: Form::Complex };
        let plan = compute(&problem, &Caps::UNLIMITED).unwrap();
        // A region less than there are steps, of those that are not made by a chirp.
        let regions = factors(length, ELEMENTS).map(|steps| 2.min(steps.len() as u64 - 1));
        assert!(regions.is_none_or(|regions| plan.scratch_bytes == regions * 8 * problem.lines() * u64::from(length)), "{plan}");
        let mut last = None;
        for Dispatch { kernel, params, .. } in &plan.dispatches {
            let Params::Words(words) = params else { panic!("of words") };
            let [from, to] = [10, 11].map(|word| words.get()[word]);
            let (reads, writes) = (kernel.constant("SOURCE_SCRATCH") > 0, kernel.constant("TARGET_SCRATCH") > 0);
            assert!(!reads || !writes || from != to, "{plan}");
            assert!(!writes || u64::from(to) * 8 < plan.scratch_bytes, "{plan}");
            // What is read was written last, but for the chirp and its spectrum.
            assert!(!reads || last == Some(from), "{plan}");
            last = writes.then_some(to);
        }
    }
}
