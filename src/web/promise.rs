//! Promises of what futures give.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::backend::BoxFuture;

thread_local! {
    static IS_POLLING: Cell<bool> = const { Cell::new(false) };
}

/// Whether a promise's future was left in its midst since this was last asked, by what is no panic: an exception of JavaScript's, a stack that
/// overflows, memory that runs out. Nothing wakes such a future again, nor whatever waits for it. Not to be asked while one is polled.
#[wasm_bindgen]
pub fn was_left() -> bool {
    IS_POLLING.replace(false)
}

/// A promise of what the future gives. Boxed, so that the machinery is compiled once.
pub(super) fn promise(future: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> Promise {
    promise_of(Box::pin(future))
}

/// What the future gives if it does so at once, else a promise of it.
pub(super) fn now_or_promise(mut future: BoxFuture<'static, Result<JsValue, JsValue>>) -> Result<JsValue, JsValue> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => Ok(promise_of(future).into()),
    }
}

/// The same of one that is boxed already.
pub(super) fn promise_of(mut future: BoxFuture<'static, Result<JsValue, JsValue>>) -> Promise {
    future_to_promise(poll_fn(move |context| {
        IS_POLLING.set(true);
        let polled = future.as_mut().poll(context);
        IS_POLLING.set(false);
        polled
    }))
}
