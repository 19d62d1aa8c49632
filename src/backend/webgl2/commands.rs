//! WebGL's commands, in the sequences in which they are used. Nothing is decided here, and nothing remembered but what is bound.
//!
//! `glow` has every command `unsafe`, because natively each calls C. In the browser each is checked by the browser, and `glow` asks one
//! thing: that a key (of a texture, a program, …) is not used after it was deleted. Here keys are deleted by the `Drop` of what owns
//! them and lent out by reference until then; that is the reason behind each block below.
//!
//! A lost context takes every command and does nothing. So nothing is checked on the way; [`fault`](Commands::fault) tells in the end. It alone
//! waits for the browser's GPU process, and so is asked rarely.

use std::cell::{Cell, OnceCell};
use std::ops::Range;
use std::rc::Rc;

use glow::HasContext;
use js_sys::{Float32Array, Object, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::WebGl2RenderingContext;

use super::buffer::{Form, Memory, Textures};
use super::pipeline::{Linking, Program};
use crate::clock::Stopwatch;
use crate::plan::matmul::FragmentCaps;

/// What `glow` has no command for: a canvas, the page's own arrays, and the page's event loop.
#[wasm_bindgen(module = "/src/backend/webgl2/gl.js")]
extern "C" {
    fn context(power_preference: &str) -> Option<WebGl2RenderingContext>;
    fn close(gl: &WebGl2RenderingContext);
    #[wasm_bindgen(catch)]
    fn write(gl: &WebGl2RenderingContext, width: u32, values: &Object, form: u32) -> Result<(), JsValue>;
    #[wasm_bindgen(catch)]
    #[rustfmt::skip]
    fn read(
        gl: &WebGl2RenderingContext,
        out: &Float32Array,
        rows: f64,
        columns: f64,
        count: u32,
        pitch: u32,
        size: u32,
        first: u32,
        length: u32,
    ) -> Result<bool, JsValue>;
    #[wasm_bindgen(js_name = pause)]
    fn paused(ms: f64) -> Promise;
}

/// Lets everything else run, the longer the longer it was waited already.
pub(super) async fn pause(ms: f64) {
    // It only resolves.
    let _ = JsFuture::from(paused(ms)).await;
}

/// A context of our own: no state of it is changed from outside, and none is left to be restored.
pub(super) struct Commands {
    raw: WebGl2RenderingContext,
    gl: glow::Context,
    /// Whether the browser says when a program is made.
    tells_of_programs: bool,
    bound: Bound,
}

/// Textures that a fragment shader can read, everywhere.
const UNITS: usize = 16;

/// What is bound. A browser checks each command, so none is given twice: of like drawings one behind the other only what is drawn to changes.
/// Keys are never used again, so what was deleted is not taken for what is new.
#[derive(Default)]
struct Bound {
    program: Cell<Option<glow::Program>>,
    framebuffer: Cell<Option<glow::Framebuffer>>,
    /// First line, width and height.
    viewport: Cell<[u32; 3]>,
    unit: Cell<usize>,
    textures: [Cell<Option<glow::Texture>>; UNITS],
}

/// What a context says of the GPU.
pub(super) struct About {
    pub draws_to_floats: bool,
    pub fragment: FragmentCaps,
    /// The longest side of a texture that can be drawn to.
    pub side: u32,
    pub name: String,
    pub vendor: String,
}

/// Uniforms that are others for each strip of so many lines of the targets: where those of the next begin, and the blocks that they fill.
pub(super) struct Strips<'a> {
    pub buffer: &'a Memory,
    pub lines: u32,
    pub stride_bytes: u32,
    pub blocks: u32,
    pub block_bytes: u32,
}

/// Why there is no context.
pub(super) enum NoContext {
    /// The browser gives none.
    Refused,
    /// The browser gave one and took it away.
    Lost,
}

