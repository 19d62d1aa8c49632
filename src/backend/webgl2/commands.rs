//! WebGL's commands, in the sequences in which they are used. Nothing is decided here, and nothing remembered but what is bound.
//!
//! A lost context takes every command and does nothing. So nothing is checked on the way; [`fault`](Commands::fault) tells in the end. It alone
//! waits for the browser's GPU process, and so is asked rarely.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use js_sys::{Array, Float32Array, Int32Array, Object, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{WebGl2RenderingContext as Gl, WebGlBuffer, WebGlFramebuffer, WebGlSync, WebGlTexture};

use super::buffer::{Form, Memory, Textures};
use super::pipeline::{Linking, Program};
use crate::clock::Stopwatch;
use crate::plan::matmul::FragmentCaps;

/// What the bindings have no command for: a canvas, the page's own arrays, and the page's event loop.
#[wasm_bindgen(module = "/src/backend/webgl2/gl.js")]
extern "C" {
    fn context(power_preference: &str) -> Option<Gl>;
    fn close(gl: &Gl);
    #[wasm_bindgen(catch)]
    fn write(gl: &Gl, width: u32, values: &Object, form: u32) -> Result<(), JsValue>;
    #[wasm_bindgen(catch)]
    #[rustfmt::skip]
    fn read(gl: &Gl, out: &Float32Array, rows: f64, columns: f64, count: u32, pitch: u32, size: u32, from: u32) -> Result<i32, JsValue>;
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
    gl: Gl,
    /// Whether the browser says when a program is made.
    tells_of_programs: bool,
    bound: Bound,
    /// How many things were made that can be bound.
    made: Cell<u32>,
}

/// Something that can be bound, with a number that nothing else has or had.
pub(super) struct Numbered<T> {
    raw: T,
    number: u32,
}

/// A texture.
pub(super) type Texture = Numbered<WebGlTexture>;
/// What is drawn to.
pub(super) type Framebuffer = Numbered<WebGlFramebuffer>;

/// Textures that a fragment shader can read, everywhere.
const UNITS: usize = 16;

/// What is bound, by its number, 0 for nothing. A browser checks each command, so none is given twice: of like drawings one behind the other only
/// what is drawn to changes.
#[derive(Default)]
struct Bound {
    program: Cell<u32>,
    framebuffer: Cell<u32>,
    /// First line, width and height.
    viewport: Cell<[u32; 3]>,
    unit: Cell<usize>,
    textures: [Cell<u32>; UNITS],
}

