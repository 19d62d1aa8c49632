//! Device memory: pooled textures, and operands written straight from where the page has them.
//!
//! A texture is folded: texels of four elements, in lines of a power of two of them. An operand is one texture that holds it as it is
//! stored. A result is as many textures as a kernel's blocks have rows, as `shaders/matmul/packed.frag` tells; it is put into an operand's
//! form when it becomes one.

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use super::WebGl2;
use super::commands::Commands;
use super::faults::Verdict;
use crate::backend::pool::Pooled;
use crate::dtype::{DType, Extent};
use crate::error::{Error, Result};
use crate::host::HostSlice;
use crate::ops::Op;
use crate::plan::Plan;
use crate::plan::matmul::fold;

/// The pool's kind of staging buffers; that of textures is made of their number and width.
pub(super) const STAGING: u32 = u32::MAX;
/// That of buffers of uniforms.
pub(super) const UNIFORMS: u32 = STAGING - 1;

/// What the texels of a texture are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Four of f32.
    Float,
    /// Four of f16, which kernels read as f32: half the memory, and half of what is fetched. Values come there from the host alone, since GPUs
    /// differ in how they round what is drawn.
    Half,
    /// Four whole numbers or truths, as u32.
    Integer,
    /// Four integers of 8 bits, as u8 whatever their signs. Values come there from the host alone.
    Byte,
}

impl Form {
    /// What is drawn of such elements.
    fn of(dtype: DType) -> Self {
        match dtype {
            DType::F32 | DType::F16 => Self::Float,
            _ => Self::Integer,
        }
    }

    /// What the host's values of such elements are kept as.
    fn of_host(dtype: DType) -> Self {
        match dtype {
            DType::F16 => Self::Half,
            DType::I8 | DType::U8 => Self::Byte,
            dtype => Self::of(dtype),
        }
    }

    /// Whether it is read as words rather than numbers of f32.
    pub(super) fn is_integer(self) -> bool {
        matches!(self, Self::Integer | Self::Byte)
    }

    fn texel_bytes(self) -> u64 {
        match self {
            Self::Byte => 4,
            Self::Half => 8,
            Self::Float | Self::Integer => 16,
        }
    }
}

/// A memory of less is not looked at when it is made, since that waits for the browser's GPU process: whether it was to be had comes out with
/// what is read.
const LOOKED_AT_BYTES: u64 = 1 << 25;

/// The most texels that are read at a time: as many bytes as a page copies without anybody noticing.
const PIECE_TEXELS: u32 = 1 << 18;

/// Textures that are drawn to at once.
#[derive(Default)]
pub(super) struct Textures {
    /// As many as were asked for, less if the context is lost.
    pub list: Vec<glow::Texture>,
    /// What they are drawn to and read by, once they are.
    pub framebuffer: OnceCell<glow::Framebuffer>,
}

/// What the driver gave.
pub(super) enum Memory {
    /// Textures of one size.
    Textures(Textures),
    /// None if the context is lost.
    Buffer(Option<glow::Buffer>),
}

impl Raw {
    pub(super) fn textures(&self) -> Result<&Textures> {
        match &self.memory {
            Memory::Textures(textures) => Ok(textures),
            Memory::Buffer(_) => Err(Error::internal("a buffer in place of textures")),
        }
    }
}

/// Memory that is given back when this is dropped, not when some collector comes by.
pub(super) struct Raw {
    commands: Rc<Commands>,
    pub memory: Memory,
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.commands.delete(&self.memory);
    }
}

/// Memory of the device. What it holds may change its form. Clones share it.
#[derive(Clone)]
pub(crate) struct Buffer(Rc<RefCell<Rc<Matrix>>>);

/// A matrix in textures: row i is in texture i mod `count`, each row padded to `pitch` texels. A batch is its matrices one below the other.
pub(super) struct Matrix {
    pub raw: Pooled<Raw>,
    pub count: u32,
    pub pitch: u32,
    pub width: u32,
    pub height: u32,
    pub rows: u64,
    pub columns: u64,
    pub form: Form,
    /// What will be known of the commands that made it, and then of those that gave it its values.
    pub verdict: RefCell<Rc<Verdict>>,
    /// Whether what draws it waits for its kernels: nothing may read it before.
    pub waits: Cell<bool>,
}

impl Drop for Matrix {
    fn drop(&mut self) {
        // It may be a texture that was not to be had.
        if self.fault().is_err() {
            self.raw.discard();
        }
    }
}

impl Matrix {
    /// Why it has no values, as far as that is known.
    pub(super) fn fault(&self) -> Result<()> {
        self.verdict.borrow().get()
    }

    /// Whether it is in an operand's form.
    pub(super) fn is_flat(&self) -> bool {
        self.count == 1 && (self.rows <= 1 || self.columns.is_multiple_of(4))
    }

    /// The only texture, or the first.
    pub(super) fn texture(&self) -> Option<glow::Texture> {
        self.raw.textures().ok()?.list.first().copied()
    }

    /// Lines of the textures that have rows, all together.
    pub(super) fn lines(&self) -> u32 {
        self.rows.min(self.count.into()) as u32 * self.height
    }

    /// The lines from that one on that are read at a time.
    pub(super) fn piece(&self, first: u32) -> Range<u32> {
        first..self.lines().min(first + (PIECE_TEXELS / self.width).max(1))
    }

