//! The driver's objects as owned values, and its errors with the name of the call that gave them.
//!
//! cudarc's own safe layer keeps errors of destructors for the next call, whoever makes it; here every error goes to the call that it is
//! of. The context is the device's primary one, which other libraries in the process share; it is current only within a call.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUcontext, CUdevice, CUevent, CUresult, CUstream};

use super::waiter::Waiter;
use crate::error::{Error, Result};

/// A call that the driver refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    call: &'static str,
    /// A number, because a newer driver may have errors that the binding has no name for.
    code: u32,
    /// The driver's name and explanation.
    said: String,
}

/// What the driver said to that call.
pub(super) fn check(call: &'static str, code: CUresult) -> Result<(), Fault> {
    let number = code as u32;
    if number == CUresult::CUDA_SUCCESS as u32 { Ok(()) } else { Err(Fault { call, code: number, said: explain(code) }) }
}

/// The driver's own words; only their number before it is loaded.
fn explain(code: CUresult) -> String {
    if !super::load::is_loaded() {
        return format!("CUDA error {}", code as u32);
    }
    let (mut name, mut meaning) = (std::ptr::null(), std::ptr::null());
    // SAFETY: the driver is loaded; it writes a pointer to a text that it keeps for good, or null for an error that it does not know.
    let texts = unsafe {
        let _ = (sys::cuGetErrorName(code, &raw mut name), sys::cuGetErrorString(code, &raw mut meaning));
        [name, meaning].map(|text| if text.is_null() { None } else { Some(CStr::from_ptr(text).to_string_lossy()) })
    };
    match texts {
        [Some(name), Some(meaning)] => format!("{name} ({meaning})"),
        [Some(name), None] => name.into_owned(),
        _ => format!("CUDA error {}", code as u32),
    }
}

/// What a fault means for what comes after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// That call failed, others may not.
    Passing,
    /// The context is gone; a new one can be had.
    Lost,
    /// The context is dead for the rest of the process: the driver says that "the process must be terminated and relaunched".
    Fatal,
}

impl Fault {
    pub(super) fn is(&self, code: CUresult) -> bool {
        self.code == code as u32
    }

    /// Whether a launch has not the form that its kernel needs, for example another size of block than it was compiled for.
    pub(super) fn is_of_a_launch(&self) -> bool {
        use CUresult as Code;
        let forms = [Code::CUDA_ERROR_INVALID_VALUE, Code::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES];
        forms.into_iter().any(|code| self.is(code))
    }

    pub(super) fn severity(&self) -> Severity {
        use CUresult as Code;
        const LOST: [Code; 3] = [Code::CUDA_ERROR_DEINITIALIZED, Code::CUDA_ERROR_INVALID_CONTEXT, Code::CUDA_ERROR_CONTEXT_IS_DESTROYED];
        const FATAL: [Code; 17] = [
            Code::CUDA_ERROR_DEVICE_UNAVAILABLE,
            Code::CUDA_ERROR_ECC_UNCORRECTABLE,
            Code::CUDA_ERROR_NVLINK_UNCORRECTABLE,
            Code::CUDA_ERROR_CONTAINED,
            Code::CUDA_ERROR_ILLEGAL_ADDRESS,
            Code::CUDA_ERROR_LAUNCH_TIMEOUT,
            Code::CUDA_ERROR_ASSERT,
            Code::CUDA_ERROR_HARDWARE_STACK_ERROR,
            Code::CUDA_ERROR_ILLEGAL_INSTRUCTION,
            Code::CUDA_ERROR_MISALIGNED_ADDRESS,
            Code::CUDA_ERROR_INVALID_ADDRESS_SPACE,
            Code::CUDA_ERROR_INVALID_PC,
            Code::CUDA_ERROR_LAUNCH_FAILED,
            Code::CUDA_ERROR_TENSOR_MEMORY_LEAK,
            Code::CUDA_ERROR_MPS_CLIENT_TERMINATED,
            Code::CUDA_ERROR_EXTERNAL_DEVICE,
            Code::CUDA_ERROR_UNKNOWN,
        ];
        if FATAL.into_iter().any(|code| self.is(code)) {
            Severity::Fatal
        } else if LOST.into_iter().any(|code| self.is(code)) {
            Severity::Lost
        } else {
            Severity::Passing
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.call, self.said)
    }
}

/// Devices that a fatal fault has ended for this process, by ordinal, and what it was.
static ENDED: Mutex<Vec<(i32, String)>> = Mutex::new(Vec::new());

/// What has ended the device for this process, if something has.
pub(super) fn ended(ordinal: i32) -> Option<String> {
    let ended = ENDED.lock().unwrap_or_else(PoisonError::into_inner);
    ended.iter().find(|(known, _)| *known == ordinal).map(|(_, reason)| reason.clone())
}

