//! What was compiled lately, by kernel: a page or a program that asks for ever other kernels, such as transforms of all lengths, would fill its memory
//! with them.

use crate::kernels::Kernel;

/// The most that are kept: several times what any model has.
pub(crate) const MOST: usize = 256;

/// In no order: each with the turn in which it was used last. A hash map would cost the package more than it saves.
pub(crate) struct Recent<T> {
    known: Vec<Known<T>>,
    turn: u32,
}

struct Known<T> {
    kernel: Kernel,
    made: T,
    used: u32,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { known: Vec::new(), turn: 0 }
    }
}

impl<T> Recent<T> {
    /// What there is of a kernel, which is about to be used.
    pub(crate) fn get(&mut self, kernel: &Kernel) -> Option<&mut T> {
        let known = self.known.iter_mut().rfind(|known| known.kernel == *kernel)?;
        self.turn = self.turn.wrapping_add(1);
        known.used = self.turn;
        Some(&mut known.made)
    }

    /// Keeps what was made of a kernel; gives what has to go for it.
    #[must_use = "what goes may have to be deleted"]
    pub(crate) fn keep(&mut self, kernel: Kernel, made: T) -> Option<T> {
        self.turn = self.turn.wrapping_add(1);
        let new = Known { kernel, made, used: self.turn };
        let is_full = self.known.len() >= MOST;
        let oldest = self.known.iter_mut().min_by_key(|known| if known.kernel == new.kernel { 0 } else { known.used });
        if let Some(oldest) = oldest.filter(|oldest| is_full || oldest.kernel == new.kernel) {
            return Some(std::mem::replace(oldest, new).made);
        }
        self.known.push(new);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::KernelId;

    fn kernel(number: usize) -> Kernel {
        Kernel { id: KernelId::Map, variant: number.to_string(), constants: Vec::new(), source: None }
    }

    #[test]
    fn what_is_used_stays_and_what_is_not_goes() {
        let mut recent = Recent::default();
        for number in 0..3 * MOST {
            let gone = recent.keep(kernel(number), number);
            assert_eq!(gone.is_some(), number >= MOST);
            assert!(gone != Some(0) && gone != Some(7), "what is used all the time went");
            // One is used with each of the others, one now and then.
            assert_eq!(recent.get(&kernel(0)), Some(&mut 0));
            if number >= 7 && number % 100 == 7 {
                assert_eq!(recent.get(&kernel(7)), Some(&mut 7));
            }
            assert_eq!(recent.get(&kernel(number)), Some(&mut number.clone()));
        }
        assert_eq!(recent.known.len(), MOST);
        assert_eq!(recent.get(&kernel(MOST)), None);
        assert_eq!(recent.keep(kernel(7), 8), Some(7), "what is kept again takes its own place");
        assert_eq!(recent.keep(kernel(7), 7), Some(8));
        let latest = |number: &usize| *number > 2 * MOST + 1 || [0, 7].contains(number);
        assert!(recent.known.iter().all(|known| latest(&known.made)), "others are there");
    }
}