impl Commands {
    /// A fresh context with nothing to show, in a page or a worker.
    pub(super) fn open(power_preference: &str) -> Result<Self, NoContext> {
        let raw = context(power_preference).ok_or(NoContext::Refused)?;
        // Of a lost one `glow` would ask things that it has no answer to.
        if raw.is_context_lost() {
            return Err(NoContext::Lost);
        }
        // Which `glow` then has turned on.
        let tells_of_programs = matches!(raw.get_extension("KHR_parallel_shader_compile"), Ok(Some(_)));
        Ok(Self { gl: glow::Context::from_webgl2_context(raw.clone()), raw, tells_of_programs, bound: Bound::default() })
    }

    pub(super) fn is_lost(&self) -> bool {
        self.raw.is_context_lost()
    }

    pub(super) fn describe(&self) -> About {
        // Of WEBGL_debug_renderer_info, which `glow` has turned on where it is.
        const UNMASKED: [u32; 2] = [0x9246, 0x9245];
        let gl = &self.gl;
        let text = |unmasked, plain| {
            // SAFETY: no key.
            let known = unsafe { gl.get_parameter_string(unmasked) };
            // SAFETY: no key.
            if known.is_empty() { unsafe { gl.get_parameter_string(plain) } } else { known }
        };
        let mut viewport = [0; 2];
        // SAFETY: no key.
        unsafe { gl.get_parameter_i32_slice(glow::MAX_VIEWPORT_DIMS, &mut viewport) };
        // SAFETY: no key.
        let number = |name| unsafe { gl.get_parameter_i32(name) }.max(0) as u32;
        let side = number(glow::MAX_TEXTURE_SIZE) as i32;
        let about = About {
            fragment: FragmentCaps {
                targets: number(glow::MAX_DRAW_BUFFERS).min(number(glow::MAX_COLOR_ATTACHMENTS)),
                block_bytes: number(glow::MAX_UNIFORM_BLOCK_SIZE),
                alignment_bytes: number(glow::UNIFORM_BUFFER_OFFSET_ALIGNMENT),
            },
            draws_to_floats: matches!(self.raw.get_extension("EXT_color_buffer_float"), Ok(Some(_))),
            side: side.min(viewport[0]).min(viewport[1]).max(0) as u32,
            name: text(UNMASKED[0], glow::RENDERER),
            vendor: text(UNMASKED[1], glow::VENDOR),
        };
        // Where the extension is not, asking for its parameters was an error.
        self.fault();
        about
    }

    /// An error that WebGL has to tell, or 0. It has one flag for each of its few kinds, and this takes all down: what lacked memory is the cause
    /// of others.
    pub(super) fn fault(&self) -> u32 {
        if self.is_lost() {
            return WebGl2RenderingContext::CONTEXT_LOST_WEBGL;
        }
        // SAFETY: no key.
        let next = || unsafe { self.gl.get_error() };
        let mut first = next();
        if first != 0 {
            for other in (0..8).map(|_| next()).take_while(|&other| other != 0) {
                first = if other == glow::OUT_OF_MEMORY { other } else { first };
            }
        }
        first
    }

    /// Has a program made, which the browser does behind the page's back.
    pub(super) fn begin(&self, vertices: &str, fragments: &str) -> Result<Linking, String> {
        let gl = &self.gl;
        // SAFETY: the keys are made here, and deleted by `link`.
        unsafe {
            let key = gl.create_program()?;
            let mut shaders = Vec::new();
            for (stage, source) in [(glow::VERTEX_SHADER, vertices), (glow::FRAGMENT_SHADER, fragments)] {
                let shader = gl.create_shader(stage)?;
                gl.shader_source(shader, source);
                gl.compile_shader(shader);
                gl.attach_shader(key, shader);
                shaders.push(shader);
            }
            gl.link_program(key);
            Ok(Linking { key, shaders })
        }
    }

    /// Whether it is made. Where the browser does not say that, it is as if it were.
    pub(super) fn is_made(&self, linking: &Linking) -> bool {
        // SAFETY: the key is that of `begin`, which is lent.
        !self.tells_of_programs || self.is_lost() || unsafe { self.gl.get_program_completion_status(linking.key) }
    }