/// A device's primary context, held until dropped.
pub(super) struct Context {
    raw: CUcontext,
    device: CUdevice,
    ordinal: i32,
    lost: Mutex<Option<String>>,
}

// SAFETY: a context may be used from any thread, and the driver locks what it must.
unsafe impl Send for Context {}
// SAFETY: as above; the handle itself never changes.
unsafe impl Sync for Context {}

impl Context {
    pub(super) fn retain(device: CUdevice, ordinal: i32) -> Result<Arc<Self>, Fault> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the driver is started, the device one that it gave, and it writes one handle.
        check("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut raw, device) })?;
        Ok(Arc::new(Self { raw, device, ordinal, lost: Mutex::new(None) }))
    }

    /// Makes the context current on this thread until the guard is dropped, and then what was current before.
    pub(super) fn enter(&self) -> Result<Current<'_>, Fault> {
        // SAFETY: the context is retained.
        check("cuCtxPushCurrent_v2", unsafe { sys::cuCtxPushCurrent_v2(self.raw) })?;
        Ok(Current(PhantomData))
    }

    pub(super) fn lost(&self) -> Option<String> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The fault as an error of this crate. What ends the context is remembered.
    pub(super) fn judge(&self, fault: &Fault) -> Box<Error> {
        let severity = fault.severity();
        if severity == Severity::Passing {
            // Who asked for memory of its own says itself how much.
            let is_full = fault.is(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            return if is_full { Box::new(Error::OutOfMemory { bytes: 0, place: "the GPU" }) } else { Error::internal(fault.to_string()) };
        }
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = lost.get_or_insert_with(|| fault.to_string()).clone();
        drop(lost);
        if severity == Severity::Fatal && ended(self.ordinal).is_none() {
            ENDED.lock().unwrap_or_else(PoisonError::into_inner).push((self.ordinal, reason.clone()));
        }
        Box::new(Error::DeviceLost { reason })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once. An error has nobody to go to, and leaves nothing to be done.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// A context is current on this thread, and on no other by this guard.
pub(super) struct Current<'a>(PhantomData<(&'a Context, *const ())>);

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let mut was = std::ptr::null_mut();
        // SAFETY: guards are dropped in the reverse order of their making, so the top of this thread's stack is what `enter` pushed.
        let _ = unsafe { sys::cuCtxPopCurrent_v2(&raw mut was) };
    }
}

/// A queue of work: what is in it runs in order.
pub(crate) struct Stream {
    raw: CUstream,
    pub(super) context: Arc<Context>,
    waiter: Arc<Waiter>,
}

// SAFETY: as for the context.
unsafe impl Send for Stream {}
// SAFETY: as for the context.
unsafe impl Sync for Stream {}

impl Stream {
    pub(super) fn new(context: Arc<Context>) -> Result<Self, Fault> {
        let mut raw = std::ptr::null_mut();
        {
            let _current = context.enter()?;
            // One that waits for nobody else's work in this process.
            let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
            // SAFETY: the context is current, and the driver writes one handle.
            check("cuStreamCreate", unsafe { sys::cuStreamCreate(&raw mut raw, flags) })?;
        }
        Ok(Self { raw, context, waiter: Arc::default() })
    }

    pub(super) fn raw(&self) -> CUstream {
        self.raw
    }

