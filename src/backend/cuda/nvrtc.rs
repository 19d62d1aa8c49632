//! NVRTC, NVIDIA's compiler as a library, where it is installed: for kernels of the caller's in CUDA C++. The crate's own need none.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::OnceLock;

use libloading::Library;

use super::load::{self, Missing};

const INSTALL: &str = "install NVIDIA's CUDA toolkit, or only its NVRTC (on Debian and Ubuntu with NVIDIA's archive: cuda-nvrtc-13-0; from \
                       PyPI: nvidia-cuda-nvrtc) where the system looks for libraries; or give the kernel as PTX";

#[cfg(not(windows))]
const NAMES: [&str; 3] = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"];
#[cfg(windows)]
const NAMES: [&str; 2] = ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"];

type Program = *mut c_void;
type Code = c_int;

/// The functions of the library that are called.
pub(super) struct Nvrtc {
    create: unsafe extern "C" fn(*mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char) -> Code,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Code,
    destroy: unsafe extern "C" fn(*mut Program) -> Code,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> Code,
    log: unsafe extern "C" fn(Program, *mut c_char) -> Code,
    ptx_size: unsafe extern "C" fn(Program, *mut usize) -> Code,
    ptx: unsafe extern "C" fn(Program, *mut c_char) -> Code,
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> Code,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> Code,
    explain: unsafe extern "C" fn(Code) -> *const c_char,
    /// The architectures that it knows, 90 for 9.0, ascending.
    architectures: Vec<u32>,
}

/// Loads the library, once in a process: from where the system looks, else from an installed toolkit.
pub(super) fn get() -> Result<&'static Nvrtc, Missing> {
    static NVRTC: OnceLock<Result<Nvrtc, Missing>> = OnceLock::new();
    NVRTC.get_or_init(|| load().map_err(|reason| Missing { reason, remedy: INSTALL })).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Nvrtc, String> {
    let plain = NAMES.iter().map(|name| Path::new(name).to_path_buf());
    let within = load::toolkit_folders().into_iter().flat_map(|folder| NAMES.iter().map(move |name| folder.join(name)));
    let mut first_fault = None;
    for path in plain.chain(within.filter(|path| path.is_file())) {
        match load::open(path.as_os_str()) {
            Ok(library) => return Nvrtc::of(library),
            Err(fault) => {
                first_fault.get_or_insert(fault);
            }
        }
    }
    Err(first_fault.unwrap_or_else(|| format!("{} was not found", NAMES[0])))
}

impl Nvrtc {
    fn of(library: Library) -> Result<Self, String> {
        macro_rules! find {
            ($name:literal) => {
                // SAFETY: the function has that type in every version of the library that has it.
                match unsafe { library.get($name) } {
                    Ok(function) => *function,
                    Err(_) => return Err(format!("it has no {}", String::from_utf8_lossy($name))),
                }
            };
        }
        let count_architectures: unsafe extern "C" fn(*mut c_int) -> Code = find!(b"nvrtcGetNumSupportedArchs");
        let list_architectures: unsafe extern "C" fn(*mut c_int) -> Code = find!(b"nvrtcGetSupportedArchs");
        let mut found = Self {
            create: find!(b"nvrtcCreateProgram"),
            compile: find!(b"nvrtcCompileProgram"),
            destroy: find!(b"nvrtcDestroyProgram"),
            log_size: find!(b"nvrtcGetProgramLogSize"),
            log: find!(b"nvrtcGetProgramLog"),
            ptx_size: find!(b"nvrtcGetPTXSize"),
            ptx: find!(b"nvrtcGetPTX"),
            cubin_size: find!(b"nvrtcGetCUBINSize"),
            cubin: find!(b"nvrtcGetCUBIN"),
            explain: find!(b"nvrtcGetErrorString"),
            architectures: Vec::new(),
        };
        // What was found in it stays valid.
        std::mem::forget(library);
        let mut count = 0;
        // SAFETY: it writes one number.
        found.check(unsafe { count_architectures(&raw mut count) })?;
        let mut architectures = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: it writes as many numbers as it said.
        found.check(unsafe { list_architectures(architectures.as_mut_ptr()) })?;
        found.architectures = architectures.into_iter().map(i32::cast_unsigned).collect();
        found.architectures.sort_unstable();
        Ok(found)
    }

