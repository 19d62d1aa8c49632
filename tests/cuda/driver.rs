//! A stand-in for NVIDIA's driver, for machines without a GPU: as much of libcuda as the backend calls, with the host's memory for the
//! device's. `cuda.rs` has rustc make a shared library of it.
//!
//! What is put into a stream is done as late as can be, when somebody waits or looks, and of several streams one that nobody waits for does
//! not go on: memory that is given back or changed too early, and streams that should wait for one another and do not, show as a wrong
//! result. Every call that needs a current context fails without one.
//!
//! With `--cfg newer` it has what drivers have since CUDA 12.4. Environment variables: `STAND_IN_DEVICES`, `STAND_IN_VERSION`,
//! `STAND_IN_MEMORY_BYTES`, `STAND_IN_OWN_BYTES`, what a module or a stream needs, `STAND_IN_STREAMS`, how many there may be at once,
//! `STAND_IN_PROHIBITED`, the GPU that no process may use, and `STAND_IN_FAULT_AT`, the launch that ends the context.
#![allow(non_snake_case, clippy::missing_safety_doc, clippy::undocumented_unsafe_blocks, clippy::too_many_arguments)]

mod kernels;
mod memory;
mod params;

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use kernels::Work;
use memory::has_room;

type Code = c_int;

const OUT_OF_MEMORY: Code = 2;
const DEVICE_UNAVAILABLE: Code = 46;
const INVALID_CONTEXT: Code = 201;
const INVALID_PTX: Code = 218;
const NOT_FOUND: Code = 500;
const NOT_READY: Code = 600;
const ILLEGAL_ADDRESS: Code = 700;

/// The modules that there are, to know by its text which variant is loaded.
const MODULES: &str = concat!(
    include_str!(concat!(env!("STAND_IN_PTX"), "/tiled.ptx")),
    include_str!(concat!(env!("STAND_IN_PTX"), "/direct.ptx")),
    include_str!(concat!(env!("STAND_IN_PTX"), "/rows.ptx")),
    include_str!(concat!(env!("STAND_IN_PTX"), "/vector.ptx")),
    include_str!(concat!(env!("STAND_IN_PTX"), "/split.ptx")),
    include_str!(concat!(env!("STAND_IN_PTX"), "/split_units.ptx")),
    include_str!(concat!(env!("STAND_IN_PTX"), "/sum.ptx"))
);

static FAULT: AtomicI32 = AtomicI32::new(0);
static LAUNCHES: AtomicU64 = AtomicU64::new(0);
/// By stream.
static QUEUES: Mutex<Option<HashMap<usize, VecDeque<Entry>>>> = Mutex::new(None);

thread_local! { static CONTEXTS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) }; }

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

/// Fails without a context, and for good after a fault.
fn in_context(body: impl FnOnce() -> Code) -> Code {
    match FAULT.load(SeqCst) {
        0 if CONTEXTS.with_borrow(Vec::is_empty) => INVALID_CONTEXT,
        0 => body(),
        fault => fault,
    }
}

enum Entry {
    Work(Work),
    /// All that another stream had in it then.
    Wait(Arc<Event>),
}

fn push(stream: usize, work: impl FnOnce() + Send + 'static) -> Code {
    put(stream, Entry::Work(Box::new(work)))
}

fn put(stream: usize, entry: Entry) -> Code {
    QUEUES.lock().unwrap().get_or_insert_default().entry(stream).or_default().push_back(entry);
    0
}

/// Does what is in the stream up to a place, and in others only what that waits for, whichever thread waits.
fn drain(stream: usize, is_enough: impl Fn() -> bool) -> Code {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap();
    go_on(stream, &is_enough);
    FAULT.load(SeqCst)
}

fn go_on(stream: usize, is_enough: &dyn Fn() -> bool) {
    while !is_enough() {
        let next = QUEUES.lock().unwrap().as_mut().and_then(|queues| queues.get_mut(&stream)?.pop_front());
        match next {
            Some(Entry::Work(work)) => work(),
            Some(Entry::Wait(event)) => go_on(event.stream.load(SeqCst), &|| event.is_reached()),
            None => return,
        }
    }
}

unsafe fn give<T>(to: *mut T, value: T) -> Code {
    unsafe { to.write(value) };
    0
}

