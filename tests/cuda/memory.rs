//! The stand-in's memory, of the host.

use std::collections::HashMap;
use std::sync::Mutex;

use super::{Code, OUT_OF_MEMORY, give, in_context, push, setting};

static MEMORY: Mutex<Option<HashMap<u64, Vec<u128>>>> = Mutex::new(None);

/// Filled with what is no number, so that what is read before it is written shows.
fn allocate(bytes: usize) -> Option<u64> {
    let mut memory = MEMORY.lock().unwrap();
    let blocks = memory.get_or_insert_default();
    let used: usize = blocks.values().map(|block| block.len() * 16).sum();
    if (used + bytes) as u64 > setting("STAND_IN_MEMORY_BYTES", 1 << 30) {
        return None;
    }
    let block = vec![u128::MAX; bytes.div_ceil(16)];
    let address = block.as_ptr() as u64;
    blocks.insert(address, block);
    Some(address)
}

/// Whether there is what the driver needs for a module or a stream.
pub fn has_room() -> bool {
    allocate(setting("STAND_IN_OWN_BYTES", 0) as usize).is_some_and(|address| free(address) == 0)
}

fn free(address: u64) -> Code {
    let block = MEMORY.lock().unwrap().as_mut().and_then(|blocks| blocks.remove(&address));
    if block.is_some() { 0 } else { 1 }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(to: *mut u64, bytes: usize) -> Code {
    in_context(|| allocate(bytes).map_or(OUT_OF_MEMORY, |address| unsafe { give(to, address) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocHost_v2(to: *mut u64, bytes: usize) -> Code {
    unsafe { cuMemAlloc_v2(to, bytes) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: u64) -> Code {
    in_context(|| free(address))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeHost(address: u64) -> Code {
    in_context(|| free(address))
}

fn copy(to: u64, from: u64, bytes: usize, stream: usize) -> Code {
    in_context(|| push(stream, move || unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: usize) -> Code {
    copy(to, from, bytes, stream)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: usize) -> Code {
    copy(to, from, bytes, stream)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: usize) -> Code {
    copy(to, from, bytes, stream)
}
