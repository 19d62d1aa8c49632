//! What waits for the device's callbacks. Natively they come only while somebody polls the device: threads that do.

use std::future::poll_fn;
#[cfg(not(target_arch = "wasm32"))]
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::{Arc, PoisonError};
#[cfg(not(target_arch = "wasm32"))]
use std::task::Poll;

use futures_channel::oneshot;

#[cfg(not(target_arch = "wasm32"))]
use super::Health;
use super::WebGpu;

/// What a callback is to tell, and natively who sees to it that it comes.
pub(super) struct Notice {
    told: oneshot::Receiver<()>,
    /// Ends when the device has been polled.
    #[cfg(not(target_arch = "wasm32"))]
    attended: Option<oneshot::Receiver<()>>,
    #[cfg(not(target_arch = "wasm32"))]
    health: Arc<Health>,
}

#[cfg(target_arch = "wasm32")]
impl Notice {
    /// Whether it came.
    pub(super) fn came(&mut self) -> impl Future<Output = bool> {
        poll_fn(|context| Pin::new(&mut self.told).poll(context).map(|told| told.is_ok()))
    }
}

#[cfg(target_arch = "wasm32")]
impl WebGpu {
    /// The browser calls back by itself.
    pub(super) fn attend(&self, told: oneshot::Receiver<()>) -> Notice {
        Notice { told }
    }
}

#[cfg(not(target_arch = "wasm32"))]
type Polled = Result<wgpu::PollStatus, wgpu::PollError>;

#[cfg(not(target_arch = "wasm32"))]
impl Notice {
    /// Whether it came. It never does once the device is lost.
    pub(super) async fn came(&mut self) -> bool {
        poll_fn(|context| {
            if let Poll::Ready(told) = Pin::new(&mut self.told).poll(context) {
                return Poll::Ready(told.is_ok());
            }
            if let Some(attended) = &mut self.attended
                && Pin::new(attended).poll(context).is_ready()
            {
                self.attended = None;
            }
            // Polled by two threads at a time, the device may call back in the other one, later.
            if self.attended.is_none() && self.health.lost().is_some() { Poll::Ready(false) } else { Poll::Pending }
        })
        .await
    }
}

/// How a device is polled until what was submitted is done, or as much of it as is named. On OpenGL a moment at a time, since others have to wait
/// meanwhile, and wgpu has no patience with that. Elsewhere as long as it takes: where a wait has come to its end too early, and another thread's
/// poll has found all done by then, wgpu panics.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn until(device: &wgpu::Device, submission_index: Option<wgpu::SubmissionIndex>) -> wgpu::PollType {
    let is_gl = device.adapter_info().backend == wgpu::Backend::Gl;
    wgpu::PollType::Wait { submission_index, timeout: is_gl.then_some(std::time::Duration::from_millis(200)) }
}

/// Polls the device, again where it takes long. Where its driver loses it meanwhile wgpu panics, and calls nobody back.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn poll(health: &Health, poll: impl Fn() -> Polled) {
    let mut polled = Ok(Err(wgpu::PollError::Timeout));
    while let Ok(Err(wgpu::PollError::Timeout)) = polled
        && health.lost().is_none()
    {
        polled = catch_unwind(AssertUnwindSafe(&poll));
    }
    match polled {
        Ok(Ok(_) | Err(wgpu::PollError::Timeout)) => {}
        Ok(Err(error)) => health.lose(error.to_string()),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
            health.lose(message.unwrap_or("the driver gave no reason").to_owned());
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl WebGpu {
    /// Has the device polled until what was submitted is done; what it tells meanwhile is to be waited for.
    pub(super) fn attend(&self, told: oneshot::Receiver<()>) -> Notice {
        let device = self.device.clone();
        self.attend_by(told, move || device.poll(until(&device, None)))
    }

    fn attend_by(&self, told: oneshot::Receiver<()>, wait: impl Fn() -> Polled + Clone + Send + 'static) -> Notice {
        let health = Arc::clone(&self.health);
        let (ends, attended) = oneshot::channel();
        let work = {
            let (wait, health) = (wait.clone(), Arc::clone(&health));
            move || {
                poll(&health, wait);
                // Whoever waited may be gone.
                let _ = ends.send(());
            }
        };
        let Ok(attendant) = std::thread::Builder::new().spawn(work) else {
            // The system has no thread to give: this one waits.
            poll(&health, wait);
            return Notice { told, attended: None, health };
        };
        self.outlive(attendant);
        Notice { told, attended: Some(attended), health }
    }

    /// Has a thread end before the device goes.
    pub(super) fn outlive(&self, attendant: std::thread::JoinHandle<()>) {
        let mut attendants = self.attendants.lock().unwrap_or_else(PoisonError::into_inner);
        attendants.retain(|attendant| !attendant.is_finished());
        attendants.push(attendant);
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::super::tests::webgpu;
    use super::*;
    use crate::backend::Backend;

    /// Whoever waits for a device that its driver loses is told so, and so is whoever comes later.
    #[test]
    fn a_loss_while_the_device_is_polled_ends_all_waiting() {
        let Some((mut device, _)) = webgpu() else { return };
        // The device itself is there still, and others share it.
        device.health = Arc::default();
        let (sender, told) = oneshot::channel();
        let mut notice = device.attend_by(told, || panic!("parent device is lost"));
        assert!(!pollster::block_on(notice.came()));
        assert_eq!(device.lost().as_deref(), Some("parent device is lost"));
        drop(sender);
        let error = pollster::block_on(device.synchronize()).unwrap_err();
        assert_eq!(error.code(), "device_lost", "{error}");
    }

    /// OpenGL gives up waiting for what takes long.
    #[test]
    fn what_takes_long_is_no_loss() {
        let Some((device, _)) = webgpu() else { return };
        let (sender, told) = oneshot::channel();
        let polls = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let sender = Arc::new(std::sync::Mutex::new(Some(sender)));
        let mut notice = device.attend_by(told, move || {
            if polls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 3 {
                return Err(wgpu::PollError::Timeout);
            }
            let _ = sender.lock().unwrap().take().map(|sender| sender.send(()));
            Ok(wgpu::PollStatus::QueueEmpty)
        });
        assert!(pollster::block_on(notice.came()));
        assert_eq!(device.lost(), None);
    }

    /// A call that another thread makes, later, counts.
    #[test]
    fn a_notice_outlasts_its_own_attendant() {
        let Some((device, _)) = webgpu() else { return };
        let (sender, told) = oneshot::channel();
        let mut notice = device.attend_by(told, || Ok(wgpu::PollStatus::QueueEmpty));
        let other = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            sender.send(())
        });
        assert!(pollster::block_on(notice.came()));
        assert_eq!(other.join().unwrap(), Ok(()));
    }
}
