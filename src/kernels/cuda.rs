//! What runs on CUDA: the C++ of a kernel that is compiled at its first use, or the PTX that comes with the crate.

use super::{Kernel, KernelId, Source, ptx, template};
use crate::error::{Error, Result};

impl Kernel {
    /// The CUDA C++ of a kernel that is generated.
    pub fn cuda(&self) -> Result<String> {
        const MAP: &str = include_str!(concat!(env!("OUT_DIR"), "/map-map.cu"));
        const TURNS: &str = include_str!(concat!(env!("OUT_DIR"), "/map-turns.cuh"));
        const TURNED: &str = include_str!(concat!(env!("OUT_DIR"), "/map-turned.cu"));
        const PAIRS: &str = include_str!(concat!(env!("OUT_DIR"), "/map-pairs.cu"));
        const ROOTS: &str = include_str!(concat!(env!("OUT_DIR"), "/fft-roots.cuh"));
        const STEPS: &str = include_str!(concat!(env!("OUT_DIR"), "/fft-steps.cu"));
        const PRELUDE: &str = include_str!(concat!(env!("OUT_DIR"), "/map-prelude.cuh"));
        const POOL_TOLD: &str = include_str!(concat!(env!("OUT_DIR"), "/pool-told.cuh"));
        const POOL_BLOCK: &str = include_str!(concat!(env!("OUT_DIR"), "/pool-block.cu"));
        const FOLD: &str = include_str!(concat!(env!("OUT_DIR"), "/reduce-fold.cuh"));
        const REDUCE: &str = include_str!(concat!(env!("OUT_DIR"), "/reduce-reduce.cu"));
        const MERGE: &str = include_str!(concat!(env!("OUT_DIR"), "/reduce-merge.cu"));
        const ROW: &str = include_str!(concat!(env!("OUT_DIR"), "/reduce-row.cuh"));
        const LANES: &str = include_str!(concat!(env!("OUT_DIR"), "/reduce-lanes.cuh"));
        const MOMENTS: &str = include_str!(concat!(env!("OUT_DIR"), "/reduce-moments.cuh"));
        const MEASURE: &str = include_str!(concat!(env!("OUT_DIR"), "/normalize-measure.cuh"));
        const NORMALIZE: &str = include_str!(concat!(env!("OUT_DIR"), "/normalize-normalize.cu"));
        const TOLD: &str = include_str!(concat!(env!("OUT_DIR"), "/conv-told.cuh"));
        const TILED: &str = include_str!(concat!(env!("OUT_DIR"), "/conv-tiled.cu"));
        const DIRECT: &str = include_str!(concat!(env!("OUT_DIR"), "/conv-direct.cu"));
        const SUM: &str = include_str!(concat!(env!("OUT_DIR"), "/conv-sum.cu"));
        const PARAMS: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-params.cuh"));
        const ACTIVATE: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-activate.cuh"));
        const STORE: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-store.cuh"));
        const PRODUCT: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-tiled.cu"));
        const FOURS: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-fours.cuh"));
        const PRODUCT_DIRECT: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-direct.cu"));
        const PRODUCT_ROWS: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-rows.cu"));
        const PRODUCT_VECTOR: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-vector.cu"));
        const PRODUCT_SUM: &str = include_str!(concat!(env!("OUT_DIR"), "/matmul-sum.cu"));
        let templates: &[&str] = match self.id {
            KernelId::MatmulTiled => &[PARAMS, ACTIVATE, STORE, PRODUCT],
            KernelId::MatmulSum => &[PARAMS, ACTIVATE, STORE, PRODUCT_SUM],
            KernelId::MatmulDirect => &[PARAMS, ACTIVATE, STORE, FOURS, PRODUCT_DIRECT],
            KernelId::MatmulRows => &[PARAMS, ACTIVATE, STORE, FOURS, PRODUCT_ROWS],
            KernelId::MatmulVector => &[PARAMS, ACTIVATE, STORE, FOURS, PRODUCT_VECTOR],
            KernelId::Map => &[MAP],
            KernelId::Fft => &[ROOTS, STEPS],
            KernelId::Pool => &[PRELUDE, POOL_TOLD, POOL_BLOCK],
            KernelId::MapTurned => &[TURNS, TURNED],
            KernelId::MapPairs => &[PAIRS],
            KernelId::Reduce => &[FOLD, ROW, LANES, MOMENTS, REDUCE],
            KernelId::Normalize => &[FOLD, ROW, LANES, MOMENTS, TURNS, MEASURE, NORMALIZE],
            KernelId::ReduceMerge => &[FOLD, MERGE],
            KernelId::NormalizeMerge => &[FOLD, MEASURE, MERGE],
            KernelId::ConvTiled => &[ACTIVATE, TOLD, TILED],
            KernelId::ConvDirect => &[ACTIVATE, TOLD, DIRECT],
            KernelId::ConvSum => &[ACTIVATE, TOLD, SUM],
            _ => return Err(Error::internal(format!("there is no CUDA C++ of {self}"))),
        };
        let mut out: String = self.constants.iter().map(|(name, value)| format!("#define {name} {value}\n")).collect();
        if self.source.as_ref().is_some_and(|generated| generated.end.is_some()) {
            out += "#define END 1\n";
        }
        out += &match &self.source {
            Some(generated) => generated.cuda(&self.constants)?,
            None if matches!(self.id, KernelId::Fft | KernelId::Pool) => String::new(),
            None => Source::cuda_of_none(),
        };
        use KernelId::{ConvDirect, ConvSum, ConvTiled, MatmulDirect, MatmulRows, MatmulSum, MatmulTiled, MatmulVector};
        if matches!(self.id, ConvTiled | ConvDirect | ConvSum | MatmulTiled | MatmulDirect | MatmulRows | MatmulVector | MatmulSum) {
            // Those are whole files, whose variants scripts/ptx knows, and what they include is there. A shape's line says what else it is.
            let shape = self.variant.split(' ').next().unwrap_or_default();
            let said = templates.iter().flat_map(|file| file.lines()).find_map(|line| line.strip_prefix("//# shape ")?.strip_prefix(shape));
            out.extend(said.into_iter().flat_map(str::split_whitespace).map(|said| format!("#define {}\n", said.replace('=', " "))));
            let lines = templates.iter().flat_map(|file| file.lines());
            out.extend(lines.filter(|line| !line.starts_with("//#") && !line.starts_with("#include")).flat_map(|line| [line, "\n"]));
            return Ok(out);
        }
        for template in templates {
            out = template::expand(template, &self.constants, out)?;
        }
        Ok(out)
    }

