//! Products on devices said to have less room than they have: by what is planned for those, small ones run what otherwise only large ones do.

use super::device::Opened;
use super::{Backend, How};
use crate::call::Call;
use crate::info::Caps;
use crate::kernels::KernelId;
use crate::ops::matmul::Matmul;
use crate::plan::Dispatch;

/// The launches of such a product's four forms, which are of whole numbers and so have one right result.
fn launches_of_right_products(opened: &Opened, [m, k, n]: [usize; 3]) -> Vec<Dispatch> {
    let values = |count: usize| (0..count).map(|i| (i * 7 % 11) as f32 - 5.0).collect::<Vec<_>>();
    let (a, b, c) = (values(m * k), values(k * n), values(m * n));
    let mut launches = Vec::new();
    for (transpose_a, transpose_b) in [(false, false), (true, false), (false, true), (true, true)] {
        let op = Matmul::new(m as u64, k as u64, n as u64).transpose_a(transpose_a).transpose_b(transpose_b).plus(2.0, &c);
        let call = Call::new(&op, (&a).into(), (&b).into()).unwrap();
        let how = How { repeats: 1, timed: false, download: call.op.extent() };
        let started = call.start(opened, how).unwrap();
        launches.extend(started.plan.dispatches);
        let data = pollster::block_on(opened.device.finish(started.running)).unwrap().data.unwrap().into_vec();
        for (at, &value) in data.iter().enumerate() {
            let (i, j) = (at / n, at % n);
            let x = |p: usize| if transpose_a { a[p * m + i] } else { a[i * k + p] };
            let y = |p: usize| if transpose_b { b[j * k + p] } else { b[p * n + j] };
            let exact = (0..k).map(|p| x(p) * y(p)).sum::<f32>() + 2.0 * c[at];
            assert_eq!(value, exact, "{i},{j} transposed {transpose_a},{transpose_b}");
        }
    }
    launches
}

/// With bindings of 8192 bytes and three workgroups every operand is split, k too, and the parts make up the product.
pub(super) fn products_in_many_parts_are_right(open: impl FnOnce(fn(&mut Caps)) -> Option<Opened>) {
    let Some(opened) = open(|caps| (caps.max_binding_bytes, caps.max_workgroups_per_dimension) = (8192, 3)) else { return };
    let launches = launches_of_right_products(&opened, [130, 170, 75]);
    assert!(launches.len() > 40, "{} launches", launches.len());
    assert!(launches.iter().any(|launch| launch.kernel.constant("ACCUMULATES") == 1), "no product was split over k");
}

/// With one workgroup k is one part however long it is, which is worth a copy of each operand whose rows start anywhere and are not along k.
pub(super) fn products_of_copies_are_right(open: impl FnOnce(fn(&mut Caps)) -> Option<Opened>) {
    use KernelId::{MatmulCopy as Copy, MatmulTiled as Tiled};
    let Some(opened) = open(|caps| caps.max_workgroups_per_dimension = 1) else { return };
    let launches = launches_of_right_products(&opened, [31, 9001, 29]);
    let ids: Vec<_> = launches.iter().map(|launch| launch.kernel.id).collect();
    assert_eq!(ids, [Copy, Tiled, Copy, Copy, Tiled, Tiled, Copy, Tiled]);
}