unsafe fn give_text(to: *mut c_char, length: c_int, text: &CStr) -> Code {
    let bytes = text.to_bytes_with_nul();
    assert!(bytes.len() <= length as usize);
    unsafe { to.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> Code {
    unsafe { give(version, setting("STAND_IN_VERSION", 12_020) as c_int) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: c_uint) -> Code {
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(code: Code, to: *mut *const c_char) -> Code {
    let name = match code {
        OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
        INVALID_CONTEXT => c"CUDA_ERROR_INVALID_CONTEXT",
        ILLEGAL_ADDRESS => c"CUDA_ERROR_ILLEGAL_ADDRESS",
        _ => return unsafe { give(to, std::ptr::null()) },
    };
    unsafe { give(to, name.as_ptr()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(_code: Code, to: *mut *const c_char) -> Code {
    unsafe { give(to, std::ptr::null()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> Code {
    unsafe { give(count, setting("STAND_IN_DEVICES", 1) as c_int) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> Code {
    unsafe { give(device, ordinal) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, _device: c_int) -> Code {
    unsafe { give_text(name, length, c"stand-in") }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetPCIBusId(address: *mut c_char, length: c_int, device: c_int) -> Code {
    unsafe { give_text(address, length, if device == 0 { c"0000:3B:00.0" } else { c"0000:5E:00.0" }) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> Code {
    unsafe { give(uuid, [7 + device as u8; 16]) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, _device: c_int) -> Code {
    unsafe { give(bytes, setting("STAND_IN_MEMORY_BYTES", 1 << 30) as usize) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) -> Code {
    let known = match attribute {
        1 => 1024,   // threads a block
        8 => 49_152, // shared memory a block
        16 => 4,     // multiprocessors
        75 => 9,     // compute capability, the first number
        76 | 18 => 0,
        2..=4 => 1024,          // block
        5 => 2_147_483_647,     // grid
        6 | 7 => 65_535,
        10 => 32,               // warp
        40 => 2,                // engines that copy
        97 => 232_448,          // shared memory a block, if asked for
        _ => return 1,
    };
    unsafe { give(value, known) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int) -> Code {
    // Which no device is numbered as.
    const NONE: u64 = 99;
    if setting("STAND_IN_PROHIBITED", NONE) == device as u64 { DEVICE_UNAVAILABLE } else { unsafe { give(context, 1) } }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(_device: c_int) -> Code {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxPushCurrent_v2(context: usize) -> Code {
    CONTEXTS.with_borrow_mut(|contexts| contexts.push(context));
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxPopCurrent_v2(context: *mut usize) -> Code {
    match CONTEXTS.with_borrow_mut(Vec::pop) {
        Some(was) => unsafe { give(context, was) },
        None => INVALID_CONTEXT,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(stream: *mut usize, _flags: c_uint) -> Code {
    static LAST: AtomicU64 = AtomicU64::new(0);
    in_context(|| {
        if !has_room() || STREAMS.load(SeqCst) >= setting("STAND_IN_STREAMS", u64::MAX) {
            return OUT_OF_MEMORY;
        }
        STREAMS.fetch_add(1, SeqCst);
        unsafe { give(stream, LAST.fetch_add(1, SeqCst) as usize + 1) }
    })
}

/// Those that there are.
static STREAMS: AtomicU64 = AtomicU64::new(0);

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(stream: usize) -> Code {
    STREAMS.fetch_sub(1, SeqCst);
    in_context(|| drain(stream, || false))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: usize) -> Code {
    in_context(|| drain(stream, || false))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamWaitEvent(stream: usize, event: *const Event, _flags: c_uint) -> Code {
    in_context(|| put(stream, Entry::Wait(unsafe { shared(event) })))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamQuery(stream: usize) -> Code {
    let is_empty = |queues: &HashMap<usize, VecDeque<Entry>>| queues.get(&stream).is_none_or(VecDeque::is_empty);
    in_context(|| if QUEUES.lock().unwrap().as_ref().is_none_or(is_empty) { 0 } else { NOT_READY })
}

/// Where it is, and when it was reached.
#[derive(Default)]
pub struct Event {
    stream: AtomicUsize,
    reached: Mutex<Option<Instant>>,
}

impl Event {
    fn is_reached(&self) -> bool {
        self.reached.lock().unwrap().is_some()
    }
}

unsafe fn shared(event: *const Event) -> Arc<Event> {
    unsafe {
        Arc::increment_strong_count(event);
        Arc::from_raw(event)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(event: *mut *const Event, _flags: c_uint) -> Code {
    in_context(|| unsafe { give(event, Arc::into_raw(Arc::new(Event::default()))) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventDestroy_v2(event: *const Event) -> Code {
    drop(unsafe { Arc::from_raw(event) });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventRecord(event: *const Event, stream: usize) -> Code {
    in_context(|| {
        let event = unsafe { shared(event) };
        event.stream.store(stream, SeqCst);
        push(stream, move || *event.reached.lock().unwrap() = Some(Instant::now()))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(_event: *const Event) -> Code {
    // Never ready at the first look, so that the waiting thread has work.
    in_context(|| NOT_READY)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventSynchronize(event: *const Event) -> Code {
    in_context(|| {
        let event = unsafe { shared(event) };
        drain(event.stream.load(SeqCst), || event.is_reached())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(ms: *mut f32, from: *const Event, to: *const Event) -> Code {
    in_context(|| match unsafe { (*(*from).reached.lock().unwrap(), *(*to).reached.lock().unwrap()) } {
        (Some(from), Some(to)) if to < from => unsafe { give(ms, (from - to).as_secs_f32() * -1e3) },
        (Some(from), Some(to)) => unsafe { give(ms, (to - from).as_secs_f32() * 1e3) },
        _ => NOT_READY,
    })
}

/// The kernel in a cubin, which is an ELF file: what the name of its section of code says.
unsafe fn entry_of_machine_code(image: *const u8) -> Option<String> {
    if unsafe { std::slice::from_raw_parts(image, 4) } != b"\x7fELF" {
        return None;
    }
    let number = |at: usize, bytes: usize| unsafe {
        (0..bytes).rev().fold(0, |number, byte| number << 8 | usize::from(*image.add(at + byte)))
    };
    // The table of sections, which the names come before.
    let file = unsafe { std::slice::from_raw_parts(image, number(40, 8)) };
    let at = file.windows(6).position(|part| part == b".text.")? + 6;
    let length = file[at..].iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&file[at..at + length]).into_owned())
}

/// A module is its variant's name, or that of its entry point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut *mut String,
    ptx: *const c_char,
    _count: c_uint,
    _options: *mut c_int,
    _values: *mut *mut c_void,
) -> Code {
    in_context(|| {
        if !has_room() {
            return OUT_OF_MEMORY;
        }
        if let Some(name) = unsafe { entry_of_machine_code(ptx.cast()) } {
            return unsafe { give(module, Box::into_raw(Box::new(name))) };
        }
        let ptx = unsafe { CStr::from_ptr(ptx) }.to_str().unwrap_or_default();
        let named = MODULES.split("//# ").find_map(|part| part.split_once('\n').filter(|(_, text)| text.starts_with(ptx)));
        let own = || Some(ptx.split_once(".entry ")?.1.split_once('(')?.0);
        let name = named.map(|(name, _)| name).or_else(own);
        name.map_or(INVALID_PTX, |name| unsafe { give(module, Box::into_raw(Box::new(name.to_owned()))) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(function: *mut *mut String, module: *mut String, name: *const c_char) -> Code {
    let name = unsafe { CStr::from_ptr(name) };
    let is_there = name == c"matmul" || name.to_str() == Ok(unsafe { &*module }.as_str());
    in_context(|| if is_there { unsafe { give(function, module) } } else { NOT_FOUND })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: *const String) -> Code {
    // Threads of a block, or the shared memory that the kernel declares.
    let declared = if unsafe { &*function } == "add_up" { 512 } else { 0 };
    in_context(|| unsafe { give(value, if attribute == 1 { declared } else { 1024 }) })
}

/// Drivers have it from CUDA 12.4 on.
#[cfg(newer)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetParamInfo(function: *const String, index: usize, offset: *mut usize, bytes: *mut usize) -> Code {
    let arguments = match unsafe { &*function }.as_str() {
        "saxpy" => 3,
        "add_up" => 2,
        _ => 0,
    };
    in_context(|| if index < arguments { unsafe { give(offset, index * 8) | give(bytes, 8) } } else { 1 })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuFuncSetAttribute(_function: *const String, _attribute: c_int, _value: c_int) -> Code {
    in_context(|| 0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleUnload(module: *mut String) -> Code {
    drop(unsafe { Box::from_raw(module) });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernel(
    function: *const String,
    blocks: c_uint,
    _grid_y: c_uint,
    layers: c_uint,
    threads: c_uint,
    _block_y: c_uint,
    _block_z: c_uint,
    _shared_bytes: c_uint,
    stream: usize,
    arguments: *const *const c_void,
    _extra: *mut *mut c_void,
) -> Code {
    in_context(|| {
        if LAUNCHES.fetch_add(1, SeqCst) + 1 == setting("STAND_IN_FAULT_AT", u64::MAX) {
            return push(stream, || FAULT.store(ILLEGAL_ADDRESS, SeqCst));
        }
        let work = unsafe { kernels::work(&*function, [blocks, layers, threads], arguments) };
        work.map_or(1, |work| put(stream, Entry::Work(work)))
    })
}
