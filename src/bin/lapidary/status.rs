//! What is used and whether it works.

use std::collections::BTreeSet;
use std::time::Instant;

use lapidary::{AdapterInfo, Choice, DeviceInfo, DeviceKind, Devices, Gpu, Matmul, Options, random};
use serde_json::{Value, json};

use crate::arguments::Common;
use crate::failure::Failure;
use crate::judge::{Extent, Judge};
use crate::listing;
use crate::output::{self, Progress, counted};
use crate::table::{Align, Table, WIDTH, wrap};

/// Whether a device is one, or the CPU in its place.
pub fn standing(kind: DeviceKind) -> &'static str {
    if matches!(kind, DeviceKind::Cpu | DeviceKind::Software) { "fallback" } else { "native" }
}

/// A device in a line.
pub fn describe(info: &DeviceInfo) -> String {
    let driver = if info.driver.is_empty() { String::new() } else { format!(", {}", info.driver) };
    format!("{} {}{driver} ({}, {})", info.backend, info.name, info.kind.name(), standing(info.kind))
}

fn opened_json(info: &DeviceInfo) -> Value {
    let others = info.others.iter().map(|other| {
        json!({
            "backend": other.backend.name(),
            "state": other.state.name(),
            "reason": other.reason,
            "remedy": other.remedy,
        })
    });
    json!({
        "backend": info.backend.name(),
        "name": info.name,
        "kind": info.kind.name(),
        "standing": standing(info.kind),
        "driver": info.driver,
        "features": info.features,
        "notes": info.notes,
        "reason": info.reason,
        "others": others.collect::<Vec<_>>(),
    })
}

/// `lapidary default`.
pub fn default(common: &Common) -> Result<(), Failure> {
    let info = Gpu::open_blocking(common.options.clone())?.info()?;
    if common.json {
        return output::print_json("default", opened_json(&info));
    }
    let mut text = lines(&describe(&info)) + &lines(&format!("because: {}", info.reason));
    text.extend(info.notes.iter().map(|note| lines(&format!("note: {note}"))));
    text += "\n";
    let mut table = Table::new(&[("other", Align::Left), ("state", Align::Left), ("why", Align::Left)]);
    for other in &info.others {
        table.row([other.backend.to_string(), other.state.name().to_owned(), listing::reason_and_remedy(other)]);
    }
    text += &table.text();
    output::print(&text)
}

fn lines(text: &str) -> String {
    wrap(text, WIDTH).join("\n") + "\n"
}

/// `lapidary summary`.
pub fn summary(common: &Common) -> Result<(), Failure> {
    let info = Gpu::open_blocking(common.options.clone())?.info()?;
    let devices = listing::find(common.options.backend);
    // Where a backend is asked for, nobody has looked for the cards of the others.
    let gpus = matches!(common.options.backend, Choice::Auto).then(|| gpus(&devices));
    let mut on: Vec<_> = devices.found.iter().filter(|device| device.fault.is_none()).map(|device| device.backend.name()).collect();
    on.dedup();
    let off: Vec<_> = devices.off.iter().map(|off| off.backend.name()).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    if common.json {
        let fields = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "os": std::env::consts::OS,
            "arch": std::env::consts::ARCH,
            "threads": threads,
            "gpus": gpus,
            "on": on,
            "off": off,
            "default": opened_json(&info),
        });
        return output::print_json("summary", fields);
    }
    let platform = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let threads = counted(threads, "thread");
    let gpus = gpus.map_or_else(String::new, |gpus| format!(", {}", counted(gpus, "GPU")));
    let text = [
        lines(&format!("lapidary {} on {platform}, {threads}{gpus}", env!("CARGO_PKG_VERSION"))),
        lines(&format!("default: {}", describe(&info))),
        lines(&format!("on: {}", on.join(", "))),
        if off.is_empty() { String::new() } else { lines(&format!("off: {}; `lapidary backends` says why", off.join(", "))) },
    ];
    output::print(&text.concat())
}

