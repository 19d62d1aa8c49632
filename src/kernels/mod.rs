//! The table of kernels: an id, the constants of a variant, and the source in `shaders/<op>/` that they come from.

#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
mod cuda;
mod fragment;
pub mod generated;
#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
mod ptx;
pub mod template;

use std::fmt;
use std::sync::Arc;

use crate::error::Result;
#[cfg(not(target_arch = "wasm32"))]
pub use generated::Interpretation;
pub use generated::{End, Source};
use template::Constant;

/// A kernel's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelId {
    /// `shaders/matmul/tiled.wgsl`, and `tiled.cu` for CUDA: the register-tiled product.
    MatmulTiled,
    /// `shaders/matmul/direct.wgsl`: the product straight from memory, which is soon compiled.
    MatmulDirect,
    /// `shaders/matmul/rows.wgsl`, and `rows.cu` for CUDA: the product of few terms and columns.
    MatmulRows,
    /// `shaders/matmul/vector.wgsl`, and `vector.cu` for CUDA: the product with a few rows or columns.
    MatmulVector,
    /// `shaders/matmul/sum.wgsl`, and `sum.cu` for CUDA: the sum of the parts of a product that was split over k.
    MatmulSum,
    /// `shaders/matmul/copy.wgsl`, and `copy.cu` for CUDA: an operand in rows or in a type that a kernel can read.
    MatmulCopy,
    /// `shaders/matmul/cooperative.wgsl`, and `cooperative.cu` and `split_units.cu` for CUDA: the product of f16, or of two terms of it, by a GPU's
    /// matrix units.
    MatmulCooperative,
    /// `shaders/matmul/split.wgsl`, and `split.cu` for CUDA: an operand of f32 in two terms of f16.
    MatmulSplit,
    /// `shaders/matmul/round.wgsl`: the sum of parts, rounded to f16, where rows of the result share words.
    MatmulRound,
    /// `shaders/matmul/int8.wgsl`, and `int8.cu` and its likes for CUDA: products of 8-bit integers, with the copies and sums round them.
    MatmulInt8,
    /// `shaders/matmul/int8_vector.wgsl`, and `int8_vector.cu` for CUDA: those with a few rows or columns.
    MatmulInt8Vector,
    /// `shaders/matmul/packed.frag`: the product by fragment shader, up to eight rows a pass.
    MatmulPacked,
    /// `shaders/matmul/strips.frag`: puts A into the form in which the last reads it from uniform blocks.
    MatmulStrips,
    /// `shaders/matmul/unfold.frag`: puts what `packed.frag` gives into the form of an operand.
    MatmulUnfold,
    /// `backend/cpu`: the product on the CPU.
    MatmulCpu,
    /// NVIDIA's cuBLASLt.
    #[cfg(not(target_arch = "wasm32"))]
    MatmulCublasLt,
    /// `shaders/map/map.wgsl`, and `map.cu` for CUDA: an elementwise program.
    Map,
    /// `shaders/map/turned.wgsl`, and `turned.cu` for CUDA: an elementwise program some of whose inputs are transposed.
    MapTurned,
    /// `shaders/map/pairs.wgsl`, and `pairs.cu` for CUDA: an elementwise program over f16, by words of two.
    MapPairs,
    /// `shaders/map/interpreted.cu`: any elementwise program, read step by step, where CUDA's compiler is missing.
    #[cfg(not(target_arch = "wasm32"))]
    MapInterpreted,
    /// `shaders/map/map.frag`: an elementwise program by fragment shader.
    MapFragment,
    /// `backend/cpu/map.rs`: an elementwise program on the CPU.
    MapCpu,
    /// `shaders/reduce/reduce.wgsl`, and `reduce.cu` for CUDA: a reduction, or its parts.
    Reduce,
    /// `shaders/reduce/merge.wgsl`, and `merge.cu` for CUDA: the end of a reduction in parts.
    ReduceMerge,
    /// `shaders/reduce/plain.cu`: a reduction of rows one behind the other, where CUDA's compiler is missing.
    #[cfg(not(target_arch = "wasm32"))]
    ReducePlain,
    /// `shaders/reduce/reduce.frag`: the parts of a reduction by fragment shader.
    ReduceFragment,
    /// `shaders/reduce/merge.frag`: the end of a reduction in parts by fragment shader.
    ReduceMergeFragment,
    /// `backend/cpu/reduce.rs`: a reduction on the CPU.
    ReduceCpu,
    /// `shaders/conv/window.wgsl` in `shaders/matmul/tiled.wgsl`, and `shaders/conv/tiled.cu` for CUDA: convolution as a product with what windows see.
    ConvTiled,
    /// `shaders/conv/sum.cu`: the sum of the parts of a convolution, on CUDA.
    #[cfg(not(target_arch = "wasm32"))]
    ConvSum,
    /// `shaders/conv/direct.wgsl`, and `direct.cu` for CUDA: convolution of few filters a group.
    ConvDirect,
    /// `shaders/conv/winograd_filters.wgsl`: the filters of a convolution by Winograd's method.
    ConvWinogradFilters,
    /// `shaders/conv/winograd_images.wgsl`: the images of a convolution by Winograd's method.
    ConvWinogradImages,
    /// `shaders/conv/winograd_product.wgsl` in `shaders/matmul/tiled.wgsl`: the products of Winograd's method.
    ConvWinogradProduct,
    /// `shaders/conv/winograd_result.wgsl`: the result of a convolution by Winograd's method.
    ConvWinogradResult,
    /// `shaders/conv/direct.frag`: convolution by fragment shader.
    ConvFragment,
    /// `backend/cpu/conv.rs`: convolution on the CPU.
    ConvCpu,
    /// `shaders/fft/fft.wgsl`, and `roots.cuh` and `steps.cu` for CUDA: Fourier transforms, or a step of long ones.
    Fft,
    /// `shaders/fft/fft.cu`: Fourier transforms where CUDA's compiler is missing.
    #[cfg(not(target_arch = "wasm32"))]
    FftPlain,
    /// `shaders/fft/fft.frag`: a step of Fourier transforms by fragment shader.
    FftFragment,
    /// `backend/cpu/fft.rs`: Fourier transforms on the CPU.
    FftCpu,
    /// `shaders/pool/pool.wgsl`, and `pool.cu` and `block.cu` for CUDA: the largest element of each window, or the mean.
    Pool,
    /// `shaders/pool/pool.frag`: pooling by fragment shader.
    PoolFragment,
    /// `backend/cpu/pool.rs`: pooling on the CPU.
    PoolCpu,
    /// `shaders/normalize/normalize.wgsl`, and `normalize.cu` for CUDA: softmax and norms.
    Normalize,
    /// `shaders/reduce/merge.wgsl`, and `merge.cu` for CUDA, with `shaders/normalize/measure.*`: what softmax and norms tell the values of each row, of
    /// rows that were folded in parts.
    NormalizeMerge,
    /// `shaders/normalize/measure.frag`: what softmax and norms tell the values of each row, by fragment shader.
    NormalizeMeasure,
    /// `shaders/normalize/normalize.frag`: what softmax and norms make of the values, by fragment shader.
    NormalizeFragment,
    /// `shaders/normalize/plain.cu`: softmax and norms of rows one behind the other, where CUDA's compiler is missing.
    #[cfg(not(target_arch = "wasm32"))]
    NormalizePlain,
    /// `backend/cpu/normalize.rs`: softmax and norms on the CPU.
    NormalizeCpu,
    /// `shaders/ceiling/copy.wgsl`, and `copy.cu` for CUDA: how fast memory is.
    #[cfg(not(target_arch = "wasm32"))]
    CeilingCopy,
    /// `shaders/ceiling/fma.wgsl`, and `fma.cu` for CUDA: how fast arithmetic is.
    #[cfg(not(target_arch = "wasm32"))]
    CeilingFma,
}

