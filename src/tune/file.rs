//! What tuning found, kept for later processes: a file for each device, and what of all files there are tells which backend is the fastest.
//!
//! A file that cannot be read, or of another version, device or driver, counts as none; so does a tile that there is no more.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Best, SCHEMA};
use crate::devices::devices_of;
use crate::info::{BackendId, DeviceInfo, DeviceKind};
use crate::options::Options;
use crate::plan::tuned::Tuned;

/// The file for a device.
pub(super) fn path(options: &Options, info: &DeviceInfo) -> Option<PathBuf> {
    let name: String = info.name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).take(60).collect();
    // wgpu sees a card through several interfaces.
    let through = if info.architecture.is_empty() { String::new() } else { format!("{}-", info.architecture) };
    let hint = options.workgroup_hint.map(|most| format!("-at-most-{most}")).unwrap_or_default();
    let own = if options.vendor_libraries { "" } else { "-own" };
    Some(options.pipeline_cache.folder()?.join(format!("tuned-{}-{through}{name}{hint}{own}.json", info.backend)))
}

/// What tells whether a file is of this very device, driver and version, and of the kernels that the options allow.
fn key(backend: BackendId, name: &str, driver: &str, options: &Options) -> Value {
    json!([SCHEMA, env!("CARGO_PKG_VERSION"), backend.name(), name, driver, options.workgroup_hint, options.vendor_libraries])
}

/// The file's text. Tiles stand in it by their sizes, as `tiles` has them.
pub(super) fn write(tuned: &Tuned, best: &Best, tiles: &[String], info: &DeviceInfo, options: &Options) -> String {
    format!("{:#}\n", json!({ "key": key(info.backend, &info.name, &info.driver, options), "tiles": tuned.names(tiles), "ms": best }))
}

#[cfg(any(test, feature = "vulkan", feature = "webgpu", all(feature = "cuda", any(target_os = "linux", target_os = "windows"))))]
pub(super) fn read(text: &str, tiles: &[String], info: &DeviceInfo, options: &Options) -> Option<Tuned> {
    let value: Value = serde_json::from_str(text).ok()?;
    if value["key"] != key(info.backend, &info.name, &info.driver, options) {
        return None;
    }
    let kept = value["tiles"].as_array()?;
    let is_name = |tile: &Value| tile.is_null() || tile.is_string();
    Tuned::of_names(kept.iter().map(Value::as_str), tiles).filter(|_| kept.iter().all(is_name))
}

/// What earlier tuning has found for a device that has these tiles, if there is any.
#[cfg(any(feature = "vulkan", feature = "webgpu", all(feature = "cuda", any(target_os = "linux", target_os = "windows"))))]
pub(crate) fn load(options: &Options, info: &DeviceInfo, tiles: &[String]) -> Tuned {
    let text = path(options, info).and_then(|file| fs::read_to_string(file).ok());
    text.and_then(|text| read(&text, tiles, info, options)).unwrap_or_default()
}

/// The backends with those that were tuned in the order of their speed, each in one of their places; None where fewer than two were. Emulated
/// GPUs count only where there are no others.
pub(crate) fn by_speed(options: &Options, backends: &[BackendId]) -> Option<Vec<BackendId>> {
    let folder = options.pipeline_cache.folder()?;
    let mut measured = Vec::new();
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let file_name = entry.file_name();
        if file_name.to_str().is_some_and(|name| name.starts_with("tuned-") && name.ends_with(".json")) {
            measured.extend(fs::read_to_string(entry.path()).ok().and_then(|text| measurement(&text)));
        }
    }
    // Listing takes time: only where there is something to compare.
    let count = |measured: &[Measurement]| backends.iter().filter(|id| measured.iter().any(|found| found.backend == **id)).count();
    if count(&measured) < 2 {
        return None;
    }
    let listed: Vec<_> = backends.iter().flat_map(|&backend| devices_of(backend).found).filter(|device| device.fault.is_none()).collect();
    let mut results = [Vec::new(), Vec::new()];
    for Measurement { backend, key: of, best } in measured {
        let device = listed.iter().find(|device| device.backend == backend && key(backend, &device.name, &device.driver, options) == of);
        if let Some(device) = device {
            results[usize::from(device.kind == DeviceKind::Software)].push((backend, best));
        }
    }
    // Those that a CPU emulates count where there are no others.
    reordered(backends, results.iter().find(|results| !results.is_empty())?)
}