/// How many cards there are. One that neither its UUID nor its place tells from others is counted only where no card is known by them.
fn gpus(devices: &Devices) -> usize {
    let count = |known: bool| {
        let counts = |device: &AdapterInfo| {
            let is_known = device.uuid.is_some() || !device.pci_address.is_empty();
            device.fault.is_none() && standing(device.kind) == "native" && is_known == known
        };
        let cards = devices.found.iter().zip(devices.cards()).filter(|(device, _)| counts(device)).map(|(_, card)| card);
        cards.collect::<BTreeSet<_>>().len()
    };
    match count(true) {
        0 => count(false),
        known => known,
    }
}

/// A product with edges in all directions, every element judged.
const SHAPE: [u64; 3] = [67, 45, 71];

struct Tested {
    right: bool,
    open_ms: f64,
    product_ms: f64,
    said: String,
}

fn test(device: &AdapterInfo, options: &Options) -> lapidary::Result<Tested> {
    let [m, k, n] = SHAPE;
    let (a, b) = (random::matrix((m * k) as usize, 1), random::matrix((k * n) as usize, 2));
    let options = Options { backend: Choice::Only(device.backend), adapter: Some(device.index), ..options.clone() };
    let start = Instant::now();
    let gpu = Gpu::open_blocking(options)?;
    let open_ms = start.elapsed().as_secs_f64() * 1e3;
    let start = Instant::now();
    let c = gpu.matmul_blocking(&a, &b, &Matmul::new(m, k, n))?;
    let product_ms = start.elapsed().as_secs_f64() * 1e3;
    let judgement = Judge::new(&a, &b, SHAPE, Extent::All)?.judge(&c)?;
    Ok(Tested { right: judgement.is_right(), open_ms, product_ms, said: judgement.to_string() })
}

/// `lapidary status`.
pub fn status(common: &Common) -> Result<(), Failure> {
    let found = listing::asked(&common.options)?.found;
    let progress = Progress::new();
    let mut table = Table::new(&[
        ("backend", Align::Left),
        ("index", Align::Right),
        ("standing", Align::Left),
        ("opens in", Align::Right),
        ("product", Align::Right),
        ("self-test, device and driver", Align::Left),
    ]);
    let (mut list, mut failed) = (Vec::new(), 0);
    for (device, card) in &found {
        progress.show(&format!("testing {} {}: {}", device.backend, device.index, device.name));
        let tested = match &device.fault {
            Some(fault) => Err(format!("unusable: {fault}")),
            None => test(device, &common.options).map_err(|error| {
                failed += 1;
                format!("FAILED: {error}")
            }),
        };
        let (right, open_ms, product_ms, said) = match tested {
            Ok(Tested { right, open_ms, product_ms, said }) => {
                failed += u32::from(!right);
                (Some(right), Some(open_ms), Some(product_ms), said)
            }
            Err(said) => (None, None, None, said),
        };
        let ms = |ms: Option<f64>| ms.map_or_else(String::new, |ms| format!("{ms:.1} ms"));
        let driver = if device.driver.is_empty() { String::new() } else { format!(", {}", device.driver) };
        table.row([
            device.backend.to_string(),
            device.index.to_string(),
            standing(device.kind).to_owned(),
            ms(open_ms),
            ms(product_ms),
            format!("{said}: {}{driver}", device.name),
        ]);
        let mut entry = listing::device_json(device, *card);
        entry["self_test"] = json!({ "right": right, "open_ms": open_ms, "product_ms": product_ms, "said": said });
        list.push(entry);
    }
    drop(progress);
    let printed = if common.json {
        output::print_json("status", json!({ "version": env!("CARGO_PKG_VERSION"), "devices": list }))
    } else {
        output::print(&format!("lapidary {}\n\n{}", env!("CARGO_PKG_VERSION"), table.text()))
    };
    match failed {
        0 => printed,
        1 => Err(Failure::Failed("1 device failed its self-test".to_owned())),
        _ => Err(Failure::Failed(format!("{failed} devices failed their self-tests"))),
    }
}
