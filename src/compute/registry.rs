//! Kernels by name: defined once, compiled for whatever device is open when they are wanted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::definition::KernelDefinition;
use super::kernel::Kernel;
use crate::error::{Error, Result};
use crate::gpu::Gpu;

/// What a handle knows of kernels.
#[derive(Default)]
pub(crate) struct Registry(Mutex<Vec<Known>>);

/// A definition, and what was compiled of it last.
type Known = (Arc<KernelDefinition>, Option<Kernel>);

impl Registry {
    fn known(&self) -> MutexGuard<'_, Vec<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of what was compiled for a device that is no longer in use; the definitions stay.
    pub(crate) fn forget(&self) {
        let compiled: Vec<_> = self.known().iter_mut().filter_map(|(_, compiled)| compiled.take()).collect();
        // With the last of them the device may go, which takes its time.
        drop(compiled);
    }
}

impl Gpu {
    /// Makes a kernel known by its name to this handle and its clones. A later definition of that name takes the place of an earlier one.
    pub fn define(&self, definition: KernelDefinition) {
        let mut known = self.registry().known();
        let earlier = known.iter().position(|(other, _)| other.name() == definition.name()).map(|at| known.swap_remove(at));
        known.push((Arc::new(definition), None));
        drop(known);
        drop(earlier);
    }

    /// The kernel of that name, compiled for the device in use at its first use there: so it is the right one after a loss, too.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if none is [defined](Self::define); as [`compile`](Self::compile).
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let home = self.sound()?;
        let definition = {
            let known = self.registry().known();
            let Some((definition, compiled)) = known.iter().find(|(definition, _)| definition.name() == name) else {
                let names: Vec<_> = known.iter().map(|(definition, _)| definition.name()).collect();
                let names = if names.is_empty() { "none is defined".to_owned() } else { format!("defined are {}", names.join(", ")) };
                return Err(Box::new(Error::InvalidOption {
                    option: "the kernel's name".to_owned(),
                    value: name.to_owned(),
                    expected: names,
                }));
            };
            match compiled {
                Some(kernel) if Arc::ptr_eq(&kernel.0.home, &home) => return Ok(kernel.clone()),
                _ => Arc::clone(definition),
            }
        };
        // It may take seconds, for which nobody is kept who asks for others.
        let kernel = Kernel::compile(Arc::clone(&home), &definition)?;
        // Kept for as long as it is what that name stands for, and its device the one in use.
        let is_current = self.current().is_ok_and(|current| Arc::ptr_eq(&current, &home));
        let mut known = self.registry().known();
        let place = known.iter_mut().find(|(other, _)| is_current && Arc::ptr_eq(other, &definition));
        let earlier = place.and_then(|(_, compiled)| compiled.replace(kernel.clone()));
        drop(known);
        drop(earlier);
        Ok(kernel)
    }
}
