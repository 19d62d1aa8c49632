//! Kernels that are generated: compiled at their first use where NVRTC is installed, else done by ones that come with the crate.

use std::sync::{Arc, Mutex, PoisonError};

use super::adapter::CLUSTER_COMPUTE_CAPABILITY;
use super::pipeline::{Module, Refused};
use super::{Cuda, nvrtc};
use crate::backend::Backend;
use crate::backend::recent::Recent;
use crate::error::Result;
use crate::info::Caps;
use crate::kernels::Kernel;
use crate::ops::fused::Fused;
use crate::ops::map::Problem;
use crate::ops::{fft, normalize, pool, reduce};
use crate::plan::{self, Plan};

/// What a reduction may see of a tensor at once, so that no number of an element in it overflows, not even of f16.
const MOST_REDUCED_BYTES: u64 = 1 << 33;

/// What was compiled lately.
#[derive(Default)]
pub(super) struct Generated(Mutex<Compiled>);

#[derive(Default)]
struct Compiled {
    /// None for what the compiler refused, which it would again.
    known: Recent<Option<Arc<Module>>>,
    /// What others took the place of, and may be under way.
    retired: Vec<Arc<Module>>,
}

/// Modules that go together, since the stream is waited for then.
const RETIRED: usize = 32;

impl Cuda {
    /// A plan of kernels that this machine can have: those that are compiled here are so before the plan is given.
    pub(super) fn plan_map(&self, problem: &Problem) -> Result<Plan> {
        match self.compiled(|| plan::map::cuda(problem, &self.caps))? {
            Some(plan) => Ok(plan),
            None => plan::map::interpreted(problem, &self.caps),
        }
    }

    /// The same of a reduction.
    pub(super) fn plan_reduce(&self, problem: &reduce::Problem) -> Result<Plan> {
        let caps = self.caps_of_rows();
        match self.compiled(|| plan::reduce::cuda(problem, &caps))? {
            Some(plan) => Ok(plan),
            None => plan::reduce::plain(problem, &self.caps),
        }
    }

    /// And of softmax and the norms.
    pub(super) fn plan_normalize(&self, problem: &normalize::Problem) -> Result<Plan> {
        let caps = self.caps_of_rows();
        match self.compiled(|| plan::normalize::cuda(problem, &caps))? {
            Some(plan) => Ok(plan),
            None => plan::normalize::plain(problem, &self.caps),
        }
    }

    /// And of a Fourier transform.
    pub(super) fn plan_fft(&self, problem: &fft::Problem) -> Result<Plan> {
        match self.compiled(|| plan::fft::cuda(problem, &self.caps))? {
            Some(plan) => Ok(plan),
            None => plan::fft::plain(problem, &self.caps),
        }
    }

    /// And of a pool.
    pub(super) fn plan_pool(&self, problem: &pool::Problem) -> Result<Plan> {
        match self.compiled(|| plan::pool::cuda(problem, &self.caps))? {
            Some(plan) => Ok(plan),
            None => plan::pool::plain(problem, &self.caps),
        }
    }

    /// And of an operation with what follows it.
    pub(super) fn plan_fused(&self, fused: &Fused) -> Result<Plan> {
        let caps = self.caps_of_rows();
        let ended = plan::fused::cuda(fused, &caps, self.multiprocessors);
        match ended.ok().map(|plan| self.compiled(|| Ok(plan))).transpose()?.flatten() {
            Some(plan) => Ok(plan),
            None => plan::fused::apart(fused, self.plan(&fused.core)?, &self.caps),
        }
    }

    /// What plans for rows may assume: an old compiler knows no clusters.
    fn caps_of_rows(&self) -> Caps {
        let knows_clusters = nvrtc::get().is_ok_and(|compiler| compiler.knows(CLUSTER_COMPUTE_CAPABILITY));
        Caps {
            max_binding_bytes: self.caps.max_binding_bytes.min(MOST_REDUCED_BYTES),
            max_cluster_workgroups: if knows_clusters { self.caps.max_cluster_workgroups } else { 1 },
            ..self.caps.clone()
        }
    }

    /// Whether there is a compiler, which kernels that compute what follows them need.
    pub(in crate::backend) fn fuses(&self) -> bool {
        self.may_compile && nvrtc::get().is_ok()
    }

    /// The plan, if all its kernels are to be had.
    fn compiled(&self, plan: impl FnOnce() -> Result<Plan>) -> Result<Option<Plan>> {
        if !self.may_compile {
            return Ok(None);
        }
        let plan = plan()?;
        for dispatch in plan.dispatches.iter().filter(|dispatch| dispatch.kernel.is_compiled_late()) {
            if self.generated(&dispatch.kernel)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(plan))
    }