    /// The program, whose samplers have these names in these units; or the compiler's words on why there is none. It waits until that is made.
    pub(super) fn link(&self, Linking { key, shaders }: Linking, samplers: &[(u32, &str)]) -> Result<Program, String> {
        let gl = &self.gl;
        // SAFETY: the keys are those of `begin`, which are given away here.
        unsafe {
            let linked = gl.get_program_link_status(key);
            let mut log = if linked { String::new() } else { gl.get_program_info_log(key) };
            for shader in shaders {
                if !linked {
                    log += &gl.get_shader_info_log(shader);
                }
                gl.delete_shader(shader);
            }
            if !linked {
                self.delete_program(key, &[]);
                return Err(log);
            }
            self.use_program(key);
            for &(unit, name) in samplers {
                if let Some(place) = gl.get_uniform_location(key, name) {
                    gl.uniform_1_i32(Some(&place), unit as i32);
                }
            }
            for block in 0.. {
                let Some(index) = gl.get_uniform_block_index(key, &format!("Block{block}")) else { break };
                gl.uniform_block_binding(key, index, block);
            }
            Ok(Program { key, params: gl.get_uniform_location(key, "params"), told: Cell::default() })
        }
    }

    /// Deletes a program, and the shaders of one that is not linked.
    pub(super) fn delete_program(&self, key: glow::Program, shaders: &[glow::Shader]) {
        // SAFETY: the keys are given away.
        unsafe {
            shaders.iter().for_each(|&shader| self.gl.delete_shader(shader));
            self.gl.delete_program(key);
        }
    }

    fn use_program(&self, key: glow::Program) {
        if self.bound.program.replace(Some(key)) != Some(key) {
            // SAFETY: the program is lent.
            unsafe { self.gl.use_program(Some(key)) };
        }
    }

    fn bind_texture(&self, unit: usize, texture: Option<glow::Texture>) {
        if self.bound.textures.get(unit).is_none_or(|bound| bound.replace(texture) == texture) {
            return;
        }
        self.activate(unit);
        // SAFETY: the texture is lent.
        unsafe { self.gl.bind_texture(glow::TEXTURE_2D, texture) };
    }

    fn activate(&self, unit: usize) {
        if self.bound.unit.replace(unit) != unit {
            // SAFETY: no key.
            unsafe { self.gl.active_texture(glow::TEXTURE0 + unit as u32) };
        }
    }

    /// So many textures.
    pub(super) fn textures(&self, count: u32, [width, height]: [u32; 2], form: Form) -> Memory {
        let gl = &self.gl;
        let format = match form {
            Form::Float => glow::RGBA32F,
            Form::Half => glow::RGBA16F,
            Form::Integer => glow::RGBA32UI,
            Form::Byte => glow::RGBA8UI,
        };
        // SAFETY: the keys are made here.
        let texture = |_| unsafe {
            let texture = gl.create_texture().ok()?;
            self.bind_texture(0, Some(texture));
            self.activate(0);
            gl.tex_storage_2d(glow::TEXTURE_2D, 1, format, width as i32, height as i32);
            // One of these that would be filtered counts as incomplete, and reads as zero.
            for filter in [glow::TEXTURE_MIN_FILTER, glow::TEXTURE_MAG_FILTER] {
                gl.tex_parameter_i32(glow::TEXTURE_2D, filter, glow::NEAREST as i32);
            }
            Some(texture)
        };
        Memory::Textures(Textures { list: (0..count).filter_map(texture).collect(), framebuffer: OnceCell::new() })
    }

    /// Room for a result on its way to the host, or for what stays with the GPU.
    pub(super) fn buffer(&self, bytes: i32, is_read: bool) -> Memory {
        // SAFETY: the key is made here.
        unsafe {
            let buffer = self.gl.create_buffer().ok();
            self.gl.bind_buffer(glow::PIXEL_PACK_BUFFER, buffer);
            self.gl.buffer_data_size(glow::PIXEL_PACK_BUFFER, bytes, if is_read { glow::STREAM_READ } else { glow::STREAM_COPY });
            self.gl.bind_buffer(glow::PIXEL_PACK_BUFFER, None);
            Memory::Buffer(buffer)
        }
    }