    fn check(&self, code: Code) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: it gives a text that the library keeps, for any code.
        let said = unsafe { (self.explain)(code) };
        // SAFETY: as above.
        Err(if said.is_null() { format!("NVRTC error {code}") } else { unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned() })
    }

    /// Whether it makes use of what GPUs have from that compute capability on.
    pub(super) fn knows(&self, (major, minor): (i32, i32)) -> bool {
        self.architectures.last().is_some_and(|newest| *newest >= (10 * major + minor).cast_unsigned())
    }

    /// Compiles for a GPU of that compute capability; or what the compiler says.
    pub(super) fn compile(&self, name: &str, source: &str, (major, minor): (u32, u32)) -> Result<Compiled, String> {
        let wanted = major * 10 + minor;
        let is_known = self.architectures.binary_search(&wanted).is_ok();
        let nearest = self.architectures.iter().rev().find(|known| **known <= wanted);
        let nearest = nearest.ok_or_else(|| format!("this NVRTC knows no GPU as old as compute capability {major}.{minor}"))?;
        let mut options =
            vec![format!("--gpu-architecture={}_{nearest}", if is_known { "sm" } else { "compute" }), "--std=c++17".to_owned()];
        options.extend(load::toolkit_includes().iter().map(|folder| format!("--include-path={}", folder.display())));
        let text = |text: String| CString::new(text).map_err(|_| "there is a zero in it".to_owned());
        let options = options.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let (source, file) = (text(source.to_owned())?, text(format!("{name}.cu"))?);
        let mut running = Running { library: self, program: std::ptr::null_mut() };
        // SAFETY: both texts end in a zero; there are no headers.
        let created =
            unsafe { (self.create)(&raw mut running.program, source.as_ptr(), file.as_ptr(), 0, std::ptr::null(), std::ptr::null()) };
        self.check(created)?;
        // SAFETY: the program is there, and as many options as are told.
        let compiled = self.check(unsafe { (self.compile)(running.program, options.len() as c_int, options.as_ptr()) });
        if let Err(said) = compiled {
            let log = running.output(self.log_size, self.log).unwrap_or_default();
            let log = String::from_utf8_lossy(&log).trim_matches(['\0', '\n', ' ']).to_owned();
            return Err(if log.is_empty() { said } else { log });
        }
        let cubin = is_known.then(|| running.output(self.cubin_size, self.cubin)).transpose()?;
        Ok(Compiled { cubin, ptx: running.output(self.ptx_size, self.ptx)? })
    }
}

/// What came of a source.
pub(super) struct Compiled {
    /// Machine code; None for a GPU that the library does not know yet.
    pub cubin: Option<Vec<u8>>,
    /// It ends in a zero.
    pub ptx: Vec<u8>,
}

impl Compiled {
    /// What the driver loads of the two.
    pub(super) fn image(&self) -> &[u8] {
        self.cubin.as_ref().unwrap_or(&self.ptx)
    }
}

/// A program that is compiled.
struct Running<'a> {
    library: &'a Nvrtc,
    program: Program,
}

impl Running<'_> {
    /// Something that the compiler wrote.
    fn output(
        &self,
        size: unsafe extern "C" fn(Program, *mut usize) -> Code,
        write: unsafe extern "C" fn(Program, *mut c_char) -> Code,
    ) -> Result<Vec<u8>, String> {
        let mut bytes = 0;
        // SAFETY: the program is there, and it writes one number.
        self.library.check(unsafe { size(self.program, &raw mut bytes) })?;
        let mut out = vec![0u8; bytes];
        // SAFETY: it writes as many bytes as it said.
        self.library.check(unsafe { write(self.program, out.as_mut_ptr().cast()) })?;
        Ok(out)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.program.is_null() {
            // SAFETY: it was created, and nobody has it any more.
            let _ = unsafe { (self.library.destroy)(&raw mut self.program) };
        }
    }
}
