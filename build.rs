//! Strips the shaders of comments, which every visitor would download. For wasm also compiles `src/backend/cpu/wasm/kernel.rs` into
//! small modules of its own, one for each level of SIMD, and `powers.rs` and `vectors.rs` beside it into more, which the main module embeds.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const KERNEL: &str = "src/backend/cpu/wasm/kernel.rs";
const KERNEL_SIZES: &str = "src/backend/cpu/wasm/sizes.rs";
/// Powers of e, for each level with SIMD.
const POWERS: &str = "src/backend/cpu/wasm/powers.rs";
const POWERS_LEVELS: [(&str, &str); 2] = [("powers", "+simd128"), ("powers_fma", "+simd128,+relaxed-simd")];
/// Loops over values, and what they share with the crate.
const VECTORS: &str = "src/backend/cpu/wasm/vectors.rs";
const VECTORS_SOURCES: [&str; 3] = ["src/dtype.rs", "src/ops/elementwise", "src/backend/cpu/lanes.rs"];
/// Name, target features, and how to optimize: engines without SIMD are rare, and the download is everybody's.
const LEVELS: [(&str, &str, &str); 3] =
    [("scalar", "", "-Copt-level=s"), ("simd", "+simd128", "-Copt-level=2"), ("fma", "+simd128,+relaxed-simd", "-Copt-level=2")];
/// How the files end that the crate has the text of.
const SHADERS: [&str; 5] = ["wgsl", "frag", "vert", "cu", "cuh"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={KERNEL}");
    println!("cargo::rerun-if-changed={KERNEL_SIZES}");
    println!("cargo::rerun-if-changed={POWERS}");
    println!("cargo::rerun-if-changed={VECTORS}");
    VECTORS_SOURCES.iter().for_each(|source| println!("cargo::rerun-if-changed={source}"));
    println!("cargo::rerun-if-changed=shaders");
    // Where functions of numbers are the page's: not in the modules that are compiled below.
    println!("cargo::rustc-check-cfg=cfg(of_the_page)");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let within = |folder: &Path| fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("a folder can be read").path());
    for folder in within(Path::new("shaders")) {
        for shader in within(&folder).filter(|path| path.extension().is_some_and(|ending| SHADERS.iter().any(|known| ending == *known))) {
            let source = fs::read_to_string(&shader).expect("a shader is a file");
            let [folder, file] = [folder.file_name(), shader.file_name()].map(|name| name.expect("a name").to_string_lossy());
            fs::write(out.join(format!("{folder}-{file}")), stripped(&source)).expect("OUT_DIR is writable");
        }
    }
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("wasm32") {
        return;
    }
    println!("cargo::rustc-cfg=of_the_page");
    // The stack lies below the data, whose addresses then take a byte less than above the usual 1 MiB. Running over it still traps.
    println!("cargo::rustc-link-arg-cdylib=-zstack-size=524288");
    let rustc = env::var("RUSTC").expect("cargo sets RUSTC");
    let compile = |source: &str, name: &str, features: &str, options: &[&str]| {
        let status = Command::new(&rustc)
            .args([source, "--crate-type=cdylib", &format!("--crate-name={name}"), "--edition=2024", "--target=wasm32-unknown-unknown"])
            .args(["-Cpanic=abort", "-Ccodegen-units=1", "-Cstrip=symbols", "-Clto=fat", "-Cllvm-args=--unroll-runtime=false"])
            .arg(format!("-Ctarget-feature={features}"))
            .args(options)
            .arg("-o")
            .arg(out.join(format!("{name}.wasm")))
            .status()
            .expect("rustc starts");
        assert!(status.success(), "{source} does not compile for {name}");
    };
    for (name, features, optimize) in LEVELS {
        // Only the inner kernel's own loops are worth unrolling, and their vectors are written by hand.
        let loops = ["-Cno-vectorize-loops", "-Cllvm-args=--unroll-allow-partial=false", "-Cllvm-args=--unroll-threshold=150"];
        // In the order of the source, in which the inner kernel needs the fewest registers.
        let order = "-Cllvm-args=--pre-RA-sched=source";
        // The blocks are static; the stack holds little.
        compile(KERNEL, name, features, &[&loops[..], &[optimize, order, "-Clink-arg=-zstack-size=16384"]].concat());
    }
    // One vector at a time: more are hardly faster, and larger. Nothing is static, and the stack is at the bottom of the main module's.
    let one = "-Cllvm-args=-force-vector-interleave=1";
    let memory = ["-Clink-arg=--import-memory", "-Clink-arg=-zstack-size=4096"];
    compile(VECTORS, "vectors", "+simd128", &[&["-Copt-level=3", one], &memory[..]].concat());
    for (name, features) in POWERS_LEVELS {
        let order = "-Cllvm-args=--pre-RA-sched=source";
        compile(POWERS, name, features, &[&["-Copt-level=2", order], &memory[..]].concat());
    }
}

/// Without comments, indentation and empty lines; the template's own lines, `//# …`, stay.
fn stripped(source: &str) -> String {
    let code = |line: &str| match line.find("//") {
        Some(at) if !line[at..].starts_with("//#") => line[..at].trim().to_owned(),
        _ => line.trim().to_owned(),
    };
    source.lines().map(code).filter(|line| !line.is_empty()).map(|line| line + "\n").collect()
}
