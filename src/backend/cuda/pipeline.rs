//! The kernels of the embedded PTX, which the driver compiles for the GPU at their first use and keeps on disk after it.

use std::ffi::{CStr, CString, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUdeviceptr, CUfunction, CUfunction_attribute, CUjit_option, CUmodule, CUresult};

use super::Cuda;
use super::driver::{Context, Current, Fault, Severity, as_pointer, check, text};
use super::submit::Addresses;
use crate::error::{Error, Result};
use crate::kernels::{Interpretation, Kernel};
use crate::plan::{Binding, Dispatch};

/// Compiled kernels by the name of their module; whether C is read is told at run time.
#[derive(Default)]
pub(super) struct Kernels(Mutex<Vec<(String, Arc<Module>)>>);

/// A module of one kernel, which is kept while the stream runs it.
pub(super) struct Module {
    module: CUmodule,
    function: CUfunction,
    context: Arc<Context>,
}

// SAFETY: as for the context.
unsafe impl Send for Module {}
// SAFETY: as for the context.
unsafe impl Sync for Module {}

/// Why there is no module.
pub(super) enum Refused {
    /// The driver does not take the image: what it says, and its compiler's log.
    Image(String, String),
    /// There is no such entry point.
    Entry,
    /// Something else.
    Other(Fault),
}

impl Module {
    pub(super) fn function(&self) -> CUfunction {
        self.function
    }

    /// Makes its context current.
    pub(super) fn enter(&self) -> Result<Current<'_>, Fault> {
        self.context.enter()
    }

    /// What the driver says of the function.
    pub(super) fn attribute(&self, attribute: CUfunction_attribute) -> Result<u32, Fault> {
        let _current = self.context.enter()?;
        let mut value = 0;
        // SAFETY: the function is of the current context, and the driver writes one number.
        check("cuFuncGetAttribute", unsafe { sys::cuFuncGetAttribute(&raw mut value, attribute, self.function) })?;
        Ok(value.cast_unsigned())
    }

    /// Lets launches have more dynamic shared memory than is usual.
    pub(super) fn allow_shared(&self, bytes: u32) -> Result<(), Fault> {
        let _current = self.context.enter()?;
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is of the current context.
        check("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(self.function, attribute, bytes.cast_signed()) })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let Ok(_current) = self.context.enter() else { return };
        // SAFETY: it was loaded in this context, and the stream that it ran in has been waited for.
        let _ = unsafe { sys::cuModuleUnload(self.module) };
    }
}

impl Cuda {
    /// The kernel, compiled at its first use.
    pub(super) fn kernel(&self, kernel: &Kernel) -> Result<Arc<Module>> {
        if kernel.is_compiled_late() {
            return self.generated(kernel)?.ok_or_else(|| Error::internal("a plan for a kernel that does not compile"));
        }
        let mut known = self.kernels.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = kernel.module();
        if let Some((_, module)) = known.iter().find(|(known, _)| *known == name) {
            return Ok(Arc::clone(module));
        }
        let module = Arc::new(self.load(kernel)?);
        known.push((name, Arc::clone(&module)));
        Ok(module)
    }

    fn load(&self, kernel: &Kernel) -> Result<Module> {
        let ptx = CString::new(kernel.ptx()?).map_err(|_| Error::internal("the PTX has a zero in it"))?;
        self.load_image(ptx.as_bytes_with_nul(), &kernel.id.entry()?).map_err(|refused| match refused {
            Refused::Image(said, log) => Error::internal(format!("{said}: {kernel}: {log}")),
            Refused::Entry => Error::internal(format!("the PTX of {kernel} has no entry point")),
            Refused::Other(fault) => self.judge(&fault),
        })
    }

    /// A module of machine code, or of PTX that ends in a zero.
    pub(super) fn load_image(&self, image: &[u8], entry: &CStr) -> Result<Module, Refused> {
        let context = &self.stream.context;
        let mut log = vec![0u8; 8192];
        let mut options = [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), as_pointer(log.len())];
        let _current = context.enter().map_err(Refused::Other)?;
        let mut module = std::ptr::null_mut();
        // SAFETY: the context is current; the image ends by itself or in a zero; there are as many options as values, and the log has the
        // length told.
        let loaded = check("cuModuleLoadDataEx", unsafe {
            sys::cuModuleLoadDataEx(&raw mut module, image.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr())
        });
        if let Err(fault) = loaded {
            let is_of_the_image = fault.severity() == Severity::Passing && !fault.is(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            return Err(if is_of_the_image { Refused::Image(fault.to_string(), text(&log)) } else { Refused::Other(fault) });
        }
        let mut loaded = Module { module, function: std::ptr::null_mut(), context: Arc::clone(context) };
        // SAFETY: the module is of the current context, and the name ends in a zero.
        let found = unsafe { sys::cuModuleGetFunction(&raw mut loaded.function, module, entry.as_ptr()) };
        match check("cuModuleGetFunction", found) {
            Ok(()) => Ok(loaded),
            Err(fault) if fault.is(CUresult::CUDA_ERROR_NOT_FOUND) => Err(Refused::Entry),
            Err(fault) => Err(Refused::Other(fault)),
        }
    }

    /// Puts a launch into the stream: of what the plan binds, null between, the parameters, and the program if it is interpreted.
    pub(super) fn launch(
        &self,
        module: &Module,
        dispatch: &Dispatch,
        addresses: &Addresses,
        program: Option<&Interpretation>,
    ) -> Result<(), Fault> {
        let mut pointers: Vec<CUdeviceptr> = Vec::with_capacity(4);
        for Binding { slot, index, offset_bytes, .. } in &dispatch.bindings {
            pointers.resize(pointers.len().max(*index as usize + 1), 0);
            pointers[*index as usize] = addresses.of(*slot) + offset_bytes;
        }
        let params = dispatch.params.bytes();
        let mut arguments: Vec<*mut c_void> = pointers.iter_mut().map(|pointer| std::ptr::from_mut(pointer).cast()).collect();
        arguments.push(params.as_ptr().cast_mut().cast());
        arguments.extend(program.map(|program| std::ptr::from_ref(program).cast_mut().cast()));
        let [x, y, z] = dispatch.grid;
        let [threads, shared_bytes] = ["THREADS", "SHARED_BYTES"].map(|name| dispatch.kernel.constant(name));
        let _current = self.stream.context.enter()?;
        // SAFETY: the arguments are those of the kernel's source, in its order, and are read before the call returns.
        // The plan has seen to it that the kernel stays within what the addresses point at.
        check("cuLaunchKernel", unsafe {
            sys::cuLaunchKernel(
                module.function,
                x,
                y,
                z,
                threads,
                1,
                1,
                shared_bytes,
                self.stream.raw(),
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        })
    }
}
