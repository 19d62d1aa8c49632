//! What the kernels of `shaders/reduce` have to know of a fold.

use crate::dtype::DType;
use crate::kernels::template::Constant;
use crate::ops::elementwise::Step;
use crate::ops::map::Problem;
use crate::ops::reduce::Fold;

/// What `fold.wgsl` has to know.
pub(in crate::plan) fn fold_constants(fold: Fold, dtype: DType) -> Vec<Constant> {
    let is = |folds: &[Fold]| u32::from(folds.contains(&fold));
    let (moments, exponential) = (is(&[Fold::Var, Fold::Std]), is(&[Fold::LogSumExp]));
    let of_f32 = |folds: &[Fold]| if dtype == DType::F32 { is(folds) } else { 0 };
    let extremes = of_f32(&[Fold::Max, Fold::Min, Fold::ArgMax, Fold::ArgMin]);
    let knows_four = moments + exponential + extremes + is(&[Fold::Norm, Fold::Rms]) + of_f32(&[Fold::Prod]);
    vec![
        ("OF_F32", u32::from(dtype == DType::F32)),
        ("OF_I32", u32::from(dtype == DType::I32)),
        ("SUM", is(&[Fold::Sum, Fold::Mean])),
        ("DIVIDES", is(&[Fold::Mean, Fold::Rms])),
        ("PROD", is(&[Fold::Prod])),
        ("EXTREME", is(&[Fold::Max, Fold::Min])),
        ("EXTREME_OF_F32", extremes),
        ("ARG", is(&[Fold::ArgMax, Fold::ArgMin])),
        ("SMALLEST", is(&[Fold::Min, Fold::ArgMin])),
        ("MOMENTS", moments),
        ("ROOT", is(&[Fold::Std])),
        ("NORM", is(&[Fold::Norm, Fold::Rms])),
        ("EXPONENTIAL", exponential),
        ("KEYS", is(&[Fold::Max, Fold::Min, Fold::ArgMax, Fold::ArgMin, Fold::LogSumExp])),
        ("GENERAL", 1 - knows_four),
        ("GENERAL_BLOCK", 1 - moments - exponential),
    ]
}

/// Words of what `fold.wgsl` keeps of values.
pub(in crate::plan) fn state_words(fold: Fold, dtype: DType) -> u64 {
    match fold {
        Fold::Prod if dtype == DType::F32 => 2,
        Fold::Sum | Fold::Mean | Fold::Prod | Fold::Max | Fold::Min => 1,
        Fold::ArgMax | Fold::ArgMin => 2,
        Fold::Norm | Fold::Rms | Fold::LogSumExp => 3,
        Fold::Var | Fold::Std => 4,
    }
}

/// What `fold.wgsl` has to know of values: whether they are those of f16 as they are stored, or variances are told as distances from one of them.
pub(in crate::plan) fn of_values(values: &Problem, fold: Fold) -> [Constant; 2] {
    let (is_coarse, is_moments) = (are_coarse(values), matches!(fold, Fold::Var | Fold::Std));
    [("COARSE", is_coarse.into()), ("PIVOT", (is_moments && !is_coarse).into())]
}

/// Whether values are those of f16 as they are stored.
fn are_coarse(values: &Problem) -> bool {
    values.inputs.iter().all(|input| input.dtype == DType::F16) && matches!(values.program.steps[..], [Step::Input(_)])
}
