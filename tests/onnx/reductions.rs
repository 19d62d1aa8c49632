//! Reductions and norms as ONNX has them.

use lapidary::{DType, Expr};

use super::operators::{Call, Refused};

impl Call<'_> {
    pub fn place(&self) -> Result<Expr, Refused> {
        let (x, axis, keep) = (self.expr(0)?, self.int("axis", 0), self.int("keepdims", 1) != 0);
        let find = |x: &Expr| if self.node.operator == "ArgMax" { x.argmax(Some(&[axis]), keep) } else { x.argmin(Some(&[axis]), keep) };
        if self.int("select_last_index", 0) == 0 {
            return Ok(find(&x));
        }
        let last = x.shape()?[axis.rem_euclid(self.rank(0)?) as usize] - 1;
        Ok(Expr::from(last as u32) - find(&x.flip(Some(&[axis]))))
    }

    pub fn reduce(&self) -> Result<Expr, Refused> {
        let (x, keep) = (self.expr(0)?, self.int("keepdims", 1) != 0);
        let axes = self.int64s("axes", 1)?.filter(|axes| !axes.is_empty());
        // Nothing is reduced then, and only what is done to each element remains.
        let none = axes.is_none() && self.int("noop_with_empty_axes", 0) != 0;
        let axes = if none { Some(&[][..]) } else { axes.as_deref() };
        let is_bool = x.dtype()? == DType::Bool;
        let (sizes, rank) = (self.sizes(0)?, self.rank(0)?);
        let is_reduced = |axis: i64| axes.is_none_or(|axes| axes.iter().any(|given| given.rem_euclid(rank) == axis));
        // ONNX has an extreme of nothing, this crate an error.
        if matches!(self.node.operator.as_str(), "ReduceMax" | "ReduceMin")
            && (0..rank).any(|axis| is_reduced(axis) && sizes[axis as usize] == 0)
        {
            let none = if self.node.operator == "ReduceMax" { f64::NEG_INFINITY } else { f64::INFINITY };
            let kept = |axis: &i64| keep || !is_reduced(*axis);
            let size = |axis: i64| if is_reduced(axis) { 1 } else { sizes[axis as usize].cast_unsigned() };
            let shape: Vec<_> = (0..rank).filter(kept).map(size).collect();
            return Ok(Expr::number(none).cast(x.dtype()?).broadcast_to(&shape));
        }
        Ok(match self.node.operator.as_str() {
            "ReduceL1" => x.norm_l1(axes, keep),
            "ReduceL2" => x.norm_l2(axes, keep),
            "ReduceLogSum" => x.sum(axes, keep).log(),
            "ReduceLogSumExp" => x.log_sum_exp(axes, keep),
            "ReduceMax" if is_bool => x.any(axes, keep),
            "ReduceMin" if is_bool => x.all(axes, keep),
            "ReduceMax" => x.amax(axes, keep),
            "ReduceMin" => x.amin(axes, keep),
            "ReduceMean" => x.mean(axes, keep),
            "ReduceProd" => x.prod(axes, keep),
            "ReduceSum" => x.sum(axes, keep),
            "ReduceSumSquare" => x.square().sum(axes, keep),
            operator => return Err(Refused::Unsupported(format!("the operator {operator}"))),
        })
    }

    pub fn batch_norm(&self) -> Result<Vec<Expr>, Refused> {
        let [x, scale, bias, mean, variance] = [0, 1, 2, 3, 4].map(|input| self.expr(input));
        let (x, scale, bias, mean, variance) = (x?, scale?, bias?, mean?, variance?);
        let epsilon = self.float("epsilon", 1e-5);
        if self.int("training_mode", 0) == 0 {
            return Ok(vec![x.batch_norm(&scale, &bias, &mean, &variance, epsilon)]);
        }
        let axes: Vec<i64> = (0..self.rank(0)?).filter(|&axis| axis != 1).collect();
        let (own_mean, own_variance) = (x.mean(Some(&axes), false), x.var(Some(&axes), false, 0.0));
        let momentum = self.float("momentum", 0.9);
        let moved = |old: &Expr, new: &Expr| old * momentum + new * (1.0 - momentum);
        let normalized = x.batch_norm(&scale, &bias, &own_mean, &own_variance, epsilon);
        Ok(vec![normalized, moved(&mean, &own_mean), moved(&variance, &own_variance)])
    }

    pub fn layer_norm(&self) -> Result<Vec<Expr>, Refused> {
        let (x, scale, rank, epsilon) = (self.expr(0)?, self.expr(1)?, self.rank(0)?, self.float("epsilon", 1e-5));
        let axes: Vec<i64> = (self.int("axis", -1).rem_euclid(rank)..rank).collect();
        if self.node.operator == "RMSNormalization" {
            return Ok(vec![x.rms_norm(&axes, Some(&scale), epsilon)]);
        }
        let bias = if self.has(2) { Some(self.expr(2)?) } else { None };
        let deviation = (x.var(Some(&axes), true, 0.0) + epsilon).sqrt().reciprocal();
        Ok(vec![x.layer_norm(&axes, Some(&scale), bias.as_ref(), epsilon), x.mean(Some(&axes), true), deviation])
    }
}
