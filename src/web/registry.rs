//! Objects that JavaScript holds by number. A number is used again once all have been, some hours of a page that makes nothing else.

use std::cell::{Cell, RefCell};

use crate::error::{Error, Result};

/// The objects of one kind.
pub(super) struct Registry<T> {
    what: &'static str,
    last: Cell<u32>,
    /// By rising numbers, so that one is found by halving. A map would cost the package more than it saves.
    objects: RefCell<Vec<(u32, T)>>,
}

impl<T: Clone> Registry<T> {
    pub(super) const fn new(what: &'static str) -> Self {
        Self { what, last: Cell::new(0), objects: RefCell::new(Vec::new()) }
    }

    /// The number is never 0.
    pub(super) fn insert(&self, object: T) -> u32 {
        let mut objects = self.objects.borrow_mut();
        loop {
            let number = self.last.get().wrapping_add(1);
            self.last.set(number);
            if number > 0
                && let Err(at) = objects.binary_search_by_key(&number, |(number, _)| *number)
            {
                objects.insert(at, (number, object));
                return number;
            }
        }
    }

    pub(super) fn get(&self, number: u32) -> Result<T> {
        let objects = self.objects.borrow();
        let at = objects.binary_search_by_key(&number, |(number, _)| *number);
        at.map(|at| objects[at].1.clone()).map_err(|_| Box::new(Error::Disposed { what: self.what }))
    }

    pub(super) fn remove(&self, number: u32) -> Option<T> {
        let mut objects = self.objects.borrow_mut();
        let at = objects.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(objects.remove(at).1)
    }
}
