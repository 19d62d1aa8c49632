//! Runs plans: the drawing, and the way of a result to the host.
//!
//! ```text
//! submit   compile ─► draw ─► copy into a staging buffer ─► fence
//! queue    draw
//! finish   the fence, by polling ─► read the buffer ─► was there an error, or a loss?
//! ```
//!
//! Nothing here waits while the page stands still.

use std::ops::Range;
use std::rc::Rc;

use super::WebGl2;
use super::buffer::{Buffer, Form, Matrix, Raw, STAGING, UNIFORMS};
use super::commands::{Fence, Strips, pause};
use super::faults::Verdict;
use super::pipeline::{Program, unfolding};
use crate::backend::cpu::wasm::new_array;
use crate::backend::pool::Pooled;
use crate::backend::{Bound, Finished, How};
use crate::clock::Stopwatch;
use crate::dtype::{DType, Extent};
use crate::error::{Error, Result};
use crate::host::HostVec;
use crate::kernels::KernelId;
use crate::plan::fused;
use crate::plan::map::OUT_BINDING;
use crate::plan::matmul::MOST_BLOCK_BYTES;
use crate::plan::{Binding, Dispatch, Params, Plan, Slot, Words};

/// The most multiplications of one drawing: slow GPUs do them in about a second, after two of which Windows takes the GPU away.
const MULTIPLICATIONS: u64 = 1 << 31;

/// Milliseconds for which a page can wait without anybody noticing.
const SLICE_MS: f64 = 6.0;

/// Of a plan's scratch, by where it is in there.
type Textures = Vec<(u64, Rc<Matrix>)>;

/// A submission under way.
pub(crate) struct Running {
    work: Work,
    how: How,
}

enum Work {
    /// Not before its kernels are compiled, and its operands drawn.
    Waiting {
        plan: Plan,
        operands: Vec<Option<Buffer>>,
        out: Rc<Matrix>,
    },
    Drawn(Drawn),
}

/// What the GPU was asked for.
struct Drawn {
    verdict: Rc<Verdict>,
    fence: Fence,
    /// The result's copy, unless the kernel's time is to be known first.
    reading: Option<Reading>,
    later: Option<Rc<Matrix>>,
}

/// A result on its way to the host, in pieces of some lines of its textures: each in a buffer of its own.
struct Reading {
    pieces: Vec<(Range<u32>, Pooled<Raw>)>,
    matrix: Rc<Matrix>,
}

