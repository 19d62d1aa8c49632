//! The README's example.

use lapidary::{Gpu, Matmul, Options};

fn main() -> lapidary::Result<()> {
    let gpu = Gpu::open_blocking(Options::default())?; // or Gpu::open(…).await
    let (a, b) = (vec![1.0; 1024 * 512], vec![2.0; 512 * 256]);
    let c = gpu.matmul_blocking(&a, &b, &Matmul::new(1024, 512, 256))?;
    println!("{} on {}", c[0], gpu.info()?.backend);
    Ok(())
}