    pub(super) fn delete(&self, memory: &Memory) {
        match memory {
            Memory::Textures(Textures { list, framebuffer }) => {
                // SAFETY: the owner is being dropped.
                list.iter().for_each(|&texture| unsafe { self.gl.delete_texture(texture) });
                // SAFETY: likewise.
                framebuffer.get().into_iter().for_each(|&framebuffer| unsafe { self.gl.delete_framebuffer(framebuffer) });
            }
            // SAFETY: likewise.
            Memory::Buffer(buffer) => buffer.iter().for_each(|&buffer| unsafe { self.gl.delete_buffer(buffer) }),
        }
    }

    /// Writes an array to a texture, from where it is. An error is the host's memory running out.
    pub(super) fn write(&self, textures: &Textures, width: u32, values: &Object, form: Form) -> Result<(), JsValue> {
        self.bind_texture(0, textures.list.first().copied());
        self.activate(0);
        write(&self.raw, width, values, form as u32)
    }

    /// Makes the textures what is drawn to and read from.
    fn attach(&self, targets: &Textures) {
        let gl = &self.gl;
        let place = |index| glow::COLOR_ATTACHMENT0 + index as u32;
        if let Some(framebuffer) = targets.framebuffer.get() {
            if self.bound.framebuffer.replace(Some(*framebuffer)) != Some(*framebuffer) {
                // SAFETY: the framebuffer is lent.
                unsafe { gl.bind_framebuffer(glow::FRAMEBUFFER, Some(*framebuffer)) };
            }
            return;
        }
        // SAFETY: the textures are lent, the framebuffer is made here and goes with them.
        unsafe {
            // A lost context gives none.
            let Ok(framebuffer) = gl.create_framebuffer() else { return };
            gl.bind_framebuffer(glow::FRAMEBUFFER, Some(framebuffer));
            for (index, &texture) in targets.list.iter().enumerate() {
                gl.framebuffer_texture_2d(glow::FRAMEBUFFER, place(index), glow::TEXTURE_2D, Some(texture), 0);
            }
            gl.draw_buffers(&(0..targets.list.len()).map(place).collect::<Vec<_>>());
            self.bound.framebuffer.set(Some(framebuffer));
            let _ = targets.framebuffer.set(framebuffer);
        }
    }

    /// Runs a program for each texel of the targets, some lines at a time, or a strip.
    pub(super) fn draw(
        &self,
        program: &Program,
        params: &[u32],
        samplers: &[Option<glow::Texture>],
        targets: &Textures,
        [width, height, lines]: [u32; 3],
        strips: Option<Strips<'_>>,
    ) {
        let gl = &self.gl;
        self.attach(targets);
        self.use_program(program.key);
        let told = program.told.take();
        if *told == *params {
            program.told.set(told);
        } else {
            // SAFETY: the program is lent.
            unsafe { gl.uniform_1_u32_slice(program.params.as_ref(), params) };
            program.told.set(params.into());
        }
        for (unit, &texture) in samplers.iter().enumerate() {
            self.bind_texture(unit, texture);
        }
        // SAFETY: the buffers are lent.
        unsafe {
            let each = strips.as_ref().map_or(lines, |strips| strips.lines);
            let mut drawn = 0;
            for line in (0..height).step_by(each as usize) {
                if let Some(&Strips { buffer: &Memory::Buffer(buffer), stride_bytes, blocks, block_bytes, .. }) = strips.as_ref() {
                    for block in 0..blocks {
                        let offset = line / each * stride_bytes + block * block_bytes;
                        gl.bind_buffer_range(glow::UNIFORM_BUFFER, block, buffer, offset as i32, block_bytes as i32);
                    }
                }
                let viewport = [line, width, each.min(height - line)];
                if self.bound.viewport.replace(viewport) != viewport {
                    gl.viewport(0, line as i32, width as i32, viewport[2] as i32);
                }
                gl.draw_arrays(glow::TRIANGLES, 0, 3);
                // Each part is a piece of work of its own to the driver.
                drawn += each;
                if drawn >= lines && lines < height {
                    gl.flush();
                    drawn = 0;
                }
            }
        }
    }

