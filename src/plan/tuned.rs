//! Which shape of the tiled kernel measured fastest on a device: data for the planner, from `Gpu::tune`.

/// How many classes there are.
const CLASSES: usize = 8;

/// log2 of the side of the square whose result is the first class.
const FIRST: u32 = 6;

/// A tile for each class of results: the first is of some 64² elements, each other of four times as many as the one before. By default none
/// is tuned, and the planner's own measure decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tuned {
    tiles: [Option<u8>; CLASSES],
}

impl Tuned {
    /// Nothing tuned.
    pub const NONE: Self = Self { tiles: [None; CLASSES] };

    /// How many classes there are.
    pub const CLASSES: usize = CLASSES;

    /// The class of a result; None of what is smaller than the first, or so narrow that the planner knows better.
    pub fn class(m: u32, n: u32) -> Option<usize> {
        if m.min(n) < 1 << (FIRST - 1) || m.max(n) / m.min(n) > 8 {
            return None;
        }
        // Half of log2, rounded.
        let log = (u64::from(m) * u64::from(n)).ilog2().div_ceil(2).max(FIRST);
        Some(((log - FIRST) as usize).min(CLASSES - 1))
    }

    /// Side of the square that stands for a class.
    pub fn side(class: usize) -> u32 {
        1 << (FIRST + class.min(CLASSES - 1) as u32)
    }

    /// The tile for a result of that size, by its place in the planner's list.
    pub fn tile(&self, m: u32, n: u32) -> Option<usize> {
        self.tiles[Self::class(m, n)?].map(usize::from)
    }

    /// Whether half a tile or more lies past a result of that size: it is not worth trying, nor its compilation.
    pub(crate) fn is_idle(tile: [u32; 2], result: [u32; 2]) -> bool {
        let elements = |[m, n]: [u32; 2]| u64::from(m) * u64::from(n);
        elements(tile) / 2 >= elements(result)
    }

    /// The same with a tile for a class.
    pub fn with(mut self, class: usize, tile: Option<u8>) -> Self {
        if let Some(place) = self.tiles.get_mut(class) {
            *place = tile;
        }
        self
    }

    /// The tiles that are named, class by class; one that is not among those that there are counts as none. None for another number of classes.
    pub fn of_names<'n>(names: impl IntoIterator<Item = Option<&'n str>>, tiles: &[String]) -> Option<Self> {
        let (mut tuned, mut classes) = (Self::NONE, 0);
        for name in names {
            let at = tiles.iter().position(|tile| Some(tile.as_str()) == name);
            tuned = tuned.with(classes, at.and_then(|at| u8::try_from(at).ok()));
            classes += 1;
        }
        (classes == CLASSES).then_some(tuned)
    }

    /// Their names.
    pub fn names<'t>(&self, tiles: &'t [String]) -> [Option<&'t str>; CLASSES] {
        self.tiles.map(|tile| tiles.get(usize::from(tile?)).map(String::as_str))
    }

    /// The tiles, class by class.
    pub fn tiles(&self) -> &[Option<u8>] {
        &self.tiles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_that_of_its_square() {
        for class in 0..CLASSES {
            let side = Tuned::side(class);
            assert_eq!(Tuned::class(side, side), Some(class), "{side}");
            assert_eq!(Tuned::class(side, side - 3), Some(class), "{side}");
        }
        assert_eq!((Tuned::class(1, 4096), Tuned::class(31, 31), Tuned::class(0, 0)), (None, None, None));
        assert_eq!(Tuned::class(40, 40), Some(0));
        assert_eq!(Tuned::class(u32::MAX, u32::MAX), Some(CLASSES - 1));
    }

    #[test]
    fn a_tile_of_which_half_is_past_the_result_is_idle() {
        assert!(Tuned::is_idle([128, 64], [64, 64]) && Tuned::is_idle([96, 96], [64, 64]) && Tuned::is_idle([32, 32], [0, 7]));
        assert!(!Tuned::is_idle([128, 64], [64, 65]) && !Tuned::is_idle([128, 128], [u32::MAX, u32::MAX]));
    }
}