    /// The kernel, compiled at its first use; None if there is no compiler, or it is too old, or refuses for another reason.
    pub(super) fn generated(&self, kernel: &Kernel) -> Result<Option<Arc<Module>>> {
        let Ok(compiler) = nvrtc::get() else { return Ok(None) };
        let mut compiled_so_far = self.generated.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Compiled { known, retired } = &mut *compiled_so_far;
        if let Some(module) = known.get(kernel) {
            return Ok(module.clone());
        }
        let (name, source) = (kernel.id.entry()?, kernel.cuda()?);
        let compiled = compiler.compile(kernel.id.op(), &source, self.compute_capability);
        let module = match compiled.map(|compiled| self.load_image(compiled.image(), &name)) {
            Ok(Ok(module)) => Some(Arc::new(module)),
            Ok(Err(Refused::Other(fault))) => return Err(self.judge(&fault)),
            Ok(Err(Refused::Image(..) | Refused::Entry)) | Err(_) => None,
        };
        retired.extend(known.keep(kernel.clone(), module.clone()).flatten());
        if retired.len() >= RETIRED {
            // What a call still has it is about to launch; all other launches are in the stream.
            let unused: Vec<_> = retired.extract_if(.., |module| Arc::strong_count(module) == 1).collect();
            self.stream.synchronize().map_err(|fault| self.judge(&fault))?;
            drop(unused);
        }
        Ok(module)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::dtype::DType;
    use crate::ops::elementwise::{Function, Kind, Program, Step};
    use crate::ops::map::View;
    use crate::ops::matmul::Matmul;
    use crate::ops::reduce::Fold;
    use crate::ops::window::Window;
    use crate::ops::{Op, conv};

    /// Every function for every type that it takes, several of them in a kernel, and every way in which inputs are read.
    fn problems() -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut add = |shape: &[u32], views: Vec<View>, steps: Vec<Step>, scalars: usize| {
            let inputs = views.iter().map(|view| Kind::from(view.dtype)).collect();
            let program = Arc::new(Program { inputs, steps });
            let result = program.result();
            let dtype = views.first().map(|view| view.dtype).filter(|dtype| Kind::from(*dtype) == result);
            let dtype = dtype.or_else(|| DType::COMPUTED.iter().copied().find(|dtype| Kind::from(*dtype) == result)).unwrap();
            problems.push(Problem { shape: shape.to_vec(), inputs: views, program, scalars: vec![1; scalars], dtype });
        };
        let view = |dtype: DType, strides: &[i64]| View { dtype, offset: 0, strides: strides.to_vec(), bounds: Vec::new() };
        for dtype in [DType::F32, DType::I32, DType::U32, DType::Bool] {
            let taken: Vec<_> = Function::ALL.iter().filter(|function| function.of(dtype.into()).is_some()).collect();
            for some in taken.chunks(16) {
                let mut steps = vec![Step::Input(0), Step::Input(1), Step::Scalar(0, Kind::F32)];
                for &&function in some {
                    let (sum, applied) = (steps.len() as u8 - 1, steps.len() as u8);
                    steps.extend([
                        Step::Apply(function, [0, 1]),
                        Step::Cast(applied, Kind::F32),
                        Step::Apply(Function::Add, [sum, applied + 1]),
                    ]);
                }
                add(&[8, 32], vec![view(dtype, &[64, 1]); 2], steps, 1);
            }
        }
        for &dtype in DType::COMPUTED {
            for (columns, strides) in [(32, [32, 1]), (32, [-64, -2]), (32, [4, 0]), (31, [1, 8])] {
                add(&[8, columns], vec![view(dtype, &strides)], vec![Step::Input(0)], 0);
            }
            for end in [31, 28] {
                let bounded = View { bounds: vec![[2, 5], [0, end]], ..view(dtype, &[32, 1]) };
                let around = Step::Scalar(0, dtype.into());
                add(&[8, 32], vec![bounded], vec![Step::Input(0), Step::Inside(0), around, Step::Select([1, 2, 0])], 1);
            }
            let mut steps = vec![Step::Input(0)];
            for kind in [Kind::F32, Kind::I32, Kind::U32, Kind::Bool, dtype.into()] {
                steps.push(Step::Cast(steps.len() as u8 - 1, kind));
            }
            add(&[1000], vec![view(dtype, &[1])], steps, 0);
            for (rows, columns) in [(32, 40), (32, 41), (31, 40)] {
                add(&[3, rows, columns], vec![view(dtype, &[4000, 1, rows.into()])], vec![Step::Input(0)], 0);
            }
        }
        add(&[5, 3, 2, 7, 3, 9], Vec::new(), vec![Step::Index], 0);
        problems
    }