    /// Whether CUDA's compiler makes it at its first use.
    #[cfg(all(feature = "cuda", any(target_os = "linux", target_os = "windows")))]
    pub(crate) fn is_compiled_late(&self) -> bool {
        use KernelId::{Fft, Map, MapPairs, MapTurned, Normalize, NormalizeMerge, Reduce, ReduceMerge};
        let is_ended = self.source.as_ref().is_some_and(|generated| generated.end.is_some());
        // Pools whose windows share nothing have a kernel that comes with the crate.
        let is_block = self.id == KernelId::Pool && self.constant("LINES") > 0;
        is_ended || is_block || matches!(self.id, Map | MapTurned | MapPairs | Reduce | ReduceMerge | Normalize | NormalizeMerge | Fft)
    }

    /// The variant's PTX.
    pub fn ptx(&self) -> Result<&'static str> {
        ptx::module(&self.module()).ok_or_else(|| Error::internal(format!("there is no PTX of {self}")))
    }

    /// The name of the module that it is in, which is one for all variants that are told at run time what they are.
    pub(crate) fn module(&self) -> String {
        match self.id {
            KernelId::MapInterpreted => self.id.name().to_owned(),
            KernelId::FftPlain => self.id.op().to_owned(),
            _ => self.to_string(),
        }
    }
}
