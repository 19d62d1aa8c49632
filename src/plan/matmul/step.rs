//! A launch that computes sums, and where they go: into the result, or into parts that another launch adds up or rounds.

use super::tile::scratch_bytes;
use super::{Params, vec4};
use crate::dtype::DType;
use crate::kernels::{Kernel, KernelId};
use crate::plan::{Binding, Dispatch, Plan, Slot};

/// Invocations in a workgroup that adds up parts.
pub(super) const SUM_THREADS: u32 = 64;

/// Workgroups that round sums, of which each invocation takes as many as there are: enough for large GPUs.
const ROUND_WORKGROUPS: u32 = 4096;

/// A launch that computes sums, before it is known where they go.
pub(super) struct Step {
    /// What makes its operands, in so many bytes at the start of the scratch. Its sums are whole then.
    pub(super) before: Vec<Dispatch>,
    pub(super) before_bytes: u64,
    pub(super) kernel: Kernel,
    pub(super) params: Params,
    pub(super) operands: [Binding; 2],
    /// Workgroups in x and y.
    pub(super) grid: [u32; 2],
    /// Into how many parts k is split.
    pub(super) parts: u32,
    /// Steps of k that the kernel takes at once: only the last part has an edge.
    pub(super) k_step: u32,
}

/// Where the sums of a launch go.
pub(super) struct End {
    pub(super) out: Binding,
    /// C and the bias.
    pub(super) added: [Option<Binding>; 2],
    /// The bias goes on from element to element, or there is only one.
    pub(super) bias_step: u32,
    /// Or it is of rows: all elements of a row get the same.
    pub(super) bias_rows: bool,
    /// What the result's elements are.
    pub(super) dtype: DType,
    /// Whether these are the first terms of the sums, and whether they are the last.
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

impl Step {
    /// Adds the launch, and where sums wait for others, or for being rounded, a second one that adds the parts up.
    pub(super) fn add_to(self, plan: &mut Plan, end: &End) {
        let Self { before, before_bytes, mut kernel, params, operands: [a, b], grid: [x, y], mut parts, k_step } = self;
        plan.dispatches.extend(before);
        plan.scratch_bytes = plan.scratch_bytes.max(before_bytes);
        let [c, bias] = end.added;
        // What takes all items one behind the other has no layers.
        let layers = if kernel.constant("MANY") == 1 { 1 } else { params.batch };
        let is_flat = kernel.constant("FLAT") > 0 || kernel.id == KernelId::MatmulRows;
        let out_vec4 = vec4(&[params.out_start, params.ldo, params.n]) | u32::from(is_flat);
        // One that lies inside the result; a result smaller than what matrix units store at once is no room for them to begin with.
        let has_tile = params.m >= kernel.constant("TILE_M") && params.n >= kernel.constant("TILE_N");
        let narrow = end.dtype == DType::F16;
        let is_whole = end.is_first && end.is_last;
        // A sum is rounded once, when it is whole; and rows that share a word are for one invocation to write, or for a kernel that has f16.
        let has_f16 = kernel.id == KernelId::MatmulCooperative && parts == 1;
        let rounds = narrow && (out_vec4 == 0 && !has_f16 || !is_whole);
        if rounds && !is_whole {
            parts = 1;
        }
        let stores = [
            ("OUT_VEC4", out_vec4),
            ("READS_C", u32::from(c.is_some())),
            ("ACCUMULATES", u32::from(!end.is_first)),
            ("BATCHED", u32::from(params.batch > 1)),
            ("READS_BIAS", u32::from(bias.is_some())),
            ("BIAS_STEP", end.bias_step),
            ("BIAS_ROWS", u32::from(end.bias_rows)),
            ("ACTIVATION", params.activation),
            ("RESULT_F16", u32::from(narrow)),
            ("WORDS", 0),
        ];
        kernel.constants.push(("PARTS", u32::from(parts > 1)));
        if parts == 1 && !rounds {
            let plain = end.is_first && end.added == [None; 2] && params.activation == 0 && !narrow;
            kernel.finish(stores, plain && has_tile && vec4(&[params.out_start, params.ldo]) == 1);
            let bindings = [Some(a), Some(b), Some(end.out), c, bias].into_iter().flatten().collect();
            plan.dispatches.push(Dispatch { kernel, params: params.into(), bindings, grid: [x, y, layers] });
            return;
        }
        let k_part = if parts > 1 { params.k.div_ceil(parts).next_multiple_of(k_step) } else { 0 };
        let parts = if parts > 1 { params.k.div_ceil(k_part) } else { 1 };
        let ldo = params.n.next_multiple_of(4);
        let scratch_bytes = scratch_bytes([params.m, params.n], params.batch, parts);
        let scratch = |index| Binding { slot: Slot::Scratch, index, offset_bytes: before_bytes, size_bytes: scratch_bytes };
        plan.scratch_bytes = plan.scratch_bytes.max(before_bytes + scratch_bytes);
        // Sums of no terms need no launch of their own: there is no part to add up.
        if params.k > 0 {
            let accumulates = u32::from(rounds && !end.is_first);
            let values = [1, 0, accumulates, u32::from(params.batch > 1), 0, 0, 0, 0, 0, 0];
            let mut kept = stores;
            kept.iter_mut().zip(values).for_each(|((_, value), kept)| *value = kept);
            kernel.finish(kept, has_tile && accumulates == 0);
            plan.dispatches.push(Dispatch {
                kernel,
                // The whole is scaled: a part may be too large then, or too small, where that is not.
                params: Params { ldo, out_start: 0, k_part, bias_start: 0, activation: 0, alpha: 1.0, ..params }.into(),
                bindings: vec![a, b, scratch(2)],
                grid: [x, y, parts * layers],
            });
        }
        if rounds && !end.is_last {
            return;
        }
        let rows = params.batch.saturating_mul(params.m);
        let (id, workgroups) = match rounds {
            true => (KernelId::MatmulRound, (rows.saturating_mul(params.ldo) / 2).div_ceil(SUM_THREADS).clamp(1, ROUND_WORKGROUPS)),
            _ => (KernelId::MatmulSum, (rows * (ldo / 4)).div_ceil(SUM_THREADS)),
        };
        let constants = [("THREADS", SUM_THREADS)].into_iter().chain(stores);
        // What is rounded stands in scratch in any case.
        let constants = constants.map(|(name, value)| match name {
            "OUT_VEC4" | "ACCUMULATES" if rounds => (name, 0),
            "WORDS" => (name, u32::from(rounds)),
            _ => (name, value),
        });
        let k = if params.k > 0 { parts } else { 0 };
        plan.dispatches.push(Dispatch {
            kernel: Kernel { id, variant: String::new(), source: None, constants: constants.collect() },
            params: Params { k, lda: ldo, ..params }.into(),
            bindings: [Some(scratch(0)), Some(end.out), c, bias].into_iter().flatten().collect(),
            grid: [workgroups, 1, 1],
        });
    }
}
