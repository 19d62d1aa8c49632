//! Tensors from buffers that the page made itself on the handle's device, and back into them: copies on the GPU, of which the host sees nothing.

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use super::{convert, find_gpu, find_tensor, promise, sizes};
use crate::backend::device::{Buffer, Device, Opened};
use crate::backend::webgpu::WebGpu;
use crate::dtype::{DType, Extent};
use crate::error::{Error, Result};
use crate::tensor::{Tensor, check_sizes, elements};

/// The browser's own device; undefined where another backend computes.
#[wasm_bindgen]
pub fn device(gpu: u32) -> Result<JsValue, JsValue> {
    let opened = find_gpu(gpu)?.current()?;
    Ok(webgpu(&opened).map_or(JsValue::UNDEFINED, WebGpu::lent))
}

/// A tensor of what a buffer holds from a byte on.
#[wasm_bindgen]
pub fn tensor_of_buffer(gpu: u32, buffer: &JsValue, offset_bytes: f64, dtype: usize, shape: &[f64]) -> Result<Promise, JsValue> {
    let gpu = find_gpu(gpu)?;
    let opened = gpu.current()?;
    let dtype = *DType::ALL.get(dtype).ok_or_else(|| Error::internal("a type of another number"))?;
    let shape = sizes(shape);
    check_sizes(&shape)?;
    let bytes = Extent { elements: elements(&shape), dtype }.bytes();
    let copy = webgpu(&opened)?.copy_from(buffer, offset_bytes, bytes)?;
    Ok(promise(async move {
        let copied = webgpu(&opened)?.copied_from(copy).await;
        if matches!(&copied, Err(error) if matches!(**error, Error::DeviceLost { .. })) {
            // The page's next buffer is of another device.
            gpu.reopen(&opened).await?;
        }
        let copied = copied?;
        Ok(convert::tensor(Tensor::new(shape, dtype, Buffer::WebGpu(copied), opened)))
    }))
}

/// Copies a tensor into a buffer, from a byte on.
#[wasm_bindgen]
pub fn tensor_to_buffer(tensor: u32, buffer: &JsValue, offset_bytes: f64) -> Result<Promise, JsValue> {
    let tensor = find_tensor(tensor)?;
    let opened = tensor.home();
    let Buffer::WebGpu(from) = tensor.buffer() else { return Err(no_buffers(opened).into()) };
    let bytes = Extent { elements: elements(tensor.shape()), dtype: tensor.dtype() }.bytes();
    let copying = webgpu(opened)?.copy_into(from, buffer, offset_bytes, bytes)?;
    Ok(promise(async move {
        webgpu(tensor.home())?.copied(copying).await?;
        Ok(JsValue::UNDEFINED)
    }))
}

fn webgpu(opened: &Opened) -> Result<&WebGpu> {
    if let Device::WebGpu(device) = &opened.device { Ok(device) } else { Err(no_buffers(opened)) }
}

fn no_buffers(opened: &Opened) -> Box<Error> {
    let (backend, reason) = (opened.info.backend, "it has no GPUBuffers".to_owned());
    Box::new(Error::Unavailable { backend, reason, remedy: "use arrays, or open a handle with the backend webgpu".to_owned() })
}
