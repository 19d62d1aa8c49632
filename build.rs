//! For wasm: compiles `src/backend/cpu/wasm/kernel.rs` into small modules of its own, one for each level of SIMD, which the main
//! module embeds. For other targets: nothing.

use std::env;
use std::path::PathBuf;
use std::process::Command;

const KERNEL: &str = "src/backend/cpu/wasm/kernel.rs";
const LEVELS: [(&str, &str); 2] = [("scalar", ""), ("simd", "+simd128")];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={KERNEL}");
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("wasm32") {
        return;
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let rustc = env::var("RUSTC").expect("cargo sets RUSTC");
    for (name, features) in LEVELS {
        let status = Command::new(&rustc)
            .args([KERNEL, "--crate-type=cdylib", "--crate-name=kernel", "--edition=2024", "--target=wasm32-unknown-unknown"])
            .args(["-Copt-level=2", "-Cpanic=abort", "-Ccodegen-units=1", "-Cstrip=symbols", "-Clto=fat"])
            // The blocks are static; the stack holds little.
            .args(["-Clink-arg=-zstack-size=16384", &format!("-Ctarget-feature={features}")])
            .arg("-o")
            .arg(out.join(format!("{name}.wasm")))
            .status()
            .expect("rustc starts");
        assert!(status.success(), "the {name} kernel does not compile");
    }
}