impl KernelId {
    /// The name in reports: the operation, and behind a stroke which of its kernels, which most have in common with the file in `shaders/`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MatmulTiled => "matmul/tiled",
            Self::MatmulDirect => "matmul/direct",
            Self::MatmulRows => "matmul/rows",
            Self::MatmulVector => "matmul/vector",
            Self::MatmulSum => "matmul/sum",
            Self::MatmulCooperative => "matmul/cooperative",
            Self::MatmulSplit => "matmul/split",
            Self::MatmulRound => "matmul/round",
            Self::MatmulInt8 => "matmul/int8",
            Self::MatmulInt8Vector => "matmul/int8_vector",
            Self::MatmulCopy => "matmul/copy",
            Self::MatmulPacked => "matmul/packed",
            Self::MatmulStrips => "matmul/strips",
            Self::MatmulUnfold => "matmul/unfold",
            Self::MatmulCpu => "matmul/cpu",
            #[cfg(not(target_arch = "wasm32"))]
            Self::MatmulCublasLt => "matmul/cublaslt",
            Self::Map => "map",
            Self::MapTurned => "map/turned",
            Self::MapPairs => "map/pairs",
            #[cfg(not(target_arch = "wasm32"))]
            Self::MapInterpreted => "map/interpreted",
            Self::MapFragment => "map/fragment",
            Self::MapCpu => "map/cpu",
            Self::Reduce => "reduce",
            Self::ReduceMerge => "reduce/merge",
            #[cfg(not(target_arch = "wasm32"))]
            Self::ReducePlain => "reduce/plain",
            Self::ReduceFragment => "reduce/fragment",
            Self::ReduceMergeFragment => "reduce/merge fragment",
            Self::ReduceCpu => "reduce/cpu",
            Self::ConvTiled => "conv/tiled",
            #[cfg(not(target_arch = "wasm32"))]
            Self::ConvSum => "conv/sum",
            Self::ConvDirect => "conv/direct",
            Self::ConvWinogradFilters => "conv/winograd filters",
            Self::ConvWinogradImages => "conv/winograd images",
            Self::ConvWinogradProduct => "conv/winograd",
            Self::ConvWinogradResult => "conv/winograd result",
            Self::ConvFragment => "conv/fragment",
            Self::ConvCpu => "conv/cpu",
            Self::Fft => "fft",
            #[cfg(not(target_arch = "wasm32"))]
            Self::FftPlain => "fft/plain",
            Self::FftFragment => "fft/fragment",
            Self::FftCpu => "fft/cpu",
            Self::Pool => "pool",
            Self::PoolFragment => "pool/fragment",
            Self::PoolCpu => "pool/cpu",
            Self::Normalize => "normalize",
            Self::NormalizeMerge => "reduce/measure",
            Self::NormalizeMeasure => "normalize/measure",
            Self::NormalizeFragment => "normalize/fragment",
            #[cfg(not(target_arch = "wasm32"))]
            Self::NormalizePlain => "normalize/plain",
            Self::NormalizeCpu => "normalize/cpu",
            #[cfg(not(target_arch = "wasm32"))]
            Self::CeilingCopy => "ceiling/copy",
            #[cfg(not(target_arch = "wasm32"))]
            Self::CeilingFma => "ceiling/fma",
        }
    }

    /// The operation that it is of, which all its entry points for CUDA have as their name.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn op(self) -> &'static str {
        self.name().split('/').next().unwrap_or_default()
    }

    /// The same as the driver wants it.
    #[cfg(all(feature = "cuda", any(target_os = "linux", target_os = "windows")))]
    pub(crate) fn entry(self) -> Result<std::ffi::CString> {
        std::ffi::CString::new(self.op()).map_err(|_| crate::error::Error::internal("the kernel's name has a zero in it"))
    }

    /// The files that make up the source, one after the other.
    const fn templates(self) -> &'static [&'static str] {
        const PARAMS: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-params.wgsl"));
        const STORE: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-store.wgsl"));
        const ACTIVATE: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-activate.wgsl"));
        const WINOGRAD: &str = include_str!(concat!(env!("OUT_DIR"), "/conv-winograd.wgsl"));
        const LOAD: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-load.wgsl"));
        const WORDS: &str = include_str!(concat!(env!("OUT_DIR"), "/map-words.wgsl"));
        const PRELUDE: &str = include_str!(concat!(env!("OUT_DIR"), "/map-prelude.wgsl"));
        const ROW: &str = include_str!(concat!(env!("OUT_DIR"), "/reduce-row.wgsl"));
        const MEASURE: &str = include_str!(concat!(env!("OUT_DIR"), "/normalize-measure.wgsl"));
        const MERGE: &str = include_str!(concat!(env!("OUT_DIR"), "/reduce-merge.wgsl"));
        const FOLD: &str = include_str!(concat!(env!("OUT_DIR"), "/reduce-fold.wgsl"));
        const LANES: &str = include_str!(concat!(env!("OUT_DIR"), "/reduce-lanes.wgsl"));
        const MOMENTS: &str = include_str!(concat!(env!("OUT_DIR"), "/reduce-moments.wgsl"));
        const FRAGMENT_WINDOW: &str = include_str!(concat!(env!("OUT_DIR"), "/conv-window.frag"));
        const FRAGMENT_FOLD: &str = include_str!(concat!(env!("OUT_DIR"), "/reduce-fold.frag"));
        const INT8_WORDS: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-int8_words.wgsl"));
        const TILED: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-tiled.wgsl"));
        const BLOCK: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-block.wgsl"));
        const EDGES: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-edges.wgsl"));
        const WINDOW: &str = include_str!(concat!(env!("OUT_DIR"), "/conv-window.wgsl"));
        match self {
            Self::MatmulTiled => &[ACTIVATE, PARAMS, STORE, LOAD, BLOCK, EDGES, TILED],
            Self::MatmulDirect => &[ACTIVATE, PARAMS, STORE, LOAD, BLOCK, include_str!(concat!(env!("OUT_DIR"), "/matmul-direct.wgsl"))],
            Self::ConvTiled => &[ACTIVATE, PARAMS, STORE, LOAD, WINDOW, TILED],
            Self::ConvDirect => &[ACTIVATE, PARAMS, STORE, LOAD, WINDOW, include_str!(concat!(env!("OUT_DIR"), "/conv-direct.wgsl"))],
            Self::ConvWinogradFilters => &[WORDS, WINOGRAD, include_str!(concat!(env!("OUT_DIR"), "/conv-winograd_filters.wgsl"))],
            Self::ConvWinogradImages => &[WORDS, WINOGRAD, include_str!(concat!(env!("OUT_DIR"), "/conv-winograd_images.wgsl"))],
            Self::ConvWinogradProduct => {
                &[ACTIVATE, PARAMS, STORE, include_str!(concat!(env!("OUT_DIR"), "/conv-winograd_product.wgsl")), TILED]
            }
            Self::ConvWinogradResult => &[WORDS, ACTIVATE, WINOGRAD, include_str!(concat!(env!("OUT_DIR"), "/conv-winograd_result.wgsl"))],
            Self::MatmulRows => &[ACTIVATE, PARAMS, STORE, LOAD, include_str!(concat!(env!("OUT_DIR"), "/matmul-rows.wgsl"))],
            Self::MatmulVector => &[ACTIVATE, PARAMS, STORE, LOAD, include_str!(concat!(env!("OUT_DIR"), "/matmul-vector.wgsl"))],
            Self::MatmulSum => &[ACTIVATE, PARAMS, STORE, include_str!(concat!(env!("OUT_DIR"), "/matmul-sum.wgsl"))],
            Self::MatmulSplit => &[ACTIVATE, PARAMS, STORE, include_str!(concat!(env!("OUT_DIR"), "/matmul-split.wgsl"))],
            Self::MatmulCooperative => &[ACTIVATE, PARAMS, STORE, include_str!(concat!(env!("OUT_DIR"), "/matmul-cooperative.wgsl"))],
            Self::MatmulRound => &[ACTIVATE, PARAMS, STORE, include_str!(concat!(env!("OUT_DIR"), "/matmul-round.wgsl"))],
            Self::MatmulInt8 => &[PARAMS, INT8_WORDS, include_str!(concat!(env!("OUT_DIR"), "/matmul-int8.wgsl"))],
            Self::MatmulInt8Vector => &[PARAMS, INT8_WORDS, include_str!(concat!(env!("OUT_DIR"), "/matmul-int8_vector.wgsl"))],
            Self::MatmulPacked => &[include_str!(concat!(env!("OUT_DIR"), "/matmul-packed.frag"))],
            Self::MatmulStrips => &[include_str!(concat!(env!("OUT_DIR"), "/matmul-strips.frag"))],
            Self::MatmulUnfold => &[include_str!(concat!(env!("OUT_DIR"), "/matmul-unfold.frag"))],
            Self::Map => &[include_str!(concat!(env!("OUT_DIR"), "/map-map.wgsl"))],
            Self::MapTurned => &[include_str!(concat!(env!("OUT_DIR"), "/map-turned.wgsl"))],
            Self::MapPairs => &[include_str!(concat!(env!("OUT_DIR"), "/map-pairs.wgsl"))],
            Self::Fft => &[include_str!(concat!(env!("OUT_DIR"), "/fft-fft.wgsl"))],
            Self::MapFragment => &[include_str!(concat!(env!("OUT_DIR"), "/map-map.frag"))],
            Self::Normalize => &[FOLD, MOMENTS, LANES, ROW, MEASURE, include_str!(concat!(env!("OUT_DIR"), "/normalize-normalize.wgsl"))],
            Self::Reduce => &[FOLD, MOMENTS, LANES, ROW, include_str!(concat!(env!("OUT_DIR"), "/reduce-reduce.wgsl"))],
            Self::NormalizeMerge => &[WORDS, PRELUDE, FOLD, LANES, MEASURE, MERGE],
            Self::ReduceMerge => &[WORDS, PRELUDE, FOLD, LANES, MERGE],
            Self::ReduceFragment => &[FRAGMENT_FOLD, include_str!(concat!(env!("OUT_DIR"), "/reduce-reduce.frag"))],
            Self::ConvFragment => &[FRAGMENT_WINDOW, include_str!(concat!(env!("OUT_DIR"), "/conv-direct.frag"))],
            Self::PoolFragment => &[FRAGMENT_WINDOW, include_str!(concat!(env!("OUT_DIR"), "/pool-pool.frag"))],
            Self::FftFragment => &[include_str!(concat!(env!("OUT_DIR"), "/fft-fft.frag"))],
            Self::NormalizeMeasure => &[FRAGMENT_FOLD, include_str!(concat!(env!("OUT_DIR"), "/normalize-measure.frag"))],
            Self::NormalizeFragment => &[include_str!(concat!(env!("OUT_DIR"), "/normalize-normalize.frag"))],
            Self::ReduceMergeFragment => &[FRAGMENT_FOLD, include_str!(concat!(env!("OUT_DIR"), "/reduce-merge.frag"))],
            Self::Pool => &[include_str!(concat!(env!("OUT_DIR"), "/pool-pool.wgsl"))],
            Self::MatmulCpu | Self::MapCpu | Self::ReduceCpu | Self::ConvCpu | Self::PoolCpu | Self::FftCpu | Self::NormalizeCpu => &[],
            Self::MatmulCopy => &[PARAMS, include_str!(concat!(env!("OUT_DIR"), "/matmul-copy.wgsl"))],
            #[cfg(not(target_arch = "wasm32"))]
            Self::MatmulCublasLt | Self::MapInterpreted | Self::ReducePlain | Self::NormalizePlain | Self::FftPlain | Self::ConvSum => &[],
            #[cfg(not(target_arch = "wasm32"))]
            Self::CeilingCopy => &[include_str!(concat!(env!("OUT_DIR"), "/ceiling-copy.wgsl"))],
            #[cfg(not(target_arch = "wasm32"))]
            Self::CeilingFma => &[include_str!(concat!(env!("OUT_DIR"), "/ceiling-fma.wgsl"))],
        }
    }
}

