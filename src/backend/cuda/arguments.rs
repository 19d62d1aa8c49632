//! What a kernel of the caller's takes, so that no definition has the driver read past what a launch gives it: it reads as many arguments,
//! and as many bytes of each, as the kernel declares. Drivers tell what that is from CUDA 12.4 on; else it is read in the PTX.

use cudarc::driver::sys::{self, CUfunction, CUresult};

use super::pipeline::Module;
use crate::compute::{KernelDefinition, Language, Signature};
use crate::error::{Error, Result};
use crate::info::BackendId;

/// Of a pointer.
const POINTER_BYTES: u64 = 8;
/// WGSL rounds the size of a struct up, at most to a multiple of this.
const ROUNDED_BYTES: u64 = 16;
/// More than any kernel has.
const MOST: usize = 1 << 15;

/// Refuses a definition whose launches would not give the kernel what it takes.
pub(super) fn check(definition: &KernelDefinition, language: Language, signature: &Signature, module: &Module, ptx: &str) -> Result<()> {
    let taken = ask(module).or_else(|| read(ptx, &entry_of(definition))).ok_or_else(|| Error::Unavailable {
        backend: BackendId::Cuda,
        reason: format!(
            "what the kernel {} takes can be read neither in its {language} nor by this driver, which is older than CUDA 12.4",
            definition.name
        ),
        remedy: "update NVIDIA's driver to 550 or later".to_owned(),
    })?;
    let params = signature.params.map(|params| u64::from(params.bytes));
    let given: Vec<u64> = signature.bindings.iter().map(|_| POINTER_BYTES).chain(params).collect();
    if fits(&given, &taken, signature.bindings.len()) {
        return Ok(());
    }
    Err(Box::new(Error::InvalidOption {
        option: format!("the size in bytes of each argument of the kernel {}", definition.name),
        value: format!("{given:?} by its definition"),
        expected: format!(
            "its {language} takes {taken:?}: {POINTER_BYTES} for the pointer to each buffer, then the parameters (of buffers in WGSL those count \
             that its entry point uses)"
        ),
    }))
}

/// The entry point's name in CUDA C++ and PTX.
pub(super) fn entry_of(definition: &KernelDefinition) -> String {
    definition.entry.as_ref().unwrap_or(&definition.name).clone()
}

/// Whether arguments of these sizes, so many of them pointers, are what the kernel takes. Parameters may be longer by what rounding adds.
fn fits(given: &[u64], taken: &[u64], pointers: usize) -> bool {
    let fits = |(at, (given, taken)): (usize, (&u64, &u64))| {
        if at < pointers { given == taken } else { taken <= given && *given <= taken.next_multiple_of(ROUNDED_BYTES) }
    };
    given.len() == taken.len() && given.iter().zip(taken).enumerate().all(fits)
}

/// The bytes of each argument, by the driver; None if it is too old to tell.
fn ask(module: &Module) -> Option<Vec<u64>> {
    type ParamInfo = unsafe extern "C" fn(CUfunction, usize, *mut usize, *mut usize) -> CUresult;
    let _current = module.enter().ok()?;
    // SAFETY: the driver is loaded for good, and the type is that of its header.
    let param_info = unsafe { sys::culib().get::<ParamInfo>(b"cuFuncGetParamInfo") }.ok()?;
    let mut sizes = Vec::new();
    while sizes.len() < MOST {
        let (mut offset_bytes, mut bytes) = (0, 0);
        // SAFETY: the function is of the current context, and the driver writes two numbers.
        match unsafe { param_info(module.function(), sizes.len(), &raw mut offset_bytes, &raw mut bytes) } {
            CUresult::CUDA_SUCCESS => sizes.push(bytes as u64),
            // Past the last.
            CUresult::CUDA_ERROR_INVALID_VALUE => return Some(sizes),
            _ => return None,
        }
    }
    None
}

/// The bytes of each argument of an entry point of PTX; None if it is not there, or not written as expected.
fn read(ptx: &str, entry: &str) -> Option<Vec<u64>> {
    let text = without_comments(ptx);
    let named = text.split(".entry").skip(1).find_map(|rest| {
        let rest = rest.strip_prefix(char::is_whitespace)?.trim_start().strip_prefix(entry)?;
        rest.starts_with(|after: char| after.is_whitespace() || after == '(' || after == '{').then(|| rest.trim_start())
    })?;
    let Some(list) = named.strip_prefix('(') else { return Some(Vec::new()) };
    let list = list.split_once(')')?.0;
    if list.trim().is_empty() { Some(Vec::new()) } else { list.split(',').map(bytes_of).collect() }
}

