//! Compiled kernels, kept for the life of the context.

use std::cell::RefCell;

use wasm_bindgen::prelude::*;

use super::{Gl, WebGl2};
use crate::error::{Error, Result};
use crate::kernels::Kernel;

#[wasm_bindgen(module = "/src/backend/webgl2/gl.js")]
extern "C" {
    fn compile(gl: &Gl, vertices: &str, fragments: &str, samplers: &str) -> JsValue;
}

const VERTICES: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-packed.vert"));

/// Programs by kernel: a list, because a page uses few.
#[derive(Default)]
pub(super) struct Programs(RefCell<Vec<(Kernel, JsValue)>>);

impl WebGl2 {
    /// The program, compiled at its first use. `samplers` are named in the order of their units.
    pub(super) fn program(&self, kernel: &Kernel, samplers: &str, fragments: impl FnOnce() -> Result<String>) -> Result<JsValue> {
        let mut programs = self.programs.0.borrow_mut();
        if let Some((_, program)) = programs.iter().find(|(known, _)| known == kernel) {
            return Ok(program.clone());
        }
        let program = compile(&self.gl, VERTICES, &fragments()?, samplers);
        if let Some(log) = program.as_string() {
            self.check(0)?;
            return Err(Error::internal(format!("a shader was refused: {log}")));
        }
        programs.push((kernel.clone(), program.clone()));
        Ok(program)
    }
}
