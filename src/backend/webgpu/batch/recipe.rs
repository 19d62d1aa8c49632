//! What is known of operations that were queued before: their plans, and their kernels.

use std::sync::{Arc, Mutex, OnceLock};

use super::super::WebGpu;
use super::super::forms::makers;
use super::super::pipeline::Pipeline;
use super::{ON_UNITS, State};
use crate::error::Result;
use crate::kernels::KernelId;
use crate::ops::Op;
use crate::plan::Plan;
use crate::plan::matmul::group::group;

/// Operations that are known by their description; the oldest is forgotten first.
const RECIPES: usize = 64;

/// An operation's plan with all that it needs but the operands.
pub(super) struct Recipe {
    pub id: u32,
    pub op: Op,
    /// Of which operands it keeps other forms.
    pub keeps: [bool; 2],
    pub plan: Plan,
    /// The launches that make them.
    pub makers: [Option<usize>; 2],
    pipelines: OnceLock<Vec<Pipeline>>,
    pub multiplications: u64,
    /// Whether its plan is for groups.
    pub joins: bool,
    /// Where its parameters are, and in which filling of the buffer.
    pub params: Mutex<Option<(u32, usize)>>,
}

impl Recipe {
    /// Its kernels, once they are compiled.
    pub fn pipelines(&self) -> &[Pipeline] {
        self.pipelines.get().map_or(&[], |pipelines| pipelines)
    }
}

impl WebGpu {
    /// An operation's recipe, made at its first use.
    pub(super) fn recipe(&self, state: &mut State, op: &Op, keeps: [bool; 2]) -> Result<Arc<Recipe>> {
        if let Some(recipe) = state.recipes.iter().rev().find(|recipe| recipe.keeps == keeps && recipe.op == *op) {
            return Ok(Arc::clone(recipe));
        }
        let mut plan = self.plan_keeping(op, keeps)?;
        let joins = match op {
            Op::Matmul(problem) if self.batches.slabs.is_on() && keeps == [false; 2] => group(problem, &mut plan, &self.caps),
            _ => false,
        };
        let pipelines = OnceLock::new();
        if keeps == [false; 2] {
            let _ = pipelines.set(self.pipelines(&plan)?);
        }
        let makers = makers(&plan);
        if state.recipes.len() >= RECIPES {
            state.recipes.remove(0);
        }
        state.recipe += 1;
        let on_units = plan.dispatches.iter().any(|dispatch| dispatch.kernel.id == KernelId::MatmulCooperative);
        let (op, multiplications) = (op.clone(), op.multiplications() / if on_units { ON_UNITS } else { 1 });
        let recipe =
            Arc::new(Recipe { id: state.recipe, op, keeps, plan, makers, pipelines, multiplications, joins, params: Mutex::default() });
        state.recipes.push(Arc::clone(&recipe));
        Ok(recipe)
    }

    /// Whether a recipe's kernels are compiled. In the browser those that are not will be, beside other work.
    pub(super) fn is_ready(&self, recipe: &Recipe) -> Result<bool> {
        if recipe.pipelines.get().is_none() {
            #[cfg(target_arch = "wasm32")]
            {
                let mut is_ready = true;
                for dispatch in &recipe.plan.dispatches {
                    is_ready &= self.is_compiled(&dispatch.kernel)?;
                }
                if !is_ready {
                    return Ok(false);
                }
            }
            let _ = recipe.pipelines.set(self.pipelines(&recipe.plan)?);
        }
        Ok(true)
    }
}
