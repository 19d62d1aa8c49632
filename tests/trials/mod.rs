//! Expressions made at random: each computed as a whole on a device, against its steps one by one on the scalar path.
//!
//! All values are small whole numbers, of which every sum is exact: there is one right result. One that fails is told by its seed and its steps.

use lapidary::{BackendId, Conv, DType, Expr, Gpu, HostVec, Options, Padding, Pool, random};

const MOST_ELEMENTS: u64 = 30_000;
const MOST_DIMENSIONS: usize = 6;

/// What is made, from some matrices on: each step of those before it. What is drawn depends on nothing but the seed and the shapes.
struct Trial {
    draws: std::vec::IntoIter<f32>,
    values: Vec<Expr>,
    steps: String,
}

impl Trial {
    /// Each step is what `make` makes of it.
    async fn new(gpu: &Gpu, seed: u64, make: impl AsyncFn(Expr) -> Expr) -> Self {
        let mut trial = Self { draws: random::matrix(8192, seed).into_iter(), values: Vec::new(), steps: String::new() };
        for index in 0..4 {
            let (rows, columns) = trial.one_of(&[(5, 7), (7, 5), (12, 16), (16, 33), (1, 7), (40, 3), (64, 20)]);
            let numbers: Vec<_> = random::matrix(rows * columns, seed * 4 + index).iter().map(|x| (x * 4.5).round()).collect();
            trial.values.push(Expr::from(&gpu.tensor(&numbers, rows as u64, columns as u64).await.unwrap()));
        }
        for _ in 0..6 + trial.below(20) {
            let Some((name, value)) = trial.step() else { continue };
            let Ok(shape) = value.shape() else { continue };
            if shape.iter().product::<u64>() > MOST_ELEMENTS || shape.len() > MOST_DIMENSIONS {
                continue;
            }
            trial.steps += &format!("\n  {}: {name}, {shape:?} of {:?}", trial.values.len(), value.dtype().unwrap());
            trial.values.push(make(value).await);
        }
        trial
    }

    /// A number from 0 on, less than that.
    fn below(&mut self, count: usize) -> usize {
        let drawn = self.draws.next().expect("a trial draws fewer");
        ((f64::from(drawn) + 1.0) / 2.0 * count as f64).clamp(0.0, count as f64 - 1.0) as usize
    }

    fn one_of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    /// One of the values of that type whose shape is as asked for.
    fn value(&mut self, dtype: DType, fits: impl Fn(&[u64]) -> bool) -> Option<Expr> {
        let fitting: Vec<_> = self.values.iter().filter(|b| b.dtype().unwrap() == dtype && fits(b.shape().unwrap())).cloned().collect();
        (!fitting.is_empty()).then(|| self.one_of(&fitting))
    }

    /// Something made of those before it; None where what was drawn does not fit them.
    fn step(&mut self) -> Option<(String, Expr)> {
        let at = self.below(self.values.len());
        let a = self.values[at].clone();
        let (shape, dtype) = (a.shape().unwrap().to_vec(), a.dtype().unwrap());
        let is_float = matches!(dtype, DType::F32 | DType::F16);
        // What is larger is cut off, so that all stay exact in f16 too.
        let near = |expr: Expr| expr.clamp(-8.0, 8.0);
        let (name, made) = match self.below(8) {
            0 => ("with a number", if is_float { near(a.mul(2.0).sub(1.0)).relu() } else { a.equal(1.0) }),
            1 => {
                let broadcasts = |b: &[u64]| b.iter().rev().zip(shape.iter().rev()).all(|(x, y)| x == y || *x == 1 || *y == 1);
                let b = self.value(dtype, broadcasts)?;
                ("with another", if dtype == DType::Bool { a.or(b) } else { self.joined(&a, &b) })
            }
            2 => ("cast", a.cast(self.one_of(&[DType::F32, DType::F16, DType::I32, DType::Bool]))),
            3 => {
                let condition = self.value(DType::Bool, |of| of == shape)?;
                ("chosen", condition.select(&a, if dtype == DType::Bool { a.equal(0.0) } else { a.max(1.0) }))
            }
            4 => ("moved", self.moved(&a, &shape)?),
            5 if is_float && !shape.is_empty() => {
                let axes: Vec<_> = (0..shape.len() as i64).filter(|_| self.below(2) == 0).collect();
                let (axes, keep) = (Some(&axes[..]), self.below(2) == 0);
                let is_empty = shape.contains(&0);
                match self.below(4) {
                    0 => ("summed", near(a.sum(axes, keep))),
                    1 if !is_empty => ("the largest", a.amax(axes, keep)),
                    2 if !is_empty => ("the place of the largest", a.argmax(axes, keep)),
                    _ => ("counted", near(a.count(axes, keep).cast(DType::F32))),
                }
            }
            6 if is_float && shape.len() == 2 => {
                let b = self.value(dtype, |b| b.len() == 2 && (b[0] == shape[1] || b[1] == shape[1]))?;
                let is_turned = b.shape().unwrap()[0] != shape[1];
                ("multiplied", near(a.matmul(if is_turned { b.transpose(None) } else { b })))
            }
            7 if dtype == DType::F32 && shape.len() == 2 && shape.iter().all(|&size| size >= 3) => {
                let image = a.reshape(&[1, 1, shape[0] as i64, shape[1] as i64]);
                let filters = a.slice(0, 0, 2, 1).slice(1, 0, 3, 1).reshape(&[1, 1, 2, 3]);
                let convolved = near(image.conv(filters, &Conv::default().pads(&[[1, 0], [0, 2]])));
                ("convolved", if self.below(2) == 0 { convolved } else { convolved.max_pool(&Pool::new(&[2, 2])) })
            }
            _ => return None,
        };
        Some((format!("{at} {name}"), made))
    }

