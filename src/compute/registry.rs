//! Kernels by name: defined once, compiled for whatever device is open when they are wanted.

use std::sync::{Arc, Mutex, PoisonError};

use super::definition::KernelDefinition;
use super::kernel::Kernel;
use crate::error::{Error, Result};
use crate::gpu::Gpu;

/// What a handle knows of kernels.
#[derive(Default)]
pub(crate) struct Registry(Mutex<Vec<(KernelDefinition, Option<Kernel>)>>);

impl Registry {
    /// Lets go of what was compiled for a device that is no longer in use; the definitions stay.
    pub(crate) fn forget(&self) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let compiled: Vec<_> = known.iter_mut().filter_map(|(_, compiled)| compiled.take()).collect();
        drop(known);
        // With the last of them the device may go, which takes its time.
        drop(compiled);
    }
}

impl Gpu {
    /// Makes a kernel known by its name to this handle and its clones. A later definition of that name takes the place of an earlier one.
    pub fn define(&self, definition: KernelDefinition) {
        let mut known = self.registry().0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(other, _)| other.name() != definition.name());
        known.push((definition, None));
    }

    /// The kernel of that name, compiled for the device in use at its first use there: so it is the right one after a loss, too.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if none is [defined](Self::define); as [`compile`](Self::compile).
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let home = self.sound()?;
        let mut known = self.registry().0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = known.iter().position(|(definition, _)| definition.name() == name) else {
            let names: Vec<_> = known.iter().map(|(definition, _)| definition.name()).collect();
            let names = if names.is_empty() { "none is defined".to_owned() } else { format!("defined are {}", names.join(", ")) };
            return Err(Box::new(Error::InvalidOption { option: "the kernel's name".to_owned(), value: name.to_owned(), expected: names }));
        };
        let (definition, compiled) = &mut known[at];
        match compiled {
            Some(kernel) if Arc::ptr_eq(&kernel.0.home, &home) => Ok(kernel.clone()),
            _ => Ok(compiled.insert(Kernel::compile(home, definition)?).clone()),
        }
    }
}