impl WebGl2 {
    pub(super) fn start(&self, plan: &Plan, operands: &[Option<Bound<'_, Buffer>>], out: &Buffer, how: How) -> Result<Running> {
        let mut buffers = Vec::with_capacity(operands.len());
        for operand in operands {
            buffers.push(match operand {
                None => None,
                Some(Bound::Buffer(buffer)) => Some(*buffer),
                Some(Bound::Host(_)) => return Err(Error::internal("a host operand reached the GPU")),
            });
        }
        let out = out.matrix();
        let work = if self.can_draw(plan, &buffers)? {
            Work::Drawn(self.as_one(|| self.ask(plan, &buffers, out, how))?)
        } else {
            out.waits.set(true);
            Work::Waiting { plan: plan.clone(), operands: buffers.into_iter().map(Option::<&_>::cloned).collect(), out }
        };
        Ok(Running { work, how })
    }

    /// Asks the GPU for all of it, the result's copy included.
    fn ask(&self, plan: &Plan, operands: &[Option<&Buffer>], out: Rc<Matrix>, how: How) -> Result<Drawn> {
        let wanted = (!how.download.is_empty()).then_some(Rc::clone(&out));
        let (now, later) = if how.timed { (None, wanted) } else { (wanted, None) };
        // What may have to be looked at is made before there is something to wait for.
        let reading = now.map(|matrix| self.staging(matrix)).transpose()?;
        for _ in 0..how.repeats {
            self.run(plan, operands, &out)?;
        }
        if let Some(reading) = &reading {
            self.pack(reading)?;
        }
        Ok(Drawn { verdict: self.verdict(), fence: self.commands.fence(), reading, later })
    }

    /// Makes the drawings of a plan: the last into the result, those before it into the scratch.
    pub(super) fn run(&self, plan: &Plan, operands: &[Option<&Buffer>], out: &Matrix) -> Result<()> {
        self.draw_all(plan, operands, out)?;
        // Memory that was asked for meanwhile may have had all be looked at.
        for operand in operands.iter().flatten() {
            operand.matrix().fault()?;
        }
        out.fault()?;
        *out.verdict.borrow_mut() = self.verdict();
        out.waits.set(false);
        Ok(())
    }

    fn draw_all(&self, plan: &Plan, operands: &[Option<&Buffer>], out: &Matrix) -> Result<()> {
        let (mut scratch, mut textures) = (None, Textures::new());
        for (index, dispatch) in plan.dispatches.iter().enumerate() {
            if let Params::Words(words) = &dispatch.params {
                let inputs = self.inputs(dispatch, operands, &textures)?;
                let target = dispatch.bindings.iter().find(|binding| binding.slot == Slot::Scratch && binding.index == OUT_BINDING);
                match target {
                    Some(&Binding { offset_bytes, size_bytes, .. }) => {
                        let room = self.flat(Extent { elements: size_bytes / 4, dtype: DType::U32 })?;
                        self.generated(dispatch, words, &inputs, &room)?;
                        textures.retain(|(known, _)| *known != offset_bytes);
                        textures.push((offset_bytes, Rc::new(room)));
                    }
                    None => self.generated(dispatch, words, &inputs, out)?,
                }
                continue;
            }
            let product = *dispatch.params.matmul()?;
            // As packed.frag numbers them: those that every kernel is told, and those that are for textures.
            let mut params: Vec<u32> = bytemuck::cast_slice(dispatch.params.bytes()).to_vec();
            let mut matrices: Vec<_> = (0..if dispatch.kernel.source.is_some() { 13 } else { 4 }).map(|_| None).collect();
            params.resize(65 + matrices.len() * 2, 0);
            for binding in dispatch.bindings.iter().filter(|binding| binding.slot != Slot::Scratch) {
                let index = binding.index as usize;
                let operand = operands.get(binding.slot.index() - Slot::A.index());
                let (Some(Some(buffer)), Some(place)) = (operand, matrices.get_mut(index)) else {
                    return Err(Error::internal("an operand is not on the GPU"));
                };
                let matrix = self.operand(buffer)?;
                params[65 + index * 2..][..2].copy_from_slice(&matrix.log2_and_mask());
                *place = Some(matrix);
            }
            let samplers: Vec<_> = matrices.iter().map(|matrix| matrix.as_ref().and_then(|matrix| matrix.texture())).collect();
            let program = self.program(&dispatch.kernel)?;
            if index + 1 == plan.dispatches.len() {
                params[64] = out.width;
                let strips = scratch.as_ref().map(|scratch: &Pooled<Raw>| Strips {
                    buffer: &scratch.memory,
                    lines: out.height / product.m.div_ceil(out.count),
                    stride_bytes: product.lda * 4,
                    blocks: dispatch.kernel.constant("BLOCKS"),
                    block_bytes: dispatch.kernel.constant("VECS") * 16,
                });
                self.draw(&program, &params, &samplers, out, strips, product.k)?;
            } else {
                let flat = self.flat(Extent { elements: plan.scratch_bytes / 4, dtype: DType::F32 })?;
                params[64] = flat.width;
                self.draw(&program, &params, &samplers, &flat, None, 1)?;
                // Any block that begins in it ends in the buffer.
                let Matrix { width, height, .. } = flat;
                let buffer = self.buffer(UNIFORMS, u64::from(width) * u64::from(height) * 16 + u64::from(MOST_BLOCK_BYTES))?;
                self.commands.pack(flat.raw.textures()?, [width, height], &(0..height), Form::Float, &buffer.memory);
                scratch = Some(buffer);
            }
        }
        Ok(())
    }

    /// What a kernel reads that is told in words, each in its unit: operands in their order, and textures of the scratch where they are bound. A
    /// kernel without bindings reads all operands.
    fn inputs(&self, dispatch: &Dispatch, operands: &[Option<&Buffer>], textures: &Textures) -> Result<Vec<Option<Rc<Matrix>>>> {
        let bindings = &dispatch.bindings;
        let mut inputs = Vec::new();
        for (number, operand) in operands.iter().enumerate() {
            let binding = bindings.iter().find(|binding| binding.slot == Slot::Input(number as u8));
            // What follows an operation has units of its own.
            let unit =
                binding.map(|binding| binding.index).filter(|index| fused::UNITS.contains(index)).map_or(number, |unit| unit as usize);
            inputs.resize(inputs.len().max(unit + 1), None);
            if bindings.is_empty() || binding.is_some() {
                let operand = operand.ok_or_else(|| Error::internal("an operand is not on the GPU"))?;
                inputs[unit] = Some(self.operand(operand)?);
            }
        }
        for binding in bindings.iter().filter(|binding| binding.slot == Slot::Scratch && binding.index != OUT_BINDING) {
            let texture = textures.iter().find(|(at, _)| *at == binding.offset_bytes);
            let (_, texture) = texture.ok_or_else(|| Error::internal("a texture that nothing was drawn to"))?;
            let unit = binding.index as usize;
            inputs.resize(inputs.len().max(unit + 1), None);
            inputs[unit] = Some(Rc::clone(texture));
        }
        Ok(inputs)
    }

    /// The drawing of a kernel that is generated, whose parameters `map/prelude.frag` tells.
    fn generated(&self, dispatch: &Dispatch, words: &Words, inputs: &[Option<Rc<Matrix>>], out: &Matrix) -> Result<()> {
        let mut params: Vec<u32> = bytemuck::cast_slice(words.bytes()).to_vec();
        params.push(out.width);
        params.extend(inputs.iter().flat_map(|matrix| matrix.as_ref().map_or([0; 2], |matrix| matrix.log2_and_mask())));
        let samplers: Vec<_> = inputs.iter().map(|matrix| matrix.as_ref().and_then(|matrix| matrix.texture())).collect();
        let program = self.program(&dispatch.kernel)?;
        let steps = dispatch.kernel.source.as_ref().map_or(1, |source| source.program.steps.len() as u32);
        // What a fragment goes over for each of its elements.
        let over = match dispatch.kernel.id {
            KernelId::ReduceFragment => params[4] / 4,
            KernelId::ConvFragment => [6, 13].into_iter().fold(params[2], |over, taps| over.saturating_mul(params[taps])),
            KernelId::NormalizeMeasure => params[5] / 4,
            // Beside an element it takes an angle and two short series; of a chirp the remainder of a square, bit by bit.
            KernelId::FftFragment if ["CHIRP_IN", "SOURCE_CHIRP"].iter().any(|name| dispatch.kernel.constant(name) > 0) => {
                params[4].saturating_mul(512)
            }
            KernelId::FftFragment => params[4].saturating_mul(8),
            KernelId::PoolFragment => [4, 11, 18].into_iter().fold(1, |over: u32, taps| over.saturating_mul(params[taps])),
            _ => 1,
        };
        self.draw(&program, &params, &samplers, out, None, steps.saturating_mul(over.max(1)))
    }

    /// A matrix of several textures put into one, as it would be stored.
    pub(super) fn unfold(&self, matrix: &Matrix) -> Result<Matrix> {
        let dtype = if matrix.form.is_integer() { DType::U32 } else { DType::F32 };
        let flat = self.flat(Extent { elements: matrix.rows * matrix.columns, dtype })?;
        let program = self.program(&unfolding(matrix))?;
        let samplers: Vec<_> = matrix.raw.textures()?.list.iter().copied().map(Some).collect();
        self.draw(&program, &[matrix.columns as u32, matrix.pitch, matrix.width, flat.width], &samplers, &flat, None, 1)?;
        // Of what it is made it may be known by now.
        matrix.fault()?;
        *flat.verdict.borrow_mut() = self.verdict();
        Ok(flat)
    }

    /// Draws all of the target, a few lines at a time if they take long. Each fragment does 4 k multiplications a texture.
    fn draw(
        &self,
        program: &Program,
        params: &[u32],
        samplers: &[Option<glow::Texture>],
        out: &Matrix,
        strips: Option<Strips<'_>>,
        k: u32,
    ) -> Result<()> {
        out.fault()?;
        let of_a_line = u64::from(k.max(1)) * u64::from(out.width * out.count) * 4;
        let lines = (MULTIPLICATIONS / of_a_line).clamp(1, out.height.into()) as u32;
        self.commands.draw(program, params, samplers, out.raw.textures()?, [out.width, out.height, lines], strips);
        Ok(())
    }

    /// Room for a matrix on its way to the host.
    fn staging(&self, matrix: Rc<Matrix>) -> Result<Reading> {
        let mut pieces = Vec::new();
        let mut lines = 0..0;
        while lines.end < matrix.lines() {
            lines = matrix.piece(lines.end);
            let mut piece = self.buffer(STAGING, u64::from(lines.len() as u32 * matrix.width) * 16)?;
            // Of memory that is to be read Chrome has a copy made when a fence passes, and where the same is written again it warns of a copy that
            // nobody read, even of one that was. New memory of so few bytes costs no more.
            piece.discard();
            pieces.push((lines.clone(), piece));
        }
        Ok(Reading { pieces, matrix })
    }

    /// A matrix on its way to the host.
    fn packed(&self, matrix: Rc<Matrix>) -> Result<Reading> {
        let reading = self.staging(matrix)?;
        // To read what was not to be had would be one fault more.
        reading.matrix.fault()?;
        self.pack(&reading)?;
        Ok(reading)
    }

    /// Starts the copy.
    fn pack(&self, Reading { pieces, matrix }: &Reading) -> Result<()> {
        let &Matrix { ref raw, width, height, form, .. } = &**matrix;
        let textures = raw.textures()?;
        for (lines, piece) in pieces {
            self.commands.pack(textures, [width, height], lines, form, &piece.memory);
        }
        Ok(())
    }

    pub(super) async fn complete(&self, running: Running) -> Result<Finished> {
        let Running { work, how } = running;
        let drawn = match work {
            Work::Drawn(drawn) => drawn,
            Work::Waiting { plan, operands, out } => {
                let operands: Vec<_> = operands.iter().map(Option::as_ref).collect();
                self.compiled(&plan, &operands).await?;
                self.as_one(|| self.ask(&plan, &operands, out, how))?
            }
        };
        self.end(drawn, how).await
    }

    /// Waits for what the GPU was asked for, and takes it in.
    async fn end(&self, drawn: Drawn, How { timed, download: wanted, .. }: How) -> Result<Finished> {
        let Drawn { mut verdict, fence, mut reading, later } = drawn;
        let ms = fence.passed().await;
        if let Some(matrix) = later {
            self.judge(&verdict)?;
            reading = Some(self.as_one(|| self.packed(matrix))?);
            verdict = self.verdict();
            self.commands.fence().passed().await;
        }
        let brought = match reading {
            Some(reading) => Some(self.bring(&reading).await),
            None => None,
        };
        // What had no memory could not be read, and is no loss.
        self.judge(&verdict)?;
        let data = match brought.transpose()? {
            // Textures have what is of f16 in f32.
            Some(data) if wanted.dtype.is_float() => Some(data.narrowed(wanted)?),
            // Bytes come as words.
            Some(data) if wanted.dtype.is_byte() => Some(data.cast(DType::U32).narrowed(wanted)?),
            data => data.map(|data| data.cast(wanted.dtype)),
        };
        Ok(Finished { data, kernel_ms: if timed { ms } else { 0.0 }, device_clock: false })
    }

    /// A tensor's values.
    pub(super) async fn read_back(&self, buffer: &Buffer, wanted: Extent) -> Result<HostVec> {
        let reading = self.as_one(|| self.packed(buffer.matrix()))?;
        let drawn = Drawn { verdict: self.verdict(), fence: self.commands.fence(), reading: Some(reading), later: None };
        let how = How { repeats: 0, timed: false, download: wanted };
        self.end(drawn, how).await?.data.ok_or_else(|| Error::internal("no result"))
    }

    /// What was copied, its rows in order. A large matrix is read a few milliseconds at a time.
    async fn bring(&self, Reading { pieces, matrix }: &Reading) -> Result<HostVec> {
        let &Matrix { rows, columns, count, pitch, width, height, .. } = &**matrix;
        let out = new_array(rows * columns)?;
        let mut clock = Stopwatch::start();
        for (lines, piece) in pieces {
            if clock.ms() > SLICE_MS {
                pause(0.0).await;
                clock = Stopwatch::start();
            }
            let is_read = self
                .commands
                .read(
                    &piece.memory,
                    &out,
                    [rows as f64, columns as f64],
                    [count, pitch * 4, width * height * 4],
                    [lines.start, lines.len() as u32].map(|lines| lines * width * 4),
                )
                .map_err(|_| Box::new(Error::OutOfMemory { bytes: rows * columns * 4, place: "the host" }))?;
            // That all was carried proves all that came before, since a context never comes back by itself.
            if !is_read {
                return Err(Box::new(Error::DeviceLost { reason: "the result could not be read".to_owned() }));
            }
        }
        Ok(out.into())
    }
}
