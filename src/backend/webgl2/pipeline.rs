//! Compiled kernels, kept for the life of the context.

use std::cell::RefCell;
use std::rc::Rc;

use super::WebGl2;
use crate::error::{Error, Result};
use crate::kernels::Kernel;

const VERTICES: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-packed.vert"));

/// A compiled kernel, which goes with its context.
pub(super) struct Program {
    pub key: glow::Program,
    /// The place of its parameters.
    pub params: Option<glow::UniformLocation>,
}

/// Programs by kernel: a list, because a page uses few.
#[derive(Default)]
pub(super) struct Programs(RefCell<Vec<(Kernel, Rc<Program>)>>);

impl WebGl2 {
    /// The program, compiled at its first use. `samplers` are named in the order of their units.
    pub(super) fn program(&self, kernel: &Kernel, samplers: &str) -> Result<Rc<Program>> {
        let mut programs = self.programs.0.borrow_mut();
        if let Some((_, program)) = programs.iter().find(|(known, _)| known == kernel) {
            return Ok(Rc::clone(program));
        }
        let program = match self.commands.compile(VERTICES, &kernel.glsl()?, samplers) {
            Ok(program) => Rc::new(program),
            Err(log) => {
                self.check(0)?;
                // A compiler that refuses says why; one that is gone does not.
                if log.is_empty() {
                    return Err(Box::new(Error::DeviceLost { reason: "the browser took the WebGL context away".to_owned() }));
                }
                return Err(Error::internal(format!("a shader was refused: {log}")));
            }
        };
        programs.push((kernel.clone(), Rc::clone(&program)));
        Ok(program)
    }
}