    /// A function of two values.
    fn joined(&mut self, a: &Expr, b: &Expr) -> Expr {
        match self.below(6) {
            0 => a.add(b).clamp(-8.0, 8.0),
            1 => a.sub(b).clamp(-8.0, 8.0),
            2 => a.mul(b).clamp(-8.0, 8.0),
            3 => a.max(b),
            4 => a.min(b),
            _ => a.less(b),
        }
    }

    /// The same elements elsewhere, or some of them, or more around them.
    fn moved(&mut self, a: &Expr, shape: &[u64]) -> Option<Expr> {
        let (rank, elements) = (shape.len(), shape.iter().product::<u64>());
        if rank == 0 {
            return Some(a.broadcast_to(&[3, 2]));
        }
        let axis = self.below(rank);
        Some(match self.below(7) {
            0 => {
                let mut axes: Vec<_> = (0..rank as i64).collect();
                (1..rank).rev().for_each(|end| axes.swap(end, self.below(end + 1)));
                a.transpose(Some(&axes))
            }
            1 => {
                let [start, end] = [0; 2].map(|_| self.below(shape[axis] as usize + 1) as i64);
                let step = self.one_of(&[1, 1, 2, 3, -1, -2]);
                let (first, last) = (start.min(end), start.max(end));
                if step > 0 { a.slice(axis as i64, first, last, step) } else { a.slice(axis as i64, last, first, step) }
            }
            2 => a.flip(Some(&[axis as i64])),
            3 => {
                let factor = [2, 3, 5, 7].into_iter().find(|factor| elements > 0 && elements % factor == 0)?;
                a.reshape(&if self.below(2) == 0 { vec![factor as i64, -1] } else { vec![-1] })
            }
            4 => {
                let sizes: Vec<_> = shape.iter().map(|&size| if size == 1 { 3 } else { size }).collect();
                a.broadcast_to(&[&[2], &sizes[..]].concat())
            }
            5 => {
                let widths: Vec<_> = (0..rank).map(|_| [0; 2].map(|_| self.below(3) as u64)).collect();
                a.pad(&widths, if elements > 0 && self.below(2) == 0 { Padding::Edge } else { Padding::Constant(1.0) })
            }
            _ => {
                let fits = |b: &[u64]| b.len() == rank && (0..rank).all(|at| at == axis || b[at] == shape[at]);
                let dtype = a.dtype().unwrap();
                let parts = [a.clone(), self.value(dtype, fits)?, self.value(dtype, fits)?];
                Expr::concat(&parts[..2 + self.below(2)], axis as i64)
            }
        })
    }
}

async fn numbers(gpu: &Gpu, expr: &Expr) -> Result<Vec<f32>, String> {
    let made = async { gpu.evaluate(&expr.cast(DType::F32)).await?.to_host().await };
    made.await.map(HostVec::into_vec).map_err(|error| error.to_string())
}

/// What the steps are of so many expressions.
pub async fn by_steps(count: u64) -> Vec<Vec<Vec<f32>>> {
    let scalar = &Gpu::open(Options::only(BackendId::Scalar)).await.unwrap();
    let mut all = Vec::new();
    for seed in 0..count {
        let trial = Trial::new(scalar, seed, async |step| Expr::from(&scalar.evaluate(&step).await.unwrap())).await;
        let mut steps = Vec::new();
        for value in &trial.values {
            steps.push(numbers(scalar, value).await.unwrap());
        }
        all.push(steps);
    }
    all
}

/// Computes expressions of which the steps are known.
pub async fn check(gpu: &Gpu, by_steps: &[Vec<Vec<f32>>]) {
    let backend = gpu.info().unwrap().backend;
    for (seed, expected) in (0..).zip(by_steps) {
        let mut trial = Trial::new(gpu, seed, async |step| step).await;
        // The last, and one whose steps others share.
        for at in [trial.values.len() - 1, trial.below(trial.values.len())] {
            let got = numbers(gpu, &trial.values[at]).await;
            assert!(
                got.as_ref() == Ok(&expected[at]),
                "{backend}, seed {seed}, value {at}: {got:?}, not {:?}{}",
                expected[at],
                trial.steps
            );
        }
    }
}
