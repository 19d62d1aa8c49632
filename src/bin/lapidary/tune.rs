//! `lapidary tune`: which shape of the kernel is fastest on this device.

use lapidary::plan::tuned::Tuned;
use lapidary::{Gpu, Trial, Tuning};
use serde_json::json;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::{self, Progress};
use crate::status::describe;
use crate::table::{Align, Table, WIDTH, wrap};

pub fn run(common: &Common, clear: bool) -> Result<(), Failure> {
    let gpu = Gpu::open_blocking(common.options.clone())?;
    let info = gpu.info()?;
    if clear {
        let removed = gpu.clear_tuning()?.map(|file| file.display().to_string());
        if common.json {
            return output::print_json("tune", json!({ "backend": info.backend.name(), "device": info.name, "removed": removed }));
        }
        return output::print(&format!("{}\n", removed.map_or_else(|| "nothing was tuned".to_owned(), |file| format!("removed {file}"))));
    }
    let progress = Progress::new();
    progress.show(&format!("measuring the tiles of {} {}", info.backend, info.name));
    let Tuning { trials, tuned, file, fault, .. } = gpu.tune_blocking()?;
    drop(progress);
    let classes: Vec<_> = trials.iter().filter(|trial| trial.tile.is_none()).collect();
    // What later handles will run: the tuned tile, or the planner's own choice.
    let winner = |default: &Trial| {
        let tile = tuned.tiles()[default.class];
        trials.iter().find(|trial| trial.class == default.class && trial.tile == tile).map_or_else(|| default.clone(), Clone::clone)
    };
    let file = file.map(|file| file.display().to_string());
    if common.json {
        let trials = trials.iter().map(|Trial { class, tile, kernel, ms, .. }| {
            json!({ "size": Tuned::side(*class), "tile": tile, "kernel": kernel, "ms": ms, "is_tuned": tile.is_some() && tuned.tiles()[*class] == *tile })
        });
        let fields = json!({ "backend": info.backend.name(), "device": info.name, "file": file, "fault": fault, "trials": trials.collect::<Vec<_>>() });
        return output::print_json("tune", fields);
    }
    let mut table = Table::new(&[
        ("size", Align::Right),
        ("default ms", Align::Right),
        ("best ms", Align::Right),
        ("gain", Align::Right),
        ("kernel from now on", Align::Left),
    ]);
    for default in classes {
        let best = winner(default);
        let gain = format!("{:.0} %", 100.0 * (default.ms / best.ms - 1.0));
        table.row([Tuned::side(default.class).to_string(), format!("{:.4}", default.ms), format!("{:.4}", best.ms), gain, best.kernel]);
    }
    output::print(&format!("{}\n\n{}", wrap(&describe(&info), WIDTH).join("\n"), table.text()))?;
    if info.features.contains(&"cublaslt") {
        output::note("these are for what NVIDIA's library does not take; it goes on multiplying the rest");
    }
    match file {
        Some(file) => output::note(&format!("kept in {file}; `lapidary tune --clear` forgets it")),
        None => output::note(&format!("not kept: {}", fault.as_deref().unwrap_or("there is no folder for it"))),
    }
    Ok(())
}