/// What f16 is to fragment shaders, and what most of them are made of.
const HALF: &str = include_str!(concat!(env!("OUT_DIR"), "/map-half.frag"));
const FRAGMENT_PRELUDE: &str = include_str!(concat!(env!("OUT_DIR"), "/map-prelude.frag"));

/// One variant of a kernel: the key under which a compiled one is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Which source.
    pub id: KernelId,
    /// What reports call the variant, e.g. `128x128x16`; of elementwise kernels on the CPU the program comes behind it.
    pub variant: String,
    /// The variant's constants.
    pub constants: Vec<Constant>,
    /// What of its source is generated, if anything is.
    pub source: Option<Arc<Source>>,
}

impl Kernel {
    /// A constant's value; 0 if the variant does not set it.
    pub fn constant(&self, name: &str) -> u32 {
        self.constants.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| *value)
    }

    /// Tells the kernel where its sums go, and whether it may store whole tiles without looking at each element, which not every kernel can.
    pub(crate) fn finish(&mut self, stores: [Constant; 10], direct: bool) {
        self.constants.extend(stores);
        if self.id == KernelId::MatmulCooperative {
            // Sums of split operands are not yet scaled.
            let direct = direct && self.constant("SPLIT") == 0;
            self.constants.push(("DIRECT", u32::from(direct)));
            if direct {
                // Matrix units store elements.
                self.constants.retain(|(name, _)| *name != "OUT_VEC4");
                self.constants.push(("OUT_VEC4", 0));
            }
        }
    }

    /// The variant's WGSL.
    pub fn wgsl(&self) -> Result<String> {
        const PACK: &str = include_str!(concat!(env!("OUT_DIR"), "/map-pack.wgsl"));
        let extensions = match self.id {
            KernelId::MatmulCooperative if self.constant("SUBGROUP") != 0 => {
                // Its analysis takes a loop's counter for something that differs between invocations.
                "enable f16;\nenable chromium_experimental_subgroup_matrix;\ndiagnostic(off, chromium.subgroup_matrix_uniformity);\n"
            }
            #[cfg(not(target_arch = "wasm32"))]
            KernelId::MatmulCooperative => "enable f16;\nenable wgpu_cooperative_matrix;\n",
            _ if self.constant("HALF") != 0 => "enable f16;\n",
            _ => "",
        };
        let mut first = extensions.to_owned();
        if self.source.is_some() || self.constant("RESULT_F16") != 0 || self.id == KernelId::Pool {
            first += PACK;
        }
        if let Some(generated) = &self.source {
            first += &generated.wgsl(&self.constants)?;
        }
        self.source(&first, ["const ", " = ", "u;\n"], "")
    }

    /// The variant's GLSL ES 3.00.
    pub fn glsl(&self) -> Result<String> {
        let mut before = match self.id {
            KernelId::MatmulStrips | KernelId::MatmulUnfold => String::new(),
            KernelId::MatmulPacked if self.source.is_none() => HALF.to_owned(),
            _ => HALF.to_owned() + FRAGMENT_PRELUDE,
        };
        if let Some(generated) = &self.source {
            before = generated.glsl(&self.constants, before)?;
        }
        self.source("#version 300 es\n", ["#define ", " ", "\n"], &before)
    }

    /// The first line, the constants with what stands around each one's name and value, what needs them, and the expanded template.
    fn source(&self, first: &str, [before, between, after]: [&str; 3], generated: &str) -> Result<String> {
        let mut source = first.to_owned();
        for (name, value) in &self.constants {
            for part in [before, name, between, &value.to_string(), after] {
                source.push_str(part);
            }
        }
        source.push_str(generated);
        let mut constants = self.constants.clone();
        constants.push(("END", self.source.as_ref().map_or(0, |generated| u32::from(generated.end.is_some()))));
        // What few kernels are told.
        constants.extend(["GROUPED", "MANY", "A_TERMS", "B_TERMS"].map(|name| (name, self.constant(name))));
        // Bindings are read from the source, which has to have their numbers.
        let bound = ["MEASURES"].map(|name| (name, self.constant(name)));
        for template in self.id.templates() {
            source = template::expand_with(template, &constants, &bound, source)?;
        }
        Ok(source)
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id.name())?;
        if !self.variant.is_empty() {
            write!(f, " {}", self.variant)?;
        }
        // Nobody reads it where there is nothing to compile, and to write it takes longer than small operations do.
        if let (KernelId::MapCpu | KernelId::ReduceCpu | KernelId::NormalizeCpu, Some(source)) = (self.id, &self.source) {
            write!(f, " {}", source.program)?;
        }
        Ok(())
    }
}
