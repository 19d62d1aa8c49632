//! Compiled kernels, of which the latest are kept while the context lives.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::WebGl2;
use super::buffer::{Buffer, Matrix};
use super::commands::pause;
use crate::backend::recent::Recent;
use crate::clock::Stopwatch;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, KernelId};
use crate::plan::{Dispatch, Plan};

const VERTICES: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-packed.vert"));

/// No compiler takes longer.
const PATIENCE_MS: f64 = 30_000.0;

/// Names of the textures that a kernel reads, by their units.
const OF_PRODUCTS: &str = "a b c bias . . . . input_8 input_9 input_10 input_11 input_12";
const ROWS: &str = "row_0 row_1 row_2 row_3 row_4 row_5 row_6 row_7";
const INPUTS: &str = "input_0 input_1 input_2 input_3 input_4 input_5 input_6 input_7 input_8 input_9 input_10 input_11 input_12";

/// A kernel that the browser compiles behind the page's back.
pub(super) struct Linking {
    pub key: glow::Program,
    pub shaders: Vec<glow::Shader>,
}

/// A compiled kernel.
pub(super) struct Program {
    pub key: glow::Program,
    /// The place of its parameters.
    pub params: Option<glow::UniformLocation>,
    /// The parameters that it was told last, and has still.
    pub told: Cell<Box<[u32]>>,
}

/// Programs by kernel.
#[derive(Default)]
pub(super) struct Programs(RefCell<Recent<State>>);

enum State {
    Compiling(Linking),
    Compiled(Rc<Program>),
    /// Whoever asks for it hears why.
    Refused,
}

impl WebGl2 {
    /// Whether all that a plan of these operands runs is compiled. What is not begins to be, all of it at once and behind the page's back.
    pub(super) fn is_compiled(&self, plan: &Plan, operands: &[Option<&Buffer>]) -> Result<bool> {
        let mut all = true;
        for Dispatch { kernel, .. } in &plan.dispatches {
            all &= self.has(kernel)?;
        }
        for matrix in operands.iter().flatten().map(|operand| operand.matrix()).filter(|matrix| !matrix.is_flat()) {
            all &= self.has(&unfolding(&matrix))?;
        }
        Ok(all)
    }

    /// Whether a plan can be drawn at once. One whose operands wait for their kernels comes behind them, while its own begin to be compiled.
    pub(super) fn can_draw(&self, plan: &Plan, operands: &[Option<&Buffer>]) -> Result<bool> {
        Ok(self.is_compiled(plan, operands)? && operands.iter().flatten().all(|operand| !operand.matrix().waits.get()))
    }

    /// Waits until it is compiled, or until it is likelier that the browser forgot to say so: then whoever uses a program waits for it.
    pub(super) async fn compiled(&self, plan: &Plan, operands: &[Option<&Buffer>]) -> Result<()> {
        let clock = Stopwatch::start();
        while !self.is_compiled(plan, operands)? && clock.ms() < PATIENCE_MS {
            pause(clock.ms()).await;
        }
        Ok(())
    }

    fn has(&self, kernel: &Kernel) -> Result<bool> {
        let mut programs = self.programs.0.borrow_mut();
        match programs.get(kernel) {
            Some(State::Compiled(_) | State::Refused) => Ok(true),
            Some(State::Compiling(linking)) => Ok(self.commands.is_made(linking)),
            None => {
                let linking = self.commands.begin(VERTICES, &kernel.glsl()?).map_err(|log| self.refused(&log))?;
                let is_made = self.commands.is_made(&linking);
                self.forget(programs.keep(kernel.clone(), State::Compiling(linking)));
                Ok(is_made)
            }
        }
    }

    /// Deletes what others took the place of. WebGL itself keeps a program until the drawings are done that it was asked for.
    fn forget(&self, gone: Option<State>) {
        match gone {
            Some(State::Compiled(program)) => self.commands.delete_program(program.key, &[]),
            Some(State::Compiling(linking)) => self.commands.delete_program(linking.key, &linking.shaders),
            Some(State::Refused) | None => {}
        }
    }

    /// The program, which is waited for if it is not compiled.
    pub(super) fn program(&self, kernel: &Kernel) -> Result<Rc<Program>> {
        let mut programs = self.programs.0.borrow_mut();
        let known = match programs.get(kernel) {
            Some(State::Compiled(program)) => return Ok(Rc::clone(program)),
            Some(state) => std::mem::replace(state, State::Refused),
            None => State::Refused,
        };
        let linking = match known {
            State::Compiling(linking) => Ok(linking),
            _ => self.commands.begin(VERTICES, &kernel.glsl()?),
        };
        let linked = linking.and_then(|linking| match kernel.id {
            KernelId::MatmulPacked | KernelId::MatmulStrips => self.commands.link(linking, &named(OF_PRODUCTS)),
            KernelId::MatmulUnfold => self.commands.link(linking, &named(ROWS)),
            _ => self.commands.link(linking, &named(INPUTS)),
        });
        let program = Rc::new(linked.map_err(|log| self.refused(&log))?);
        self.forget(programs.keep(kernel.clone(), State::Compiled(Rc::clone(&program))));
        Ok(program)
    }

    /// Why there is no program. A compiler that refuses says why; one that is gone does not.
    fn refused(&self, log: &str) -> Box<Error> {
        match self.check(0) {
            Err(error) => error,
            Ok(()) if log.is_empty() => Box::new(Error::DeviceLost { reason: "the browser took the WebGL context away".to_owned() }),
            Ok(()) => Error::internal(format!("a shader was refused: {log}")),
        }
    }
}

/// What puts a matrix into an operand's form.
pub(super) fn unfolding(matrix: &Matrix) -> Kernel {
    let constants = vec![("ROWS", matrix.count), ("INTEGER", u32::from(matrix.form.is_integer()))];
    Kernel { id: KernelId::MatmulUnfold, variant: String::new(), source: None, constants }
}

fn named(names: &'static str) -> Vec<(u32, &'static str)> {
    (0..).zip(names.split(' ')).collect()
}