/// The bytes of an argument as it is declared, e.g. `.param .align 4 .b8 name[8]`.
fn bytes_of(declared: &str) -> Option<u64> {
    let (before, count) = match declared.split_once('[') {
        None => (declared, 1),
        Some((before, count)) => (before, number(count.split_once(']')?.0.trim())?),
    };
    let mut words = before.split_whitespace();
    if words.next() != Some(".param") {
        return None;
    }
    let (mut bytes, mut lanes) = (None::<u64>, 1);
    for word in words.filter(|word| word.starts_with('.')) {
        match word {
            ".b8" | ".u8" | ".s8" => bytes = Some(1),
            ".b16" | ".u16" | ".s16" | ".f16" | ".bf16" => bytes = Some(2),
            ".b32" | ".u32" | ".s32" | ".f32" | ".f16x2" | ".bf16x2" => bytes = Some(4),
            ".b64" | ".u64" | ".s64" | ".f64" => bytes = Some(8),
            ".b128" => bytes = Some(16),
            ".v2" => lanes = 2,
            ".v4" => lanes = 4,
            ".v8" => lanes = 8,
            ".ptr" | ".align" | ".global" | ".const" | ".local" | ".shared" => {}
            _ => return None,
        }
    }
    bytes?.checked_mul(lanes)?.checked_mul(count)
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        // One that begins with a zero is octal.
        None if text.len() > 1 && text.starts_with('0') => u64::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    }
}

fn without_comments(ptx: &str) -> String {
    let (mut rest, mut text) = (ptx, String::with_capacity(ptx.len()));
    while let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        text.push_str(&rest[..at]);
        text.push(' ');
        let end = if rest[at..].starts_with("//") { "\n" } else { "*/" };
        rest = rest[at + 2..].split_once(end).map_or("", |(_, after)| after);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_in_ptx() {
        let saxpy = include_str!("../../../tests/compute/saxpy.ptx");
        assert_eq!(read(saxpy, "saxpy"), Some(vec![8, 8, 8]));
        assert_eq!(read(saxpy, "sax"), None);
        let many = "
            // .entry a(.param .u64 x)
            /* .entry a(.param .u64 x) */ .visible .entry\tb_a ( .param .u64 x ) ;
            .weak .entry a(.param .u64 .ptr .global .align 16 a_0, /* b, c */ .param .v4 .f32 a_1,
                .param .align 8 .b8 a_2 [0x18], .param .f64 a_3[2],.param .b16 a_4) .maxntid 64, 1, 1 { }
            .entry none\n{ }
            .entry nothing() { }
            .entry strange(.param .texref t) { }
            .entry counted(.param .b8 x[4 * 2]) { }";
        assert_eq!(read(many, "a"), Some(vec![8, 16, 24, 16, 2]));
        assert_eq!(read(many, "b_a"), Some(vec![8]));
        assert_eq!((read(many, "none"), read(many, "nothing")), (Some(vec![]), Some(vec![])));
        assert_eq!((read(many, "strange"), read(many, "counted"), read(many, "other"), read("", "a")), (None, None, None, None));
    }

    /// Those that NVRTC wrote for this crate, of which one takes four pointers and each some parameters.
    #[test]
    fn every_kernel_of_the_crate_can_be_read() {
        let tiled = include_str!("../../../shaders/matmul/tiled.ptx");
        let first = tiled.split("//# ").nth(1).unwrap();
        let taken = read(first, "matmul").unwrap();
        assert!(taken.len() == 6 && taken[..5] == [8; 5] && taken[5] > 64, "{taken:?}");
    }

    #[test]
    fn a_definition_fits_its_kernel_or_does_not() {
        assert!(fits(&[8, 8, 8], &[8, 8, 8], 2) && fits(&[], &[], 0) && fits(&[8], &[8], 1));
        // A struct of three numbers takes four in WGSL.
        assert!(fits(&[8, 16], &[8, 12], 1));
        for (given, taken, pointers) in
            [(&[8][..], &[8, 8][..], 1), (&[8, 8], &[8], 2), (&[8, 4], &[8, 8], 1), (&[8, 32], &[8, 8], 1), (&[8], &[4], 1), (&[], &[8], 0)]
        {
            assert!(!fits(given, taken, pointers), "{given:?} {taken:?}");
        }
    }
}
