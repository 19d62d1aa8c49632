//! What the stand-in's kernels compute, by the names of the modules that a plan asks for.

use std::ffi::{c_uint, c_void};

use crate::params::{Params, at};

/// What a launch does, once its turn in the stream has come.
pub type Work = Box<dyn FnOnce() + Send>;

fn later(work: impl FnOnce() + Send + 'static) -> Option<Work> {
    Some(Box::new(work))
}

/// The work of a launch of so many blocks, layers and threads; None for one that is not what the kernel takes.
pub unsafe fn work(function: &str, [blocks, layers, threads]: [c_uint; 3], arguments: *const *const c_void) -> Option<Work> {
    let address = |index: usize| unsafe { **arguments.add(index).cast::<*const u64>() };
    let params = |index: usize| unsafe { **arguments.add(index).cast::<*const Params>() };
    if function == "saxpy" {
        // It was compiled for blocks of up to so many threads.
        if threads > 256 {
            return None;
        }
        let (x, y, (n, a)) = (address(0), address(1), unsafe { **arguments.add(2).cast::<*const (u32, f32)>() });
        let n = n.min(blocks * threads);
        return later(move || (0..n).for_each(|i| unsafe { *at(y, 0, i, 0) += a * *at(x, 0, i, 0) }));
    }
    if function == "add_up" {
        let (values, total) = (address(0) as *const u32 as usize, address(1));
        return later(move || {
            let sum = (0..1000).fold(0u32, |sum, i| sum + unsafe { *(values as *const u32).add(i) });
            unsafe { *(total as *mut u32) += sum };
        });
    }
    let vector = function.strip_prefix("matmul/vector f32-").and_then(|variant| variant.split_once('-'));
    if let Some((lies, most)) = vector {
        let ([a, b, c, bias, out], p) = ([0, 1, 2, 3, 4].map(address), params(5));
        let (lines, vectors) = if p.tall == 1 { (p.m, p.n) } else { (p.n, p.m) };
        let is_whole = threads.is_multiple_of(p.lanes) && blocks == lines.div_ceil(4 * (threads / p.lanes));
        if !is_whole || vectors > most.parse().unwrap() || (p.k_part == 0) != (layers == p.batch) {
            return None;
        }
        let along = lies == "along";
        return later(move || {
            for layer in 0..layers {
                let (a, b) = (p.start(a, 0, layer % p.batch), p.start(b, 1, layer % p.batch));
                for (line, vector) in (0..lines).flat_map(|line| (0..vectors).map(move |vector| (line, vector))) {
                    let term = |q: u32| unsafe {
                        let x = if along { at(a, line, q, p.lda) } else { at(a, q, line, p.lda) };
                        *x * *at(b, vector, q * p.x_element, p.x_vector)
                    };
                    let place = if p.tall == 1 { [line, vector] } else { [vector, line] };
                    unsafe { p.store([c, bias, out], layer, place, p.terms(layer).map(term).sum()) };
                }
            }
        });
    }
    if let Some(of_b) = function.strip_prefix("matmul/rows f32-n") {
        let ([a, b, c, bias, out], p) = ([0, 1, 2, 3, 4].map(address), params(5));
        // Rows of a block, which are whole fours and fit its shared memory.
        let rows = p.k_part;
        let pitch = |length: u32| if length.is_multiple_of(4) { ((length / 4) | 1) * 4 } else { length };
        let fits = rows > 0 && rows.is_multiple_of(4) && rows * pitch(p.k).max(pitch(p.n)) <= 3072;
        let lies_so = (p.lda, p.ldo, p.batch) == (p.k, p.n, 1) && (p.starts[0] | p.starts[3]).is_multiple_of(4);
        if !fits || !lies_so || layers != 1 || threads != 128 || blocks != p.m.div_ceil(rows) {
            return None;
        }
        let transpose_b = of_b == "t";
        return later(move || {
            let (a, b) = (p.start(a, 0, 0), p.start(b, 1, 0));
            for [i, j] in (0..p.m).flat_map(|i| (0..p.n).map(move |j| [i, j])) {
                let term = |q: u32| unsafe { *at(a, i, q, p.lda) * if transpose_b { *at(b, j, q, p.ldb) } else { *at(b, q, j, p.ldb) } };
                unsafe { p.store([c, bias, out], 0, [i, j], (0..p.k).map(term).sum()) };
            }
        });
    }
    if let Some(lies) = function.strip_prefix("matmul/split ") {
        let ([from, out], p, along) = ([0, 1].map(address), params(2), lies == "along");
        let ([lines, k], in_block) = if along { ([p.m, p.n], threads / p.lanes) } else { ([p.n, p.m], p.lanes) };
        if blocks != lines.div_ceil(in_block) || layers != p.batch || p.ldo != (2 * k.next_multiple_of(8) + 8).next_multiple_of(64) {
            return None;
        }
        return later(move || {
            for (item, line) in (0..layers).flat_map(|item| (0..lines).map(move |line| (item, line))) {
                let from = p.start(from, 0, item);
                for q in 0..k.next_multiple_of(8) {
                    let x = if along { at(from, line, q, p.lda) } else { at(from, q, line, p.lda) };
                    // An f32 takes the place of both its terms.
                    unsafe { *at(out, item * lines + line, q, p.ldo / 2) = if q < k { *x } else { 0.0 } };
                }
            }
        });
    }
    let elements = |p: Params| (0..p.m).flat_map(move |i| (0..p.n).map(move |j| [i, j]));
    // The blocks of all items of a batch lie one behind the other.
    let direct = function.strip_prefix("matmul/direct f32-").map(|layout| ("4x4", layout));
    let tiled = function.strip_prefix("matmul/tiled ").and_then(|variant| variant.split_once(' '));
    let in_terms = function.strip_prefix("matmul/cooperative f16x3-").map(|tile| (tile, "nt"));
    let Some((tile, layout)) = direct.or(tiled).or(in_terms) else {
        let ([parts, c, bias, out], p) = ([0, 2, 3, 4].map(address), params(5));
        if (p.batch * p.m * p.lda / 4).div_ceil(threads) != blocks {
            return None;
        }
        return later(move || {
            for (item, [i, j]) in (0..p.batch).flat_map(|item| elements(p).map(move |at| (item, at))) {
                let sum = (0..p.k).map(|part| unsafe { *at(parts, (part * p.batch + item) * p.m + i, j, p.lda) }).sum();
                unsafe { p.store([c, bias, out], item, [i, j], sum) };
            }
        });
    };
    let ([a, b, c, bias, out], p) = ([0, 1, 2, 3, 4].map(address), params(5));
    let p = if in_terms.is_some() { p.of_pairs() } else { p };
    let sides: Vec<u32> = tile.split('x').map(|side| side.parse().unwrap()).collect();
    let tiles = p.m.div_ceil(sides[0]) * p.n.div_ceil(sides[1]);
    let layers = if direct.is_none() {
        layers
    } else if layers == 1 && blocks == (tiles * p.batch).div_ceil(threads) {
        p.batch
    } else {
        return None;
    };
    if direct.is_none() && tiles != blocks || (p.k_part == 0) != (layers == p.batch) {
        return None;
    }
    let (transpose_a, transpose_b) = (layout.starts_with('t'), layout.ends_with('t'));
    later(move || {
        for layer in 0..layers {
            let (a, b) = (p.start(a, 0, layer % p.batch), p.start(b, 1, layer % p.batch));
            for [i, j] in elements(p) {
                let term = |q: u32| unsafe {
                    let x = if transpose_a { at(a, q, i, p.lda) } else { at(a, i, q, p.lda) };
                    let y = if transpose_b { at(b, j, q, p.ldb) } else { at(b, q, j, p.ldb) };
                    *x * *y
                };
                unsafe { p.store([c, bias, out], layer, [i, j], p.terms(layer).map(term).sum()) };
            }
        }
    })
}
