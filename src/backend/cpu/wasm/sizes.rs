//! The room that the kernel has, known to it and to what fills it.

/// Most columns of a block of A.
pub const DEPTH: usize = 2048;
/// Elements of a block of A, of one of C, and of what is staged.
pub const BLOCK: usize = 128 * 1024;
/// Elements of a block of B, its columns rounded up to whole panels.
pub const PANELS: usize = 1024 * 1024;
/// Columns of a panel.
pub const PANEL: usize = 8;
/// Rows and columns of a block of C in double precision.
pub const EXACT: [usize; 2] = [128, 512];