/// What a file says of its device's speed.
struct Measurement {
    backend: BackendId,
    key: Value,
    best: Best,
}

fn measurement(text: &str) -> Option<Measurement> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    let backend = BackendId::from_name(value["key"][2].as_str()?)?;
    let best: Vec<_> = value["ms"].as_array()?.iter().map(|ms| ms.as_f64().filter(|ms| *ms > 0.0)).collect();
    Some(Measurement { backend, key: value["key"].take(), best: best.try_into().ok()? })
}

/// Compared by the largest class that all have been measured at, of each backend by its fastest device.
fn reordered(backends: &[BackendId], results: &[(BackendId, Best)]) -> Option<Vec<BackendId>> {
    let class = (0..Tuned::CLASSES).rev().find(|&class| results.iter().all(|(_, best)| best[class].is_some()))?;
    let fastest = |id: BackendId| {
        let times = results.iter().filter(|(backend, _)| *backend == id).filter_map(|(_, best)| best[class]);
        times.min_by(f64::total_cmp).map(|ms| (ms, id))
    };
    let mut ranked: Vec<_> = backends.iter().filter_map(|&id| fastest(id)).collect();
    if ranked.len() < 2 {
        return None;
    }
    ranked.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut ranked = ranked.into_iter().map(|(_, id)| id);
    Some(backends.iter().map(|&id| if fastest(id).is_some() { ranked.next().unwrap_or(id) } else { id }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::device::Device;
    use crate::options::PipelineCache;

    fn info() -> DeviceInfo {
        let opened = pollster::block_on(Device::open(BackendId::Scalar, &Options::default()));
        opened.map(|opened| opened.info).expect("the CPU is always there")
    }

    fn tiles(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn only_a_whole_file_of_the_same_device_is_read() {
        let (info, tiles, options) = (info(), tiles(&["8x8x8", "16x8x8", "16x16x8"]), Options::default());
        let hinted = Options { workgroup_hint: Some(64), ..Options::default() };
        let tuned = Tuned::NONE.with(2, Some(2)).with(7, Some(0));
        let text = write(&tuned, &[Some(0.25); Tuned::CLASSES], &tiles, &info, &options);
        assert_eq!(read(&text, &tiles, &info, &options), Some(tuned));
        assert_eq!(read(&text, &tiles, &info, &hinted), None);
        assert_eq!(read(&text, &tiles, &DeviceInfo { driver: "another".to_owned(), ..info.clone() }, &options), None);
        assert_eq!(read(&text, &tiles, &DeviceInfo { name: "another".to_owned(), ..info.clone() }, &options), None);
        assert_eq!(read(&text.replace(env!("CARGO_PKG_VERSION"), "0.0.0"), &tiles, &info, &options), None);
        for (at, _) in text.char_indices().skip(1).step_by(7) {
            assert!(read(&text[..at.min(text.len() - 3)], &tiles, &info, &options).is_none(), "cut at {at}");
        }
        for (was, is) in [("\"16x16x8\"", "2"), ("null,", ""), ("tiles", "tile")] {
            assert_eq!(read(&text.replacen(was, is, 1), &tiles, &info, &options), None, "{was} as {is}");
        }
    }

    #[test]
    fn a_tile_is_found_by_its_size_wherever_it_stands() {
        let (info, options) = (info(), Options::default());
        let text =
            write(&Tuned::NONE.with(2, Some(1)).with(3, Some(0)), &[None; Tuned::CLASSES], &tiles(&["8x8x8", "16x8x8"]), &info, &options);
        let changed = tiles(&["16x8x8", "32x8x8"]);
        assert_eq!(read(&text, &changed, &info, &options), Some(Tuned::NONE.with(2, Some(0))), "the other one is gone");
    }

    #[test]
    fn backends_that_were_measured_take_turns_in_their_own_places() {
        use BackendId::{Cuda, Scalar, Simd, Vulkan, WebGpu};
        let all = [Cuda, Vulkan, WebGpu, Simd, Scalar];
        let at = |class: usize, ms: f64| {
            let mut best = [None; Tuned::CLASSES];
            best[..=class].fill(Some(ms));
            best
        };
        assert_eq!(reordered(&all, &[]), None);
        assert_eq!(reordered(&all, &[(Vulkan, at(5, 1.0))]), None);
        assert_eq!(reordered(&all, &[(Vulkan, at(5, 1.0)), (WebGpu, [None; Tuned::CLASSES])]), None);
        let swapped = Some(vec![Cuda, WebGpu, Vulkan, Simd, Scalar]);
        assert_eq!(reordered(&all, &[(Vulkan, at(5, 1.0)), (WebGpu, at(6, 0.5))]), swapped);
        assert_eq!(
            reordered(&all, &[(Cuda, at(5, 3.0)), (WebGpu, at(5, 1.0)), (Vulkan, at(5, 2.0))]),
            Some(vec![WebGpu, Vulkan, Cuda, Simd, Scalar])
        );
        assert_eq!(reordered(&all, &[(WebGpu, at(5, 1.0)), (Cuda, at(5, 1.0))]), Some(all.to_vec()), "equals stay in order");
        // Of two devices the faster one speaks for its backend.
        assert_eq!(reordered(&all, &[(Vulkan, at(5, 1.0)), (WebGpu, at(5, 4.0)), (WebGpu, at(5, 0.5))]), swapped);
    }

    /// Files of every GPU that is there, each said to be faster than the one before it; and of one that is not there.
    #[test]
    fn devices_are_preferred_by_what_their_files_say() {
        let folder = std::env::temp_dir().join(format!("lapidary-speeds-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let options = Options { pipeline_cache: PipelineCache::Folder(folder.clone()), ..Options::default() };
        let gpus: Vec<_> = BackendId::ALL.iter().copied().filter(|id| id.is_gpu()).collect();
        let mut found = Vec::new();
        for (turn, &id) in gpus.iter().enumerate() {
            let opened = pollster::block_on(Device::open(id, &options));
            assert!(opened.is_ok() || !crate::environment::is_required(id.name()), "required: {id}");
            if let Ok(opened) = opened {
                let info = &opened.info;
                let best = [Some(1.0 / (turn + 1) as f64); Tuned::CLASSES];
                fs::write(path(&options, info).unwrap(), write(&Tuned::NONE, &best, &[], info, &options)).unwrap();
                let absent = DeviceInfo { name: "absent".to_owned(), ..info.clone() };
                fs::write(path(&options, &absent).unwrap(), write(&Tuned::NONE, &[Some(1e-9); Tuned::CLASSES], &[], &absent, &options))
                    .unwrap();
                found.push((id, info.is_software()));
            }
        }
        fs::write(folder.join("tuned-broken.json"), "{").unwrap();
        if found.len() < 2 || found.iter().any(|(_, is_software)| *is_software != found[0].1) {
            eprintln!("skipped: there are no two backends with GPUs of a sort to compare, but {found:?}");
        } else {
            let mut places = found.iter().map(|(id, _)| *id).rev();
            let expected: Vec<_> =
                gpus.iter().map(|&id| if found.iter().any(|(known, _)| *known == id) { places.next().unwrap() } else { id }).collect();
            assert_eq!(by_speed(&options, &gpus), Some(expected));
        }
        let _ = fs::remove_dir_all(folder);
    }
}