    /// Starts the copy of some lines into a buffer, one behind the other; they are counted through all textures.
    pub(super) fn pack(&self, targets: &Textures, [width, height]: [u32; 2], lines: &Range<u32>, form: Form, staging: &Memory) {
        let gl = &self.gl;
        self.attach(targets);
        self.bind_staging(Some(staging));
        let (format, element) = if form.is_integer() { (glow::RGBA_INTEGER, glow::UNSIGNED_INT) } else { (glow::RGBA, glow::FLOAT) };
        // SAFETY: no key.
        unsafe {
            // A lost context has no textures.
            let (mut line, end) = (lines.start, lines.end.min(targets.list.len() as u32 * height));
            while line < end {
                let first = line % height;
                let high = (height - first).min(end - line);
                gl.read_buffer(glow::COLOR_ATTACHMENT0 + line / height);
                let at = glow::PixelPackData::BufferOffset((line - lines.start) * width * 16);
                gl.read_pixels(0, first as i32, width as i32, high as i32, format, element, at);
                line += high;
            }
        }
        self.bind_staging(None);
    }

    fn bind_staging(&self, staging: Option<&Memory>) {
        let key = staging.and_then(|staging| match staging {
            Memory::Buffer(buffer) => *buffer,
            Memory::Textures(_) => None,
        });
        // SAFETY: the buffer is lent.
        unsafe { self.gl.bind_buffer(glow::PIXEL_PACK_BUFFER, key) };
    }

    /// Brings what `pack` copied into an array of rows · columns: so many elements, from element `first` of all textures on. Gives whether it could;
    /// an error is the host's memory running out.
    pub(super) fn read(
        &self,
        staging: &Memory,
        out: &Float32Array,
        [rows, columns]: [f64; 2],
        [count, pitch, size]: [u32; 3],
        [first, length]: [u32; 2],
    ) -> Result<bool, JsValue> {
        self.bind_staging(Some(staging));
        let is_read = read(&self.raw, out, rows, columns, count, pitch, size, first, length);
        self.bind_staging(None);
        is_read
    }

    /// A mark behind all commands so far.
    pub(super) fn fence(self: &Rc<Self>) -> Fence {
        let clock = Stopwatch::start();
        // SAFETY: the key is made here.
        let key = unsafe { self.gl.fence_sync(glow::SYNC_GPU_COMMANDS_COMPLETE, 0).ok() };
        self.flush();
        Fence { commands: Rc::clone(self), key, clock }
    }

    /// Has what was asked for so far done, even if nobody ever waits for it.
    pub(super) fn flush(&self) {
        // SAFETY: no key.
        unsafe { self.gl.flush() };
    }
}

/// What shows that the commands before it are done.
pub(super) struct Fence {
    commands: Rc<Commands>,
    key: Option<glow::Fence>,
    clock: Stopwatch,
}

impl Fence {
    /// Whether the commands are done, or the context is lost. A browser tells that anew only after a turn of its event loop.
    pub(super) fn is_passed(&self) -> bool {
        let waiting = |key| {
            // SAFETY: the fence is deleted when this is dropped.
            let status = unsafe { self.commands.gl.client_wait_sync(key, 0, 0) };
            status == glow::TIMEOUT_EXPIRED
        };
        self.commands.is_lost() || !self.key.is_some_and(waiting)
    }

    /// Waits until the commands are done or the context is lost; gives the milliseconds that took.
    pub(super) async fn passed(self) -> f64 {
        let mut ms = 0.0;
        while !self.is_passed() {
            pause(ms).await;
            ms = self.clock.ms();
        }
        ms
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        // SAFETY: the owner is being dropped.
        self.key.into_iter().for_each(|key| unsafe { self.commands.gl.delete_sync(key) });
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        // Waiting for the collector would keep a context, of which browsers allow few, from others.
        close(&self.raw);
    }
}
