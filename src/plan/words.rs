//! Parameters of kernels that are generated: a row of words, whose places the plan gives to the kernel's source.

use std::fmt;

use crate::error::{Error, Result};

/// The words, the rest of them 0.
#[derive(Clone, Copy, PartialEq)]
pub struct Words {
    length: u32,
    words: [u32; Words::MOST],
}

impl Default for Words {
    fn default() -> Self {
        Self { length: 0, words: [0; Self::MOST] }
    }
}

impl Words {
    /// The most words: what lies between the parameters of two launches.
    pub(crate) const MOST: usize = 64;

    /// Adds a word.
    ///
    /// # Errors
    /// [`Error::LimitExceeded`] if there is no room for it.
    pub(crate) fn push(&mut self, word: u32) -> Result<()> {
        let Some(place) = self.words.get_mut(self.length as usize) else {
            let (requested, max) = (u64::from(self.length) + 1, Self::MOST as u64);
            return Err(Box::new(Error::LimitExceeded { what: "the number of parameters of a kernel", requested, max }));
        };
        *place = word;
        self.length += 1;
        Ok(())
    }

    /// Another word in the place of one.
    pub(crate) fn set(&mut self, at: usize, word: u32) {
        self.words[at] = word;
    }

    /// Those of a list that has no more than fit.
    pub(crate) fn of(list: &[u32]) -> Self {
        let mut words = Self::default();
        // What does not fit is not shown.
        let _ = list.iter().try_for_each(|&word| words.push(word));
        words
    }

    /// How many there are.
    pub(crate) fn length(&self) -> u32 {
        self.length
    }

    /// Those that there are.
    pub(crate) fn get(&self) -> &[u32] {
        &self.words[..self.length as usize]
    }

    /// All, as a kernel gets them.
    pub(crate) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words)
    }
}

/// As signed numbers, since strides may be negative.
impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("words")?;
        self.get().iter().try_for_each(|word| write!(f, " {}", word.cast_signed()))
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
