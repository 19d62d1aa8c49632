//! Products of 8-bit integers, natively: the plain loops that are the oracle, and packed ones for vector instructions.
//!
//! Both operands are packed into words of 32 bits that hold some elements of k: four bytes where the CPU multiplies them (VNNI), or else two
//! numbers of 16 bits, from which the zero point is already taken. A block of B is packed into panels of [`NR`] columns, which all rows share,
//! and one of A into panels of [`MR`] rows, as Goto and van de Geijn describe ("Anatomy of high-performance matrix multiplication", 2008).
//!
//! ```text
//!               n                        word p of panel j
//!      k  [     B     ]                  has NR columns, and 2 or 4 elements of k of each
//! m [ A ] [     C     ]  C += A·B
//! ```

use crate::plan::matmul::Params;

/// op(X), whose elements lie in lines: rows of A, columns of B.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a> {
    pub bytes: &'a [u8],
    /// Elements from one line to the next, and from one element of a line to the next; one of the two is 1.
    pub line_stride: usize,
    pub k_stride: usize,
    /// An element is its byte with these bits flipped, as an unsigned number, less the bias.
    pub flip: u8,
    pub bias: i16,
}

impl<'a> Lines<'a> {
    /// Those of values that may be signed.
    pub(super) fn new(bytes: &'a [u8], is_signed: bool, zero_point: i16, [line_stride, k_stride]: [usize; 2]) -> Self {
        let (flip, bias) = if is_signed { (0x80, zero_point + 128) } else { (0, zero_point) };
        Self { bytes, line_stride, k_stride, flip, bias }
    }

    fn at(&self, line: usize, k: usize) -> i32 {
        i32::from(self.bytes[line * self.line_stride + k * self.k_stride] ^ self.flip) - i32::from(self.bias)
    }
}

/// The zero points of both operands.
pub(super) fn zero_points(params: &Params) -> [i16; 2] {
    [params.zero_points as i16, (params.zero_points >> 16) as i16]
}

/// out ← op(A)·op(B), modulo 2³².
pub(super) fn plain([m, k, n]: [usize; 3], a: Lines<'_>, b: Lines<'_>, out: &mut [i32]) {
    for (i, row) in out.chunks_exact_mut(n).enumerate().take(m) {
        for (j, c) in row.iter_mut().enumerate() {
            *c = (0..k).fold(0i32, |sum, p| sum.wrapping_add(a.at(i, p) * b.at(j, p)));
        }
    }
}

#[cfg(feature = "simd")]
mod few;
#[cfg(feature = "simd")]
pub(super) use vectors::packed;

#[cfg(feature = "simd")]
mod vectors {
    use super::Lines;
    use crate::backend::cpu::crew::each;
    use crate::backend::cpu::turned::turn;

    /// Rows and columns of a tile of C, whose sums are 12 vectors of 8.
    const MR: usize = 6;
    const NR: usize = 16;
    /// Elements of k, and columns, of a block of B: about what a core's second cache holds.
    const KC: usize = 1024;
    const NC: usize = 1024;
    /// Rows of a block of A.
    const MC: usize = 16 * MR;
    /// Words of a line that are turned at once: a line of the cache.
    const WORDS: usize = 16;
    /// Products of fewer multiplications stay on one thread, which costs some microseconds to wake.
    const ALONE: usize = 64 * 64 * 64;

    type Sums = [[i32; NR]; MR];

    /// What multiplies words.
    #[derive(Clone, Copy, PartialEq)]
    enum Unit {
        /// `vpdpbusd` of AVX-512: unsigned bytes of A by signed ones of B.
        #[cfg(target_arch = "x86_64")]
        Vnni512,
        /// The same of AVX-VNNI.
        #[cfg(target_arch = "x86_64")]
        Vnni,
        /// `vpmaddwd`: pairs of 16 bits.
        #[cfg(target_arch = "x86_64")]
        Avx2,
        /// Pairs of 16 bits by whatever the compiler makes of it.
        Plain,
    }

    impl Unit {
        /// The best that this CPU has.
        fn best() -> Self {
            #[cfg(target_arch = "x86_64")]
            {
                if is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512vl") {
                    return Self::Vnni512;
                }
                if is_x86_feature_detected!("avxvnni") {
                    return Self::Vnni;
                }
                if is_x86_feature_detected!("avx2") {
                    return Self::Avx2;
                }
            }
            Self::Plain
        }

        /// Elements of k in a word.
        fn depth(self) -> usize {
            match self {
                #[cfg(target_arch = "x86_64")]
                Self::Vnni512 | Self::Vnni => 4,
                _ => 2,
            }
        }

