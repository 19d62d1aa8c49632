//! Time as a report states it: milliseconds of a clock that never goes back.

#[cfg(target_arch = "wasm32")]
use std::task::Poll;

#[cfg(target_arch = "wasm32")]
use js_sys::{Function, Promise};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen::JsValue;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen::prelude::wasm_bindgen;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_futures::JsFuture;

#[cfg(not(target_arch = "wasm32"))]
pub(crate) struct Stopwatch(std::time::Instant);

#[cfg(not(target_arch = "wasm32"))]
impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn ms(&self) -> f64 {
        self.0.elapsed().as_secs_f64() * 1e3
    }
}

/// Milliseconds from one to the other, less than 0 if it was before.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn signed_ms(from: std::time::Instant, to: std::time::Instant) -> f64 {
    if to >= from { (to - from).as_secs_f64() * 1e3 } else { (from - to).as_secs_f64() * -1e3 }
}

#[cfg(target_arch = "wasm32")]
pub(crate) struct Stopwatch(f64);

// The same in a page, a worker and Node.
#[cfg(target_arch = "wasm32")]
#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance)]
    fn now() -> f64;
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(resolve: &Function, ms: u32) -> JsValue;
    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(timeout: &JsValue);

    type MessageChannel;
    #[wasm_bindgen(constructor)]
    fn new() -> MessageChannel;
    #[wasm_bindgen(method, getter)]
    fn port1(this: &MessageChannel) -> MessagePort;
    #[wasm_bindgen(method, getter)]
    fn port2(this: &MessageChannel) -> MessagePort;

    type MessagePort;
    #[wasm_bindgen(method, setter)]
    fn set_onmessage(this: &MessagePort, resolve: &Function);
    #[wasm_bindgen(method, js_name = postMessage)]
    fn post_message(this: &MessagePort, message: &JsValue);
    #[wasm_bindgen(method)]
    fn close(this: &MessagePort);
}

#[cfg(target_arch = "wasm32")]
impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(now())
    }

    pub(crate) fn ms(&self) -> f64 {
        now() - self.0
    }
}

/// Acts once what is running now has come to its end, and what it promised with it.
#[cfg(all(any(feature = "webgpu", feature = "webgl2"), target_arch = "wasm32"))]
pub(crate) fn later(act: impl FnOnce() + 'static) {
    wasm_bindgen_futures::spawn_local(async {
        turn().await;
        act();
    });
}

/// Acts soon, in a thread. Natively nobody tells when the caller is done: a millisecond is time to record some hundred launches. None if the system
/// has no thread to give.
#[cfg(all(feature = "webgpu", not(target_arch = "wasm32")))]
pub(crate) fn later(act: impl FnOnce() + Send + 'static) -> Option<std::thread::JoinHandle<()>> {
    let soon = || {
        std::thread::sleep(std::time::Duration::from_millis(1));
        act();
    };
    std::thread::Builder::new().spawn(soon).ok()
}

/// Lets the page or the worker do what else there is. By a message, since a hidden page's timers wait for a second, or a minute.
#[cfg(target_arch = "wasm32")]
pub(crate) async fn turn() {
    let channel = MessageChannel::new();
    let heard = channel.port1();
    let promise = Promise::new(&mut |resolve, _| {
        heard.set_onmessage(&resolve);
        channel.port2().post_message(&JsValue::NULL);
    });
    // It only resolves.
    let _ = JsFuture::from(promise).await;
    // A process of Node's lives as long as a port is open.
    heard.close();
}

/// What the work gives, or None if that takes longer.
#[cfg(target_arch = "wasm32")]
pub(crate) async fn within<T>(ms: u32, work: impl Future<Output = T>) -> Option<T> {
    let (mut timeout, mut over) = (JsValue::UNDEFINED, None);
    let promise = Promise::new(&mut |resolve, _| {
        timeout = set_timeout(&resolve, ms);
        over = Some(resolve);
    });
    let (mut work, mut alarm) = (std::pin::pin!(work), std::pin::pin!(JsFuture::from(promise)));
    let done = std::future::poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => alarm.as_mut().poll(context).map(|_| None),
    })
    .await;
    // A process of Node's lives as long as it waits for something.
    clear_timeout(&timeout);
    // What waits for a promise is kept until it is resolved.
    over.map(|resolve| resolve.call0(&JsValue::UNDEFINED));
    done
}