    /// What a shader finds a texel by: the width's logarithm, and one less than the width.
    pub(super) fn log2_and_mask(&self) -> [u32; 2] {
        [self.width.ilog2(), self.width - 1]
    }
}

impl Buffer {
    fn new(matrix: Matrix) -> Self {
        Self(Rc::new(RefCell::new(Rc::new(matrix))))
    }

    pub(super) fn matrix(&self) -> Rc<Matrix> {
        Rc::clone(&self.0.borrow())
    }
}

impl WebGl2 {
    /// Copies values to the device; they may change as soon as this returns.
    pub(super) fn store(&self, values: &HostSlice<'_>) -> Result<Buffer> {
        let matrix = self.flat_of(values.len(), Form::of_host(values.dtype()))?;
        let written = self.commands.write(matrix.raw.textures()?, matrix.width, &values.bits(), matrix.form);
        written.map_err(|_| Box::new(Error::OutOfMemory { bytes: matrix.columns * 4, place: "the host" }))?;
        Ok(Buffer::new(matrix))
    }

    /// Room for the result of a plan.
    pub(super) fn room(&self, plan: &Plan, op: &Op) -> Result<Buffer> {
        // A product without elements may have no drawing.
        let drawn = plan.dispatches.last().and_then(|last| Some((last.grid, last.params.matmul().ok()?)));
        let Some(([width, height, count], product)) = drawn else { return self.flat(op.extent()).map(Buffer::new) };
        let (rows, columns) = match op.elements() {
            0 => (1, 0),
            _ => (u64::from(product.m) * u64::from(product.batch), product.n.into()),
        };
        let form = Form::of(op.extent().dtype);
        let raw = self.textures(count, [width, height], form)?;
        Ok(Buffer::new(Matrix {
            raw,
            count,
            pitch: product.ldo / 4,
            width,
            height,
            rows,
            columns,
            form,
            verdict: self.asked(),
            waits: Cell::default(),
        }))
    }

    /// Room for so many elements in an operand's form.
    pub(super) fn flat(&self, Extent { elements, dtype }: Extent) -> Result<Matrix> {
        self.flat_of(elements, Form::of(dtype))
    }

    fn flat_of(&self, elements: u64, form: Form) -> Result<Matrix> {
        let (width, height) = fold(elements.div_ceil(4), &self.caps)?;
        let raw = self.textures(1, [width, height], form)?;
        Ok(Matrix {
            raw,
            count: 1,
            pitch: 0,
            width,
            height,
            rows: 1,
            columns: elements,
            form,
            verdict: self.asked(),
            waits: Cell::default(),
        })
    }

    /// The matrix in an operand's form.
    pub(super) fn operand(&self, buffer: &Buffer) -> Result<Rc<Matrix>> {
        let matrix = buffer.matrix();
        if matrix.is_flat() {
            return Ok(matrix);
        }
        let flat = Rc::new(self.unfold(&matrix)?);
        *buffer.0.borrow_mut() = Rc::clone(&flat);
        Ok(flat)
    }

    /// The verdict of what was asked for last, which may be replaced.
    fn asked(&self) -> RefCell<Rc<Verdict>> {
        RefCell::new(self.verdict())
    }

    fn textures(&self, count: u32, [width, height]: [u32; 2], form: Form) -> Result<Pooled<Raw>> {
        let of_one = u64::from(width) * u64::from(height) * form.texel_bytes();
        let max = u64::from(u32::MAX);
        if of_one > max {
            // Browsers count them in 32 bits.
            return Err(Box::new(Error::LimitExceeded { what: "the size of a texture in bytes", requested: of_one, max }));
        }
        let bytes = u64::from(count) * of_one;
        // One that has more lines serves as well.
        let kind = (form as u32) << 29 | width << 4 | count;
        self.take(kind, bytes, &|| self.commands.textures(count, [width, height], form))
    }

    /// Room for a result on its way to the host, or for uniforms.
    pub(super) fn buffer(&self, kind: u32, bytes: u64) -> Result<Pooled<Raw>> {
        let size = i32::try_from(bytes);
        let size = size.map_err(|_| {
            Box::new(Error::LimitExceeded { what: "the size of a buffer in bytes", requested: bytes, max: i32::MAX as u64 })
        })?;
        self.take(kind, bytes, &|| self.commands.buffer(size, kind == STAGING))
    }

    fn take(&self, kind: u32, bytes: u64, make: &dyn Fn() -> Memory) -> Result<Pooled<Raw>> {
        loop {
            if !self.is_pool_sound.replace(true) {
                self.pool.trim();
            }
            let used_bytes = self.pool.stats().used_bytes;
            let taken = self.pool.take(kind, bytes, || {
                let is_looked_at = bytes >= LOOKED_AT_BYTES;
                if is_looked_at {
                    // What was queued before is not to fail by this.
                    self.look(used_bytes);
                }
                let raw = Raw { commands: Rc::clone(&self.commands), memory: make() };
                if is_looked_at { self.check(bytes).map(|()| raw) } else { Ok(raw) }
            });
            if taken.as_ref().is_err_and(|error| matches!(**error, Error::OutOfMemory { .. })) && self.pool.stats().pooled_bytes > 0 {
                self.pool.trim();
                continue;
            }
            return taken;
        }
    }
}