/// The name of KHR_parallel_shader_compile for whether a program is made.
const COMPLETION_STATUS: u32 = 0x91b1;

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
        let gl = context(power_preference).ok_or(NoContext::Refused)?;
        if gl.is_context_lost() {
            return Err(NoContext::Lost);
        }
        let mut commands = Self { gl, tells_of_programs: false, bound: Bound::default(), made: Cell::new(0) };
        commands.tells_of_programs = commands.turns_on("KHR_parallel_shader_compile");
        Ok(commands)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.gl.is_context_lost()
    }

    /// Turns an extension on, if it is there.
    fn turns_on(&self, extension: &str) -> bool {
        matches!(self.gl.get_extension(extension), Ok(Some(_)))
    }

    pub(super) fn describe(&self) -> About {
        /// Of WEBGL_debug_renderer_info.
        const UNMASKED: [u32; 2] = [0x9246, 0x9245];
        let names = if self.turns_on("WEBGL_debug_renderer_info") { UNMASKED } else { [Gl::RENDERER, Gl::VENDOR] };
        // A lost context has none of them.
        let told = |name| self.gl.get_parameter(name).unwrap_or_default();
        let number = |name| told(name).as_f64().unwrap_or(0.0) as u32;
        let viewport = told(Gl::MAX_VIEWPORT_DIMS).dyn_into::<Int32Array>().map_or(0, |sides| sides.get_index(0).min(sides.get_index(1)));
        let [name, vendor] = names.map(|name| told(name).as_string().unwrap_or_default());
        About {
            fragment: FragmentCaps {
                targets: number(Gl::MAX_DRAW_BUFFERS).min(number(Gl::MAX_COLOR_ATTACHMENTS)),
                block_bytes: number(Gl::MAX_UNIFORM_BLOCK_SIZE),
                alignment_bytes: number(Gl::UNIFORM_BUFFER_OFFSET_ALIGNMENT),
            },
            draws_to_floats: self.turns_on("EXT_color_buffer_float"),
            side: number(Gl::MAX_TEXTURE_SIZE).min(viewport.max(0) as u32),
            name,
            vendor,
        }
    }

    /// An error that WebGL has to tell, or 0. It has one flag for each of its few kinds, and this takes all down: what lacked memory is the cause
    /// of others.
    pub(super) fn fault(&self) -> u32 {
        if self.is_lost() {
            return Gl::CONTEXT_LOST_WEBGL;
        }
        let mut first = self.gl.get_error();
        if first != 0 {
            for other in (0..8).map(|_| self.gl.get_error()).take_while(|&other| other != 0) {
                first = if other == Gl::OUT_OF_MEMORY { other } else { first };
            }
        }
        first
    }

    /// Has a program made, which the browser does behind the page's back. None of a lost context.
    pub(super) fn begin(&self, vertices: &str, fragments: &str) -> Option<Linking> {
        let gl = &self.gl;
        let key = gl.create_program()?;
        let mut shaders = Vec::new();
        for (stage, source) in [(Gl::VERTEX_SHADER, vertices), (Gl::FRAGMENT_SHADER, fragments)] {
            let shader = gl.create_shader(stage)?;
            gl.shader_source(&shader, source);
            gl.compile_shader(&shader);
            gl.attach_shader(&key, &shader);
            shaders.push(shader);
        }
        gl.link_program(&key);
        Some(Linking { key, shaders })
    }

    /// Whether it is made. Where the browser does not say that, it is as if it were.
    pub(super) fn is_made(&self, linking: &Linking) -> bool {
        // A lost context says nothing.
        !self.tells_of_programs || self.gl.get_program_parameter(&linking.key, COMPLETION_STATUS).as_bool() != Some(false) || self.is_lost()
    }

    /// The program, whose samplers have these names, in the order of their units; or the compiler's words on why there is none. It waits until that is made.
    pub(super) fn link(&self, Linking { key, shaders }: Linking, samplers: &str) -> Result<Program, String> {
        let gl = &self.gl;
        let linked = gl.get_program_parameter(&key, Gl::LINK_STATUS).is_truthy();
        let mut log = String::new();
        for shader in &shaders {
            if !linked {
                log += &gl.get_shader_info_log(shader).unwrap_or_default();
            }
            gl.delete_shader(Some(shader));
        }
        if !linked {
            log += &gl.get_program_info_log(&key).unwrap_or_default();
            gl.delete_program(Some(&key));
            return Err(log);
        }
        let program = Program { params: gl.get_uniform_location(&key, "params"), key: self.numbered(key), told: Cell::default() };
        self.use_program(&program);
        for (unit, name) in samplers.split(' ').enumerate() {
            if let Some(place) = gl.get_uniform_location(&program.key.raw, name) {
                gl.uniform1i(Some(&place), unit as i32);
            }
        }
        for block in 0.. {
            let index = gl.get_uniform_block_index(&program.key.raw, &format!("Block{block}"));
            if index == Gl::INVALID_INDEX {
                break;
            }
            gl.uniform_block_binding(&program.key.raw, index, block);
        }
        Ok(program)
    }

    fn numbered<T>(&self, raw: T) -> Numbered<T> {
        self.made.set(self.made.get() + 1);
        Numbered { raw, number: self.made.get() }
    }

    fn use_program(&self, Program { key, .. }: &Program) {
        if self.bound.program.replace(key.number) != key.number {
            self.gl.use_program(Some(&key.raw));
        }
    }

    fn bind_texture(&self, unit: usize, texture: Option<&Texture>) {
        let number = texture.map_or(0, |texture| texture.number);
        if self.bound.textures.get(unit).is_some_and(|bound| bound.replace(number) != number) {
            self.activate(unit);
            self.gl.bind_texture(Gl::TEXTURE_2D, texture.map(|texture| &texture.raw));
        }
    }

    fn activate(&self, unit: usize) {
        if self.bound.unit.replace(unit) != unit {
            self.gl.active_texture(Gl::TEXTURE0 + unit as u32);
        }
    }

    /// So many textures.
    pub(super) fn textures(&self, count: u32, [width, height]: [u32; 2], form: Form) -> Memory {
        let gl = &self.gl;
        let format = match form {
            Form::Float => Gl::RGBA32F,
            Form::Half => Gl::RGBA16F,
            Form::Integer => Gl::RGBA32UI,
        };
        let texture = |_| {
            let texture = self.numbered(gl.create_texture()?);
            self.bind_texture(0, Some(&texture));
            self.activate(0);
            gl.tex_storage_2d(Gl::TEXTURE_2D, 1, format, width as i32, height as i32);
            // One of these that would be filtered counts as incomplete, and reads as zero.
            for filter in [Gl::TEXTURE_MIN_FILTER, Gl::TEXTURE_MAG_FILTER] {
                gl.tex_parameteri(Gl::TEXTURE_2D, filter, Gl::NEAREST as i32);
            }
            Some(texture)
        };
        Memory::Textures(Textures { list: (0..count).filter_map(texture).collect(), framebuffer: OnceCell::new() })
    }

    /// Room for a result on its way to the host, or for what stays with the GPU.
    pub(super) fn buffer(&self, bytes: i32, is_read: bool) -> Memory {
        let buffer = self.gl.create_buffer();
        self.gl.bind_buffer(Gl::PIXEL_PACK_BUFFER, buffer.as_ref());
        self.gl.buffer_data_with_i32(Gl::PIXEL_PACK_BUFFER, bytes, if is_read { Gl::STREAM_READ } else { Gl::STREAM_COPY });
        self.gl.bind_buffer(Gl::PIXEL_PACK_BUFFER, None);
        Memory::Buffer(buffer)
    }

    /// Gives memory back at once, not when some collector comes by.
    pub(super) fn delete(&self, memory: &Memory) {
        match memory {
            Memory::Textures(Textures { list, framebuffer }) => {
                list.iter().for_each(|texture| self.gl.delete_texture(Some(&texture.raw)));
                self.gl.delete_framebuffer(framebuffer.get().map(|framebuffer| &framebuffer.raw));
            }
            Memory::Buffer(buffer) => self.gl.delete_buffer(buffer.as_ref()),
        }
    }

    /// Writes an array to a texture, from where it is. An error is the host's memory running out.
    pub(super) fn write(&self, textures: &Textures, width: u32, values: &Object, form: Form) -> Result<(), JsValue> {
        self.bind_texture(0, textures.list.first());
        self.activate(0);
        write(&self.gl, width, values, form as u32)
    }

    /// Makes the textures what is drawn to and read from.
    fn attach(&self, targets: &Textures) {
        let gl = &self.gl;
        let is_new = targets.framebuffer.get().is_none();
        if is_new {
            // A lost context gives none.
            let Some(framebuffer) = gl.create_framebuffer() else { return };
            let _ = targets.framebuffer.set(self.numbered(framebuffer));
        }
        let Some(Framebuffer { raw, number }) = targets.framebuffer.get() else { return };
        if self.bound.framebuffer.replace(*number) != *number {
            gl.bind_framebuffer(Gl::FRAMEBUFFER, Some(raw));
        }
        if is_new {
            let places = Array::new();
            for (place, texture) in (Gl::COLOR_ATTACHMENT0..).zip(&targets.list) {
                gl.framebuffer_texture_2d(Gl::FRAMEBUFFER, place, Gl::TEXTURE_2D, Some(&texture.raw), 0);
                places.push(&place.into());
            }
            gl.draw_buffers(&places);
        }
    }

    /// Runs a program for each texel of the targets, some lines at a time, or a strip.
    pub(super) fn draw(
        &self,
        program: &Program,
        params: &[u32],
        samplers: &[Option<&Texture>],
        targets: &Textures,
        [width, height, lines]: [u32; 3],
        strips: Option<Strips<'_>>,
    ) {
        let gl = &self.gl;
        self.attach(targets);
        self.use_program(program);
        let told = program.told.take();
        if *told == *params {
            program.told.set(told);
        } else {
            gl.uniform1uiv_with_u32_array(program.params.as_ref(), params);
            program.told.set(params.into());
        }
        for (unit, &texture) in samplers.iter().enumerate() {
            self.bind_texture(unit, texture);
        }
        let each = strips.as_ref().map_or(lines, |strips| strips.lines);
        let mut drawn = 0;
        for line in (0..height).step_by(each as usize) {
            if let Some(&Strips { buffer: Memory::Buffer(buffer), stride_bytes, blocks, block_bytes, .. }) = strips.as_ref() {
                for block in 0..blocks {
                    let offset = line / each * stride_bytes + block * block_bytes;
                    gl.bind_buffer_range_with_i32_and_i32(Gl::UNIFORM_BUFFER, block, buffer.as_ref(), offset as i32, block_bytes as i32);
                }
            }
            let viewport = [line, width, each.min(height - line)];
            if self.bound.viewport.replace(viewport) != viewport {
                gl.viewport(0, line as i32, width as i32, viewport[2] as i32);
            }
            gl.draw_arrays(Gl::TRIANGLES, 0, 3);
            // Each part is a piece of work of its own to the driver.
            drawn += each;
            if drawn >= lines && lines < height {
                gl.flush();
                drawn = 0;
            }
        }
    }

    /// Starts the copy of the first textures into a staging buffer, one behind the other.
    pub(super) fn pack(&self, targets: &Textures, count: u32, [width, height]: [u32; 2], form: Form, staging: &Memory) {
        let gl = &self.gl;
        self.attach(targets);
        self.bind_staging(Some(staging));
        let (format, element) = if form == Form::Integer { (Gl::RGBA_INTEGER, Gl::UNSIGNED_INT) } else { (Gl::RGBA, Gl::FLOAT) };
        for index in 0..count.min(targets.list.len() as u32) {
            gl.read_buffer(Gl::COLOR_ATTACHMENT0 + index);
            let at = (index * width * height * 16) as i32;
            // It throws where no buffer is bound, which of a lost context none is.
            let _ = gl.read_pixels_with_i32(0, 0, width as i32, height as i32, format, element, at);
        }
        self.bind_staging(None);
    }

    fn bind_staging(&self, staging: Option<&Memory>) {
        let buffer: Option<&WebGlBuffer> = match staging {
            Some(Memory::Buffer(buffer)) => buffer.as_ref(),
            _ => None,
        };
        self.gl.bind_buffer(Gl::PIXEL_PACK_BUFFER, buffer);
    }

    /// Brings what `pack` copied into an array of rows · columns, piece by piece, from piece `from` on; gives the one that is next, 0 if there is none,
    /// and −1 if it could not. An error is the host's memory running out.
    pub(super) fn read(
        &self,
        staging: &Memory,
        out: &Float32Array,
        [rows, columns]: [f64; 2],
        [count, pitch, size]: [u32; 3],
        from: u32,
    ) -> Result<i32, JsValue> {
        self.bind_staging(Some(staging));
        let next = read(&self.gl, out, rows, columns, count, pitch, size, from);
        self.bind_staging(None);
        next
    }

    /// A mark behind all commands so far.
    pub(super) fn fence(self: &Rc<Self>) -> Fence {
        let clock = Stopwatch::start();
        let key = self.gl.fence_sync(Gl::SYNC_GPU_COMMANDS_COMPLETE, 0);
        self.flush();
        Fence { commands: Rc::clone(self), key, clock }
    }

    /// Has what was asked for so far done, even if nobody ever waits for it.
    pub(super) fn flush(&self) {
        self.gl.flush();
    }
}

/// What shows that the commands before it are done.
pub(super) struct Fence {
    commands: Rc<Commands>,
    key: Option<WebGlSync>,
    clock: Stopwatch,
}

impl Fence {
    /// Whether the commands are done, or the context is lost. A browser tells that anew only after a turn of its event loop.
    pub(super) fn is_passed(&self) -> bool {
        let is_waiting = |key| self.commands.gl.client_wait_sync_with_u32(key, 0, 0) == Gl::TIMEOUT_EXPIRED;
        self.commands.is_lost() || !self.key.as_ref().is_some_and(is_waiting)
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
        self.commands.gl.delete_sync(self.key.as_ref());
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        // Waiting for the collector would keep a context, of which browsers allow few, from others.
        close(&self.gl);
    }
}