    /// Every fold of every type that it takes: rows in fours, rows in parts, columns, and dimensions that are no one's neighbours.
    fn reductions() -> Vec<reduce::Problem> {
        let mut reductions = Vec::new();
        for &fold in Fold::ALL {
            for &dtype in DType::COMPUTED.iter().filter(|dtype| fold.takes(**dtype)) {
                let shapes = [
                    (vec![9, 32], vec![32, 1]),
                    (vec![2, 1 << 20], vec![1 << 20, 1]),
                    (vec![33, 70], vec![1, 33]),
                    (vec![2, 3, 5], vec![1, 50, 5]),
                    (vec![70, 33], vec![33, 1]),
                ];
                // Of integers the first will do.
                for (shape, strides) in shapes.into_iter().take(if dtype == DType::F32 { 5 } else { 2 }) {
                    let view = View { dtype, offset: 0, strides, bounds: Vec::new() };
                    let program = Arc::new(Program { inputs: vec![dtype.into()], steps: vec![Step::Input(0)] });
                    let values = Problem { shape, inputs: vec![view], program, scalars: Vec::new(), dtype };
                    reductions.push(reduce::Problem { values, kept: 1, fold, divisor: 1.0 });
                }
            }
        }
        reductions
    }

    /// Every form of every way of reading.
    fn rows() -> Vec<normalize::Problem> {
        let mut rows = Vec::new();
        for &form in normalize::Form::ALL {
            for (dtype, count, strides) in [
                (DType::F32, 4096, [4096, 1]),
                (DType::F16, 32, [32, 1]),
                (DType::F16, 33, [33, 1]),
                (DType::F16, 70, [1, 33]),
                (DType::F16, 3001, [3001, 1]),
                (DType::F32, 33, [33, 1]),
                (DType::F32, 70, [1, 33]),
                (DType::F32, 20_000, [20_000, 1]),
                (DType::F32, 100_000, [100_000, 1]),
                (DType::F16, 100_000, [100_000, 1]),
                (DType::F32, 100_001, [100_001, 1]),
                (DType::F16, 100_001, [100_001, 1]),
                (DType::F32, 3000, [1, 33]),
            ] {
                let view = |dtype, strides: &[i64]| View { dtype, offset: 0, strides: strides.to_vec(), bounds: Vec::new() };
                let program = Arc::new(Program { inputs: vec![Kind::F32], steps: vec![Step::Input(0)] });
                let inputs = vec![view(dtype, &strides)];
                let values = Problem { shape: vec![33, count], inputs, program, scalars: Vec::new(), dtype: DType::F32 };
                let beside = if form == normalize::Form::LayerNorm { vec![view(dtype, &[0, 1]), view(dtype, &[0, 1])] } else { Vec::new() };
                rows.push(normalize::Problem { values, kept: 1, form, epsilon: 1e-5, beside, out: view(dtype, &strides) });
            }
        }
        rows
    }

    /// What computes something of its result, in fours and one by one, with an input of its shape and one for all of a row.
    fn ended() -> Vec<Fused> {
        let mut all = Vec::new();
        let mut add = |core: Op, shape: Vec<u32>| {
            let strides = (1..=shape.len()).map(|next| shape[next..].iter().map(|&size| i64::from(size)).product()).collect();
            let whole = View { dtype: DType::F32, offset: 0, strides, bounds: Vec::new() };
            let row = View { strides: (1..=shape.len()).map(|dimension| i64::from(dimension == shape.len())).collect(), ..whole.clone() };
            let steps = vec![
                Step::Input(0),
                Step::Input(1),
                Step::Apply(Function::Add, [0, 1]),
                Step::Input(2),
                Step::Apply(Function::Mul, [2, 3]),
                Step::Scalar(0, Kind::F32),
                Step::Apply(Function::Max, [4, 5]),
            ];
            let program = Arc::new(Program { inputs: vec![Kind::F32; 3], steps });
            let end = Problem { shape, inputs: vec![whole.clone(), whole, row], program, scalars: vec![1], dtype: DType::F32 };
            let core_inputs = if matches!(core, Op::Conv(_) | Op::Matmul(_)) { 2 } else { 1 };
            all.push(Fused { core, core_inputs, end });
        };
        // Each tile, few filters, and sums in parts.
        for [batch, groups, channels, filters] in [[64, 1, 4, 128], [2, 1, 4, 64], [2, 1, 4, 32], [2, 4, 1, 1], [1, 1, 512, 64]] {
            let window = Window { input: 16, taps: 3, stride: 1, dilation: 1, before: 1, after: 1, steps: 16 };
            let conv = conv::Problem {
                batch,
                groups,
                channels,
                filters,
                windows: [window; 2],
                dtype: DType::F32,
                bias: groups > 1,
                activation: None,
            };
            add(Op::Conv(conv), vec![batch, groups * filters, 16, 16]);
        }
        // Tiles in fours and not, and sums in parts.
        for [m, k, n] in [[1024, 64, 1024], [256, 64, 512], [100, 33, 75], [64, 256, 64], [1000, 6, 5]] {
            let product = Matmul::new(m, k, n).check([DType::F32; 2], m * k, k * n).unwrap();
            add(Op::Matmul(product), vec![m as u32, n as u32]);
        }
        for problem in reductions().into_iter().filter(|problem| problem.values.dtype == DType::F32 && problem.count() < 100) {
            if problem.fold.result(DType::F32) == DType::F32 {
                let shape = problem.values.shape[..1].to_vec();
                add(Op::Reduce(problem), shape);
            }
        }
        for problem in rows().into_iter().filter(|problem| problem.out.dtype == DType::F32) {
            let shape = problem.values.shape.clone();
            add(Op::Normalize(problem), shape);
        }
        all
    }