    /// Has what comes later wait for an event of any stream of the same context.
    pub(super) fn wait(&self, event: &Event) -> Result<(), Fault> {
        let _current = self.context.enter()?;
        // SAFETY: stream and event are of the current context. An event that is destroyed meanwhile is waited for all the same.
        check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(self.raw, event.raw, 0) })
    }

    /// Blocks until everything in it is done.
    pub(super) fn synchronize(&self) -> Result<(), Fault> {
        let _current = self.context.enter()?;
        // SAFETY: the context is current and the stream is its own.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw) })
    }

    /// A fault of what is in it, so far as the device has got.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.state().err().filter(|fault| !fault.is(CUresult::CUDA_ERROR_NOT_READY))
    }

    /// Whether all that was put into it is done.
    pub(super) fn is_idle(&self) -> bool {
        self.state().is_ok()
    }

    fn state(&self) -> Result<(), Fault> {
        let _current = self.context.enter()?;
        // SAFETY: the context is current and the stream is its own.
        check("cuStreamQuery", unsafe { sys::cuStreamQuery(self.raw) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let Ok(_current) = self.context.enter() else { return };
        // SAFETY: nobody has the stream any more. The driver lets what is in it finish.
        let _ = unsafe { sys::cuStreamDestroy_v2(self.raw) };
    }
}

/// A place in a stream, to be waited for or timed.
pub(crate) struct Event {
    raw: CUevent,
    context: Arc<Context>,
    /// Who waits for what is in its stream.
    pub(super) waiter: Arc<Waiter>,
    /// How many were recorded before it: of one stream it is done after those.
    pub(super) number: u64,
}

static EVENTS: AtomicU64 = AtomicU64::new(0);

// SAFETY: as for the context.
unsafe impl Send for Event {}
// SAFETY: as for the context.
unsafe impl Sync for Event {}

impl Event {
    /// After all that is in the stream. Waiting for it puts a thread to sleep; only a timed one has a time.
    pub(super) fn record(stream: &Stream, timed: bool) -> Result<Self, Fault> {
        use sys::CUevent_flags as Flag;
        let _current = stream.context.enter()?;
        let flags = Flag::CU_EVENT_BLOCKING_SYNC as u32 | if timed { 0 } else { Flag::CU_EVENT_DISABLE_TIMING as u32 };
        let mut raw = std::ptr::null_mut();
        // SAFETY: the context is current, and the driver writes one handle.
        check("cuEventCreate", unsafe { sys::cuEventCreate(&raw mut raw, flags) })?;
        let mut event = Self { raw, context: Arc::clone(&stream.context), waiter: Arc::clone(&stream.waiter), number: 0 };
        // SAFETY: event and stream are of the current context.
        check("cuEventRecord", unsafe { sys::cuEventRecord(event.raw, stream.raw) })?;
        event.number = EVENTS.fetch_add(1, Ordering::Relaxed);
        Ok(event)
    }

    /// Whether all before it is done; a fault if the device had one meanwhile.
    pub(super) fn is_done(&self) -> Result<bool, Fault> {
        let _current = self.context.enter()?;
        // SAFETY: the context is current and the event is its own.
        match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => check("cuEventQuery", code).map(|()| true),
        }
    }

    /// Blocks until all before it is done.
    pub(super) fn wait(&self) -> Result<(), Fault> {
        let _current = self.context.enter()?;
        // SAFETY: the context is current and the event is its own.
        check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.raw) })
    }

    /// Milliseconds from an earlier one to this one. Both are done and timed.
    pub(super) fn since_ms(&self, earlier: &Self) -> Result<f64, Fault> {
        // The binding is of newer drivers only, where it has another name; all have this one.
        type ElapsedTime = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;
        let _current = self.context.enter()?;
        let mut ms = 0.0;
        // SAFETY: the driver is loaded for good, the type is that of its header, and the events are of the current context.
        let code = unsafe {
            match sys::culib().get::<ElapsedTime>(b"cuEventElapsedTime") {
                Ok(elapsed_time) => elapsed_time(&raw mut ms, earlier.raw, self.raw),
                Err(_) => CUresult::CUDA_ERROR_NOT_FOUND,
            }
        };
        check("cuEventElapsedTime", code).map(|()| f64::from(ms))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let Ok(_current) = self.context.enter() else { return };
        // SAFETY: nobody has the event any more. The driver keeps it until it is done.
        let _ = unsafe { sys::cuEventDestroy_v2(self.raw) };
    }
}

/// A text that the driver wrote, up to its end.
pub(super) fn text(buffer: &[u8]) -> String {
    CStr::from_bytes_until_nul(buffer).map(|text| text.to_string_lossy().trim().to_owned()).unwrap_or_default()
}

/// A number where the driver takes a pointer.
pub(super) fn as_pointer(number: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn severity(code: CUresult) -> Severity {
        check("cuLaunchKernel", code).unwrap_err().severity()
    }

    #[test]
    fn what_ends_a_context_is_told_from_what_passes() {
        for code in [CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, CUresult::CUDA_ERROR_ECC_UNCORRECTABLE, CUresult::CUDA_ERROR_LAUNCH_FAILED] {
            assert_eq!(severity(code), Severity::Fatal, "{code:?}");
        }
        assert_eq!(severity(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED), Severity::Lost);
        for code in [CUresult::CUDA_ERROR_OUT_OF_MEMORY, CUresult::CUDA_ERROR_INVALID_VALUE, CUresult::CUDA_ERROR_NOT_SUPPORTED] {
            assert_eq!(severity(code), Severity::Passing, "{code:?}");
        }
    }

    #[test]
    fn a_fault_names_its_call() {
        let fault = check("cuLaunchKernel", CUresult::CUDA_ERROR_ILLEGAL_ADDRESS).unwrap_err();
        assert_eq!(fault.to_string(), format!("cuLaunchKernel: {}", fault.said));
        assert_eq!(check("cuInit", CUresult::CUDA_SUCCESS), Ok(()));
    }
}