        /// The sums of a tile.
        fn multiply(self, a: &[[u32; MR]], b: &[[u32; NR]], sums: &mut Sums) {
            match self {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: `best` has found AVX-512 VNNI and VL.
                Self::Vnni512 => unsafe { x86::vnni512(a, b, sums) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: `best` has found AVX-VNNI.
                Self::Vnni => unsafe { x86::vnni(a, b, sums) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: `best` has found AVX2.
                Self::Avx2 => unsafe { x86::avx2(a, b, sums) },
                Self::Plain => plain(a, b, sums),
            }
        }
    }

    /// Some of an operand, packed: panels of `N` lines, word after word, and what belongs to each line.
    struct Packed<const N: usize> {
        words: Vec<[u32; N]>,
        /// What the sums of a tile are too large by, for each line.
        excess: Vec<[i32; N]>,
    }

    /// How an operand is packed: its words as they are, and by what the sums of its lines count for the other operand's zero point.
    #[derive(Clone, Copy)]
    struct Form {
        depth: usize,
        /// Of words of four: bits that make its bytes those that the unit takes, whether these are signed, and the other operand's zero point.
        mask: u8,
        is_signed: bool,
        other: i32,
        /// By how much each element of the line counts less in that: the operand's own zero point, for one of the two.
        less: i32,
    }

    /// out ← op(A)·op(B), modulo 2³², on so many threads at most.
    pub(in super::super) fn packed([m, k, n]: [usize; 3], a: Lines<'_>, b: Lines<'_>, out: &mut [i32], threads: usize) {
        if !super::few::multiplied([m, k, n], [a, b], out, threads) {
            with_unit(Unit::best(), [m, k, n], a, b, out, threads);
        }
    }

    fn with_unit(unit: Unit, [m, k, n]: [usize; 3], a: Lines<'_>, b: Lines<'_>, out: &mut [i32], threads: usize) {
        out.fill(0);
        let depth = unit.depth();
        // Bytes of A stay unsigned, those of B become signed, and the zero points move with them: with z and y for those,
        // sum of (a − z)(b − y) = sum of ab − z · sum of b − y · sum of (a − z).
        let (z, y) = (i32::from(a.bias), i32::from(b.bias) - 128);
        let form_a = Form { depth, mask: a.flip, is_signed: false, other: y, less: z };
        let form_b = Form { depth, mask: b.flip ^ 0x80, is_signed: true, other: z, less: 0 };
        let threads = if m * k * n < ALONE { 1 } else { threads };
        let rows = m.div_ceil(threads).next_multiple_of(MR);
        for j0 in (0..n).step_by(NC) {
            let columns = NC.min(n - j0);
            for p0 in (0..k).step_by(KC) {
                let part = [p0, KC.min(k - p0)];
                let b = Packed::<NR>::new(&b, form_b, [j0, columns], part, threads);
                each(out, rows * n, threads, |share, out| {
                    for (block, out) in out.chunks_mut(MC * n).enumerate() {
                        let first = share * rows + block * MC;
                        let a = Packed::<MR>::new(&a, form_a, [first, out.len() / n], part, 1);
                        multiply(unit, &a, &b, out, n, [j0, columns]);
                    }
                });
            }
        }
    }

    /// Adds the products of packed rows and columns to some columns of rows of C.
    fn multiply(unit: Unit, a: &Packed<MR>, b: &Packed<NR>, out: &mut [i32], n: usize, [j0, columns]: [usize; 2]) {
        let words = a.words.len() / a.excess.len();
        for ((b, b_excess), j) in b.words.chunks_exact(words).zip(&b.excess).zip((0..columns).step_by(NR)) {
            let width = NR.min(columns - j);
            for ((a, a_excess), rows) in a.words.chunks_exact(words).zip(&a.excess).zip(out.chunks_mut(MR * n)) {
                let mut sums = [[0; NR]; MR];
                unit.multiply(a, b, &mut sums);
                for ((row, sums), a_excess) in rows.chunks_exact_mut(n).zip(&sums).zip(a_excess) {
                    for ((c, sum), b_excess) in row[j0 + j..][..width].iter_mut().zip(sums).zip(b_excess) {
                        *c = c.wrapping_add(sum.wrapping_sub(*a_excess).wrapping_sub(*b_excess));
                    }
                }
            }
        }
    }

    impl<const N: usize> Packed<N> {
        /// Packs so many lines from one on, and of each so many elements from one on.
        fn new(from: &Lines<'_>, form: Form, [first, lines]: [usize; 2], [p0, k]: [usize; 2], threads: usize) -> Self {
            let (words, panels) = (k.div_ceil(form.depth), lines.div_ceil(N));
            let mut packed = Self { words: vec![[0; N]; words * panels], excess: vec![[0; N]; panels] };
            let panel = |(panel, (words, excess)): (usize, (&mut [[u32; N]], &mut [i32; N]))| {
                let at = first + panel * N;
                let lines = [at, N.min(first + lines - at)];
                pulp::Arch::new().dispatch(Panel { form, from, lines, part: [p0, k], words, excess });
            };
            if threads > 1 && panels > 1 {
                let together = panels.div_ceil(threads);
                let mut shares: Vec<_> = packed.words.chunks_mut(words * together).zip(packed.excess.chunks_mut(together)).collect();
                each(&mut shares, 1, threads, |share, some| {
                    for (all, excess) in some {
                        all.chunks_exact_mut(words)
                            .zip(&mut **excess)
                            .enumerate()
                            .for_each(|(at, one)| panel((share * together + at, one)));
                    }
                });
            } else {
                packed.words.chunks_exact_mut(words).zip(&mut packed.excess).enumerate().for_each(panel);
            }
            packed
        }
    }

    /// What packs a panel: lines from one on, fewer than `N` only at the end, and of each some elements from one on.
    struct Panel<'a, 'b, const N: usize> {
        form: Form,
        from: &'a Lines<'b>,
        lines: [usize; 2],
        part: [usize; 2],
        words: &'a mut [[u32; N]],
        excess: &'a mut [i32; N],
    }

    impl<const N: usize> pulp::WithSimd for Panel<'_, '_, N> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, _: S) {
            let Self { form, from, lines, part, words, excess } = self;
            if form.depth == 4 {
                form.pack::<4, N>(from, lines, part, words);
                form.add_up(words, part[1], excess);
            } else {
                form.pack::<2, N>(from, lines, part, words);
            }
        }
    }

    impl Form {
        /// A word of `D` elements of a line.
        #[inline(always)]
        fn word<const D: usize>(&self, bytes: [u8; D], from: &Lines<'_>) -> u32 {
            if D == 4 {
                return bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte ^ self.mask));
            }
            bytes.iter().rev().fold(0, |word, &byte| word << 16 | u32::from((i16::from(byte ^ from.flip) - from.bias).cast_unsigned()))
        }

        /// Words of `D` elements of so many lines from one on, zero from the end on.
        #[inline(always)]
        fn pack<const D: usize, const N: usize>(
            &self,
            from: &Lines<'_>,
            [first, lines]: [usize; 2],
            [p0, k]: [usize; 2],
            words: &mut [[u32; N]],
        ) {
            let whole = k / D;
            let start = |line: usize, p: usize| (first + line) * from.line_stride + (p0 + p) * from.k_stride;
            if from.k_stride == 1 {
                let mut block = [[0; WORDS]; N];
                for (at, words) in words[..whole].chunks_mut(WORDS).enumerate() {
                    let count = words.len();
                    for (line, block) in block.iter_mut().enumerate().take(lines) {
                        let bytes = &from.bytes[start(line, at * WORDS * D)..][..count * D];
                        for (word, bytes) in block.iter_mut().zip(bytes.as_chunks::<D>().0) {
                            *word = self.word(*bytes, from);
                        }
                    }
                    turn(block.as_flattened(), WORDS, words.as_flattened_mut(), N, [lines, count]);
                }
            } else {
                for (at, word) in words.iter_mut().enumerate().take(whole) {
                    let rows: [&[u8]; D] = std::array::from_fn(|p| &from.bytes[start(0, at * D + p)..][..lines]);
                    if lines == N {
                        let rows: [&[u8; N]; D] = rows.map(|row| row.first_chunk().expect("as many as there are lines"));
                        for (line, word) in word.iter_mut().enumerate() {
                            *word = self.word(rows.map(|row| row[line]), from);
                        }
                    } else {
                        for (line, word) in word.iter_mut().enumerate().take(lines) {
                            *word = self.word(rows.map(|row| row[line]), from);
                        }
                    }
                }
            }
            let left = k % D;
            if left > 0 {
                for (line, word) in words[whole].iter_mut().enumerate().take(lines) {
                    let bytes: [u8; D] = std::array::from_fn(|p| if p < left { from.bytes[start(line, whole * D + p)] } else { 0 });
                    let kept = (1u32 << (32 / D * left)) - 1;
                    *word = self.word(bytes, from) & kept;
                }
            }
        }

        /// What the sums are too large by, for the zero points that words of four keep.
        #[inline(always)]
        fn add_up<const N: usize>(&self, words: &[[u32; N]], k: usize, excess: &mut [i32; N]) {
            if self.other == 0 {
                return;
            }
            let mut sums = [0i32; N];
            for word in words {
                for (sum, &word) in sums.iter_mut().zip(word) {
                    let byte = |at: u32| (word >> (8 * at)) as u8;
                    let value = |at: u32| if self.is_signed { i32::from(byte(at).cast_signed()) } else { i32::from(byte(at)) };
                    *sum += value(0) + value(1) + value(2) + value(3);
                }
            }
            *excess = sums.map(|sum| self.other * (sum - k as i32 * self.less));
        }
    }

    /// The twin of what follows.
    fn plain(a: &[[u32; MR]], b: &[[u32; NR]], sums: &mut Sums) {
        let halves = |word: u32| [word as i16, (word >> 16) as i16].map(i32::from);
        for (a, b) in a.iter().zip(b) {
            for (x, sums) in a.iter().zip(&mut *sums) {
                let [x0, x1] = halves(*x);
                for (y, sum) in b.iter().zip(sums) {
                    let [y0, y1] = halves(*y);
                    *sum = sum.wrapping_add(x0 * y0 + x1 * y1);
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    mod x86 {
        use std::arch::x86_64::*;

        use super::{MR, NR, Sums};

        macro_rules! tile {
            ($name:ident, $features:literal, $dot:ident) => {
                #[target_feature(enable = $features)]
                pub(super) fn $name(a: &[[u32; MR]], b: &[[u32; NR]], sums: &mut Sums) {
                    let mut all = [[_mm256_setzero_si256(); 2]; MR];
                    for (a, b) in a.iter().zip(b) {
                        let b = b.as_ptr().cast::<__m256i>();
                        // SAFETY: 16 words are two vectors.
                        let y = unsafe { [_mm256_loadu_si256(b), _mm256_loadu_si256(b.add(1))] };
                        for i in 0..MR {
                            let x = _mm256_set1_epi32(a[i].cast_signed());
                            for j in 0..2 {
                                all[i][j] = $dot(all[i][j], x, y[j]);
                            }
                        }
                    }
                    for (all, sums) in all.iter().zip(sums) {
                        let to = sums.as_mut_ptr().cast::<__m256i>();
                        // SAFETY: 16 sums are two vectors.
                        unsafe {
                            _mm256_storeu_si256(to, all[0]);
                            _mm256_storeu_si256(to.add(1), all[1]);
                        }
                    }
                }
            };
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        fn madd(sum: __m256i, x: __m256i, y: __m256i) -> __m256i {
            _mm256_add_epi32(sum, _mm256_madd_epi16(x, y))
        }

        tile!(vnni512, "avx2,avx512f,avx512vl,avx512vnni", _mm256_dpbusd_epi32);
        tile!(vnni, "avx2,avxvnni", _mm256_dpbusd_avx_epi32);
        tile!(avx2, "avx2", madd);
    }

    #[cfg(test)]
    mod tests {
        use super::super::{plain, tests::bytes};
        use super::*;

        #[test]
        fn every_unit_gives_what_the_plain_loops_give() {
            let mut units = vec![Unit::Plain];
            #[cfg(target_arch = "x86_64")]
            {
                let there = [
                    (Unit::Vnni512, is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512vl")),
                    (Unit::Vnni, is_x86_feature_detected!("avxvnni")),
                    (Unit::Avx2, is_x86_feature_detected!("avx2")),
                ];
                units.extend(there.into_iter().filter(|(_, is)| *is).map(|(unit, _)| unit));
            }
            for [m, k, n] in [[1, 1, 1], [5, 3, 17], [6, 4, 16], [7, 1027, 18], [100, 30, 40], [3, 9, 1040]] {
                let (x, y) = (bytes(m * k, 1), bytes(k * n, 2));
                for bits in 0..16 {
                    let yes = |bit: u32| bits >> bit & 1 == 1;
                    let zero = |signed: bool, other: bool| if other { if signed { -128 } else { 255 } } else { 0 };
                    let lines = |x, signed, other, strides| Lines::new(x, signed, zero(signed, other), strides);
                    let a = lines(&x, yes(0), yes(1) != yes(3), if yes(2) { [1, m] } else { [k, 1] });
                    let b = lines(&y, yes(1), yes(0) != yes(2), if yes(3) { [k, 1] } else { [1, n] });
                    let mut expected = vec![7; m * n];
                    plain([m, k, n], a, b, &mut expected);
                    for &unit in &units {
                        for threads in [1, 3] {
                            let mut found = vec![-1; m * n];
                            with_unit(unit, [m, k, n], a, b, &mut found, threads);
                            assert!(found == expected, "{m}x{k}x{n} {bits:04b} by {} at once, {threads} threads", unit.depth());
                        }
                    }
                }
            }
        }
    }
}

#[cfg(all(test, feature = "simd"))]
mod tests {
    /// Bytes of all sizes, the extremes among them.
    pub(super) fn bytes(count: usize, seed: u64) -> Vec<u8> {
        let byte = |i: u64| match i % 5 {
            0 => 0x80,
            1 => 0x7f,
            2 => 0xff,
            _ => (crate::random::element(seed, i) * 128.0) as i8 as u8,
        };
        (0..count as u64).map(byte).collect()
    }
}