    /// Needs no GPU.
    #[test]
    fn what_is_generated_compiles() {
        let compiler = match nvrtc::get() {
            Ok(compiler) => compiler,
            Err(missing) => {
                assert!(!crate::environment::is_required("nvrtc"), "required: {}", missing.reason);
                return println!("skipped without NVRTC: {}", missing.reason);
            }
        };
        let start = Instant::now();
        let problems = problems();
        let caps = Caps { max_workgroup_invocations: 1024, max_cluster_workgroups: 8, ..Caps::UNLIMITED };
        let maps = problems.iter().map(|problem| plan::map::cuda(problem, &caps));
        let reductions = reductions();
        let folds = reductions.iter().map(|problem| plan::reduce::cuda(problem, &caps));
        let rows = rows();
        let norms = rows.iter().map(|problem| plan::normalize::cuda(problem, &caps));
        let lines = [(1, 1 << 20, 1), (4, 60, 32), (2, 101, 1), (1, 1029, 5), (3, 4, 1)];
        let transforms = lines.into_iter().flat_map(|(outer, length, inner)| {
            let form = |reads, gives| fft::Problem { outer, length, inner, input: length, inverse: reads == fft::Form::Half, reads, gives };
            let forms = [(fft::Form::Complex, fft::Form::Complex), (fft::Form::Real, fft::Form::Half), (fft::Form::Half, fft::Form::Real)];
            forms.map(|(reads, gives)| plan::fft::cuda(&form(reads, gives), &caps))
        });
        let window = |taps, stride| Window { input: 40, taps, stride, dilation: 1, before: 0, after: 0, steps: 40 / stride - 2 };
        let pools = [(pool::Kind::Max, DType::F32, 2, 2), (pool::Kind::Mean, DType::F16, 3, 1), (pool::Kind::MeanPadded, DType::F32, 5, 3)];
        let pools = pools.map(|(kind, dtype, taps, stride)| {
            let windows = [Window::ONE, window(taps, stride), window(taps, stride)];
            plan::pool::cuda(&pool::Problem { kind, planes: 256, windows, dtype }, &caps)
        });
        let ended = ended();
        let ends = ended.iter().map(|fused| plan::fused::cuda(fused, &caps, 132));
        for plan in maps.chain(folds).chain(norms).chain(transforms).chain(pools).chain(ends) {
            for dispatch in plan.unwrap().dispatches.into_iter().filter(|dispatch| dispatch.kernel.is_compiled_late()) {
                let source = dispatch.kernel.cuda().unwrap();
                // By another name it would not be found, and others would stand in for it.
                let entry = format!(" {}(", dispatch.kernel.id.op());
                let mut bounds = source.split("__launch_bounds__").skip(1);
                assert!(bounds.any(|kernel| kernel.split('\n').next().is_some_and(|line| line.contains(&entry))), "{}", dispatch.kernel);
                let image = compiler.compile("kernel", &source, (9, 0));
                image.unwrap_or_else(|log| panic!("{} {:?}\n{log}\n{source}", dispatch.kernel, dispatch.kernel.constants));
            }
        }
        println!("{} plans in {:?}", problems.len() + reductions.len() + rows.len() + ended.len(), start.elapsed());
    }
}
